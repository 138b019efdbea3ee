"""A very small form of `make reproduce-capture`, on digits that come with scikit-learn."""

import numpy as np
import pytest

from benchmarks import reproduce_capture
from benchmarks.lab import Lab, Size
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
