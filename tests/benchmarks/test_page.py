"""A small sample of every bench, so that none rots. What they measure is for `make bench-page` to say."""

import browser
import pytest

from benchmarks import page
from benchmarks.crowd import Size

SAMPLES = {
    "views": {"few": Size(4, 2, 2), "many": Size(60, 5, 3), "times": 2, "rounds": 1},
    "watchers": {"watchers": 2, "epochs": 4, "rounds": 1},
}
NEWEST = ("train job", "model", "dataset", "flashcards", "learner")


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.skipif(not browser.is_here(), reason=browser.MISSING)
@pytest.mark.parametrize("name", page.BENCHES)
def test_a_bench_still_runs(name, tmp_path):
    rows = page.BENCHES[name](tmp_path, **SAMPLES[name])
    assert rows
    for what, figure, _ in rows:
        assert what
        assert float(figure.rstrip(" msxKB")) > 0
    if name == "views":
        weights = [float(figure.rstrip(" KB")) for what, figure, _ in rows if "weight" in what]
        assert len(weights) == len(page.views(dict.fromkeys(NEWEST, "")))
        assert 50 < min(weights) <= max(weights) < page.KILOBYTES
