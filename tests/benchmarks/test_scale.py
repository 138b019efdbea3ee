"""A small sample of every bench, so that none rots. What they measure is for `make bench-scale` to say."""

import pytest
from servers import open_folder

from benchmarks import scale

SAMPLES = {
    "pages": {"many": 300, "times": 5, "rounds": 1},
    "watchers": {"watchers": 4, "jobs": 2, "seconds": 6},
}


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("name", scale.BENCHES)
def test_a_bench_still_runs(name):
    with open_folder() as folder:
        rows = scale.BENCHES[name](folder, **SAMPLES[name])
    assert rows
    for what, figure, _ in rows:
        assert what
        assert float(figure.split("/s")[0].rstrip(" %msx")) > 0
