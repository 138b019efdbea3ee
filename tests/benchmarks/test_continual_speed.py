"""A small sample of the bench, so that it does not rot. What it measures is for `make bench-continual-speed` to say."""

import sys

import pytest

from benchmarks import continual_speed
from flashcards.contract.architecture import BlkArchitecture
from flashcards.contract.image import ImageShape

SMALL = {
    "architecture": BlkArchitecture(blocks=1, filters=8),
    "image": ImageShape(8, 8, 3),
    "batch": 5,
    "batches": 4,
    "epochs": 2,
    "rounds": 1,
    "threads": 1,
}


def test_both_sides_have_a_rate_and_learn_the_same():
    rows, _ = continual_speed.bench(**SMALL)
    figures = {what: figure for what, figure, _ in rows}
    assert float(figures["learn job"].split()[0]) > 0
    assert float(figures["learn job by the loop by hand"].rstrip("x")) > 0
    assert float(figures["loss of both: largest difference"].split()[0]) < 0.01


def test_a_peer_that_cannot_run_says_why():
    with pytest.raises(SystemExit, match=r"could not run avalanche_replay.py[\s\S]*avalanche"):
        continual_speed.bench(**SMALL, avalanche=sys.executable)
