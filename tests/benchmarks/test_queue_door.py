"""A small sample of the bench, so that it does not rot. The gate is checked in it as in `make bench-queue`."""

import pytest
from servers import open_folder

from benchmarks import queue_door


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(600)
def test_a_bench_still_runs():
    with open_folder() as folder:
        rows = queue_door.bench(folder, jobs=60, producers=3)
    figures = {what: figure for what, figure, _ in rows}
    assert figures["jobs posted by HTTP"] == "60"
    assert float(figures["p99 / median"].rstrip("x")) >= 1
