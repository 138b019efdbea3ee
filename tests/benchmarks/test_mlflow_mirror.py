"""A small sample of the bench, so that it does not rot. The figure is for `make bench-mlflow` to say."""

import pytest

from benchmarks import mlflow_mirror


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_bench_still_runs(tmp_path):
    rows, change = mlflow_mirror.bench(tmp_path, trials=1, epochs=60)
    assert [what for what, _, _ in rows][-2:] == ["server killed in the middle", "what was missed"]
    assert rows[-1][1] == "1 of 1"
    assert -1 < change < 10
