"""A small sample of the bench, so that it does not rot. The figure is for `make bench-mlflow` to say."""

import pytest

from benchmarks import mlflow_mirror
from benchmarks.mlflow_mirror import Three, Timed


@pytest.mark.parametrize(
    ("ratios", "said"),
    [
        ([1.001, 0.999, 1.003, 0.995, 1.004, 1.002, 0.998, 1.0], None),
        ([1.03, 1.04, 1.05, 1.035, 1.06, 1.05, 1.05, 1.1], "changes the time of a job by +5.0%"),
        ([0.95, 0.94, 0.96, 0.93, 0.92, 0.95, 0.9, 0.94], "changes the time of a job by -6.0%"),
        ([0.9, 1.1, 0.95, 1.04, 0.97, 1.02, 1.0, 0.99], "cannot be told"),  # though its median is 0.995
        ([1.0] * 5, "cannot be told"),
    ],
)
def test_a_gate_holds_only_where_the_noise_lets_it_be_told(ratios, said):
    found = mlflow_mirror.verdict(ratios)
    assert found is None if said is None else said in found


def test_the_computing_of_a_runner_is_set_apart():
    """It took a tenth longer by itself, the host a second, and half a second of ten went for the server's sake."""
    plain = Timed(seconds=10.0, runner=9.0)
    three = Three(plain, Timed(seconds=12.4, runner=9.9, stolen=1.0), plain)
    assert three.whole == pytest.approx(1.24)
    assert three.changed == pytest.approx(1.05)
    assert three.equal == 1


def test_the_range_of_a_median_is_that_of_the_sign_test():
    """Of twelve the third from either end: P(at most 2 of 12) = 0.0193, and at most 3 would be 0.073."""
    assert mlflow_mirror.likely([float(number) for number in range(1, 13)]) == (3.0, 10.0)


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(900)
def test_the_bench_still_runs(tmp_path):
    rows, killed = mlflow_mirror.bench(tmp_path, trials=1, epochs=60)
    assert [what for what, _, _ in rows][-1] == "what was missed"
    assert rows[-1][1] == "1 of 1"
    (ratio,) = killed
    assert 0 < ratio < 10
