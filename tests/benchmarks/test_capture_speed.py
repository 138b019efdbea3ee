"""A small sample of every bench, so that none rots. What they measure is for `make bench-capture-speed` to say."""

import pytest
import torch

from benchmarks import capture_speed
from benchmarks.plain import textbook
from engine.models.blk import BlkAutoencoder
from flashcards.contract.architecture import BlkArchitecture
from flashcards.contract.image import ImageShape

SMALL = {"architecture": BlkArchitecture(blocks=1, filters=8), "image": ImageShape(8, 8, 3), "rounds": 1, "threads": 1}
SAMPLES = {
    "capture": {"batches": (4, 8), "gemm": (64,), "seconds": 0.01},
    "training": {"batch": 5, "batches": 4, "epochs": 2},
}


@pytest.mark.parametrize("name", capture_speed.BENCHES)
def test_a_bench_still_runs(name):
    rows = capture_speed.BENCHES[name](**SMALL, **SAMPLES[name])
    for what, figure, _ in rows:
        assert what
        assert float(figure.split()[0].rstrip("x")) >= 0


@pytest.mark.parametrize(
    ("figure", "bar", "reached"),
    [
        ("1.81x", "gate >= 1.8x, target 2.2x", True),
        ("1.79x", "gate >= 1.8x, target 2.2x", False),
        ("2.93 %", "gate < 3 %", True),
        ("3.00 %", "gate < 3 %", False),
        ("0.10x", "no bar", True),
    ],
)
def test_a_gate_is_judged(figure, bar, reached):
    assert capture_speed.missed([("it", figure, bar)]) == ([] if reached else ["it"])


def test_both_sides_learn_the_same():
    *_, (what, figure, _) = capture_speed.bench_training(**SMALL, **SAMPLES["training"])
    assert "largest difference" in what
    assert float(figure.split()[0]) < 0.01


def test_both_sides_compute_the_same():
    network = BlkAutoencoder(BlkArchitecture(blocks=2, filters=8), ImageShape(8, 8, 3))
    x_BCHW = torch.rand(2, 3, 8, 8)
    torch.testing.assert_close(textbook(network)(x_BCHW), network(x_BCHW))
