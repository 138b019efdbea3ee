"""A very small form of `make bench-capture`, on digits that come with scikit-learn."""

import json

import numpy as np
import pytest
from forgetting import forget

from benchmarks import fidelity
from benchmarks.lab import Lab, Size

SMALL = Size(images=300, tests=50, epochs=4, seeds=(0,), side=8, threads=1, learning_rate=0.01)
SOURCES = ["capsule", "latent", "maze"]


@pytest.fixture
def lab(tmp_path, digits):
    np.savez(tmp_path / "mnist.npz", x_train=digits["x_train"], x_test=digits["x_test"])
    return Lab(tmp_path / "cells", tmp_path, SMALL)


def walk(lab):
    lab.walk(lambda lab: fidelity.experiment(lab, ["mnist"], SOURCES, "blk_1_fil_4") and None)


def test_every_source_gets_a_ratio(lab, capsys):
    walk(lab)
    fidelity.show(lab.console, lab, ["mnist"], SOURCES, "blk_1_fil_4")
    printed = " ".join(capsys.readouterr().out.split())
    assert "100.0 %" in printed
    assert "gate, the default source below mazes on every set" in printed
    found = fidelity.experiment(lab, ["mnist"], SOURCES, "blk_1_fil_4")["mnist"]
    assert all(0.5 < found[source][0] < 10 for source in SOURCES)


def test_what_is_done_is_not_done_again(lab, capsys):
    walk(lab)
    kept = sorted(lab.folder.rglob("result.json"))
    assert len(kept) == 1 + 3 + 3
    stamps = [path.stat().st_mtime_ns for path in kept]
    forget(lab, kept[-1].parent)
    capsys.readouterr()
    walk(lab)
    assert [path.stat().st_mtime_ns for path in kept[:-1]] == stamps[:-1]
    assert json.loads(kept[-1].read_text())["step_seconds"] > 0
    assert capsys.readouterr().out.count("min left") == 1


@pytest.mark.parametrize(("latent", "holds"), [(1.3, True), (2.4, False)])
def test_the_gate_asks_for_the_default_with_a_capsule_and_without(monkeypatch, lab, latent, holds):
    ratios = {"capsule": 1.0, "latent": latent, "maze": 2.3}
    monkeypatch.setattr(fidelity, "ratios", lambda lab, dataset, source, architecture: [ratios[source]])
    lab.planning = True  # nothing is taught: the parent's own error is not looked at
    assert fidelity.show(lab.console, lab, ["mnist"], SOURCES, "blk_1_fil_4") is holds
