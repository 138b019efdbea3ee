import sys
import time

import pytest
import torch

from engine.models.blk import BlkAutoencoder
from engine.passes.choose import LONGEST_TRIAL, agree, choose, fastest
from engine.passes.onnx_passes import name
from flashcards.contract.architecture import BlkArchitecture
from flashcards.contract.image import ImageShape

TORCH = f"torch-{torch.__version__}-cpu"
SMALL, LARGE = 1000, 10**9  # images that pass through


@pytest.fixture
def chosen():
    network = BlkAutoencoder(BlkArchitecture(blocks=1, filters=8), ImageShape(8, 8, 1)).requires_grad_(False)

    def make(images, named=None, network=network, notes=None):
        return choose(
            network,
            ImageShape(8, 8, 1),
            (0.0, 1.0),
            multiplications=10**6,
            images=images,
            chunk=64,
            device=torch.device("cpu"),
            threads=1,
            note=([] if notes is None else notes).append,
            named=named,
        )

    return make


def test_small_work_goes_to_torch_untried(chosen):
    assert chosen(SMALL).name == TORCH


def test_large_work_goes_to_one_of_both(chosen):
    assert chosen(LARGE).name in (TORCH, name())


def test_the_named_backend_is_taken_however_large_the_work_is(chosen):
    for images in (SMALL, LARGE):
        assert chosen(images, named=TORCH).name == TORCH
        assert chosen(images, named=name()).name == name()


def test_a_named_backend_that_is_not_here_is_as_good_as_none(chosen):
    assert chosen(SMALL, named="torch-1.0-cpu").name == TORCH
    assert chosen(SMALL, named="onnxruntime-0.1-cpu").name in (TORCH, name())


def test_without_onnx_runtime_torch_does_it_and_says_so(chosen, monkeypatch):
    for module in ("engine.passes.onnx_passes", "engine.onnx_session"):
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    notes = []
    assert chosen(LARGE, notes=notes).name == TORCH
    assert "ONNX Runtime cannot be used" in notes[0]


def test_a_network_without_finite_answers_stays_with_torch(chosen):
    network = BlkAutoencoder(BlkArchitecture(blocks=1, filters=8), ImageShape(8, 8, 1)).requires_grad_(False)
    network.encoder.stem.bias.fill_(float("nan"))
    notes = []
    assert chosen(LARGE, network=network, notes=notes).name == TORCH
    assert "other answers" in notes[0]


class Sleeping:
    """Passes that take their time."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.calls = seconds, 0

    def __call__(self, x_BCHW: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        time.sleep(self.seconds)
        return x_BCHW


def test_the_fastest_is_taken():
    slow, quick = Sleeping(0.1), Sleeping(0.0)
    assert fastest(slow, quick, torch.zeros(1)) is quick
    assert fastest(quick, slow, torch.zeros(1)) is quick


def test_trying_ends_when_its_time_is_over():
    candidates = [Sleeping(LONGEST_TRIAL), Sleeping(0.0)]
    fastest(*candidates, torch.zeros(1))
    assert [passes.calls for passes in candidates] == [1, 1]


def test_agreement_is_by_the_range():
    x = torch.tensor([0.0, 1.0])
    assert agree(x, x + 9e-6, 1.0)
    assert not agree(x, x + 2e-5, 1.0)
    assert agree(x * 10, x * 10 + 5e-5, 1.0)  # answers that leave the range have a range of their own
    assert not agree(x, x * float("nan"), 1.0)
