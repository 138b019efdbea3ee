"""A small sample of every bench, so that none rots. What they measure is for `make bench-service` to say."""

import pytest

from benchmarks import service

SAMPLES = {
    "start": {},
    "first-step": {"warm_jobs": 1, "cold_jobs": 1, "rest": 0.5},
    "upload": {"mebibytes": 4, "times": 1},
    "posts": {"seconds": 0.5, "times": 1},
    "pages": {"many": 300, "times": 5},
}


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("name", service.BENCHES)
def test_a_bench_still_runs(name, tmp_path):
    rows = service.BENCHES[name](tmp_path, **SAMPLES[name])
    assert rows
    for what, figure, _ in rows:
        assert what
        assert float(figure.split("/s")[0].rstrip(" MBsmx")) > 0
