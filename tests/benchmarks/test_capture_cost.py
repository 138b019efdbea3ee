"""A small sample, so that the bench does not rot. What it measures is for `make bench-capture-cost` to say."""

import pytest

from benchmarks.capture_cost import measure, show


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(600)
def test_both_ways_are_timed_and_the_ratio_is_printed(capsys):
    found = measure("blk_1_fil_4", count=64, r=2, rounds=1, threads=1, rest=0)
    assert len(set(found[0].backends)) == len(set(found[0].digests)) == 1
    ratio = show(found)
    assert ratio == found[0].through_api / found[0].directly
    assert f"ratio {ratio:.3f} (median of 1)" in capsys.readouterr().out
