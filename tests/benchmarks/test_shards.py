"""A small sample, so that it does not rot. What it measures is for `make bench-shards` to say."""

import pytest
from servers import open_folder

from benchmarks import shards


@pytest.mark.slow
@pytest.mark.alone
def test_the_bench_still_runs():
    with open_folder() as folder:
        rows = shards.bench_shards(folder, filters=8, count=256, r=2, rounds=1)
    assert len(rows) == 3
    assert all(float(figure.rstrip(" sx")) > 0 for _, figure, _ in rows)
