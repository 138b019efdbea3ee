"""A very small form of `make reproduce-capture`, on digits that come with scikit-learn."""

import numpy as np
import pytest

from benchmarks import reproduce_capture
from benchmarks.lab import Lab, Made, Size
from benchmarks.reproduce_capture import SECTIONS, Edition, Report, write

SMALL = Size(images=100, tests=20, epochs=3, seeds=(0,), side=16, threads=1, learning_rate=0.01)


@pytest.fixture
def report(tmp_path, digits, monkeypatch):
    for name in ("mnist", "fashion_mnist", "cifar10", "svhn"):
        np.savez(tmp_path / f"{name}.npz", x_train=digits["x_train"], x_test=digits["x_test"])
    monkeypatch.setattr(reproduce_capture, "COUNTS", (20, 40))
    monkeypatch.setattr(reproduce_capture, "RETRAINED", [1, 3])
    return Report(Lab(tmp_path / "cells", tmp_path, SMALL), "blk_1_fil_8", tmp_path / "docs", (0,), ["blk_4_fil_16"])


@pytest.mark.slow
def test_every_section_is_written_and_its_pictures_are_there(report):
    edition = Edition(list(SECTIONS), report, few=(0,))
    report.lab.walk(lambda _: edition.sections() and None)
    text = write(edition).read_text()
    assert all(title in text for title, _ in SECTIONS.values())
    assert "nan" not in text
    assert "2.0266, 2.1531, 1.4343" in text
    assert "| blk_4_fil_128 | not run | not run | not run | 0.2062, 0.2445 |" in text
    named = [part.split(")")[0] for part in text.split("](")[1:]]
    assert len(named) >= 8
    assert all((report.docs / name).exists() for name in named)


@pytest.fixture
def taught(report, monkeypatch):
    """Every step is one that took a minute and ended with the same figures."""
    made = Made(report.docs, {"test_mae": 0.08, "test_constant_mae": 0.2, "step_seconds": 60.0})
    for step in ("train", "capture", "distill"):
        monkeypatch.setattr(report.lab, step, lambda *_: made)
    return Report(report.lab, "blk_4_fil_32", report.docs, (0,), ["blk_4_fil_32", "blk_4_fil_64"])


def test_a_row_that_was_not_run_says_why(taught):
    text = "\n".join(taught.architectures())
    assert "| blk_4_fil_64 | 0.0800 | 0.0800 | 0.0800 | 0.0512, 0.0570 |" in text
    assert "| blk_4_fil_128 | not run | not run | not run | 0.2062, 0.2445 |" in text
    assert "blk_4_fil_128 was not run: it is 15.2 times the work of blk_4_fil_32, whose three networks took 3" in text
    assert "so about 46." in text
    assert "blk_4_fil_64 was not run" not in text


def test_the_row_of_the_paper_that_learnt_nothing_is_told(taught):
    text = " ".join(taught.architectures())
    assert "The paper's blk_4_fil_128 is a network that learnt nothing: 0.2062" in text
    assert "The best constant image scores 0.2000" in text


def test_a_network_that_collapsed_is_trained_again_more_slowly_and_the_report_says_so(taught, monkeypatch):
    fine, rates = taught.lab.train(), set()

    def distill(cards, parent, dataset, architecture, seed, rate=None):
        rates.add((architecture, rate))
        return fine

    def train(dataset, architecture, seed, rate=None):
        if architecture == "blk_4_fil_64" and rate is None:
            return Made(fine.place, {**fine.result, "test_mae": 0.2072, "collapsed": "it tells no images apart"})
        return fine

    monkeypatch.setattr(taught.lab, "train", train)
    monkeypatch.setattr(taught.lab, "distill", distill)
    text = "\n".join(taught.architectures())
    assert "| blk_4_fil_64 | 0.0800 | 0.0800 | 0.0800 | 0.0512, 0.0570 |" in text
    assert (
        "blk_4_fil_64 learnt nothing on data at a learning rate of 0.01: 0.2072, and one constant image scores 0.2000"
        in text
    )
    assert "Shown are trainings at 0.005, on data and on cards." in text
    assert "blk_4_fil_32 learnt nothing" not in text
    assert rates == {("blk_4_fil_32", None), ("blk_4_fil_64", 0.005)}


class TestAChildThatCollapsed:
    @pytest.fixture
    def told(self, taught, monkeypatch):
        """The report where a network from cards of `source` learns nothing at one of these rates."""

        def tell(source: str, *rates: float | None) -> str:
            fine = taught.lab.distill()
            gone = Made(fine.place, {**fine.result, "collapsed": "it tells no images apart", "test_mae": 0.2072})

            def distill(cards, parent, dataset, architecture, seed, rate=None):
                return gone if architecture == "blk_4_fil_64" and cards == source and rate in rates else fine

            monkeypatch.setattr(taught.lab, "capture", lambda parent, source, *_: source)
            monkeypatch.setattr(taught.lab, "distill", distill)
            return "\n".join(taught.architectures())

        return tell

    def test_from_the_capsule_has_its_row_trained_again_more_slowly(self, told):
        text = told("capsule", None)
        assert "blk_4_fil_64 learnt nothing from the capsule at a learning rate of 0.01: 0.2072" in text
        assert "| blk_4_fil_64 | 0.0800 | 0.0800 | 0.0800 | 0.0512, 0.0570 |" in text
        assert "though it did on data" not in text

    def test_at_every_rate_is_named(self, told):
        text = told("capsule", None, 0.005)
        assert "| blk_4_fil_64 | 0.0800 | 0.0800 | 0.2072 | 0.0512, 0.0570 |" in text
        assert "blk_4_fil_64 from the capsule learnt nothing, though it did on data" in text
        assert "from mazes learnt nothing" not in text

    def test_from_mazes_is_what_mazes_are_worth(self, told):
        text = told("maze", None)
        assert "blk_4_fil_64 from mazes learnt nothing, though it did on data" in text
        assert "Shown are trainings at" not in text
