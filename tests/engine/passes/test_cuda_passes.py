"""What is decided on CUDA, tried on a CPU: float16 runs there too, and no graph can be recorded."""

import pytest
import torch

from engine.models.blk import BlkAutoencoder
from engine.passes import choose
from engine.passes.choose import HALF, on_cuda, whole_or_half
from engine.passes.torch_passes import TorchPasses
from flashcards.contract.architecture import BlkArchitecture
from flashcards.contract.image import ImageShape

CPU, IMAGE, CHUNK = torch.device("cpu"), ImageShape(8, 8, 1), 4
WHOLE = f"torch-{torch.__version__}-cpu"


@pytest.fixture
def network():
    made = BlkAutoencoder(BlkArchitecture(blocks=1, filters=8), IMAGE, torch.Generator().manual_seed(0))
    return made.requires_grad_(False).eval()


@pytest.fixture
def chosen(network, monkeypatch):
    """The choice, where float16 is always or never the faster one."""

    def make(half_is_fast=True, named=None, network=network) -> str:
        monkeypatch.setattr(choose, "fastest", lambda half, whole, x_BCHW: half if half_is_fast else whole)
        return whole_or_half(network, IMAGE, 0.0, 1.0, CHUNK, CPU, named).name

    return make


def test_where_no_graph_can_be_recorded_the_kernels_run_one_by_one(network):
    passes = on_cuda(network, IMAGE, CHUNK, CPU)
    assert type(passes) is TorchPasses
    x_BCHW = torch.rand(CHUNK, 1, 8, 8)
    assert torch.equal(passes(x_BCHW), TorchPasses(network, CPU)(x_BCHW))
    assert (passes.name, on_cuda(network, IMAGE, CHUNK, CPU, HALF).name) == (WHOLE, f"{WHOLE}-float16")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_the_digits_and_still_float32_on_both_ends(network, dtype):
    x_BCHW = torch.rand(CHUNK, 1, 8, 8)
    whole, half = TorchPasses(network, CPU)(x_BCHW), TorchPasses(network, CPU, dtype)(x_BCHW)
    assert half.dtype == torch.float32
    assert 0 < (half - whole).abs().max() < 0.05


def test_float16_is_taken_where_it_is_clearly_faster_and_cards_come_out_the_same(chosen):
    assert chosen() == f"{WHOLE}-float16"
    assert chosen(half_is_fast=False) == WHOLE


def test_where_cards_come_out_otherwise_it_is_not(chosen, network):
    network.decoder.head.weight.mul_(200)  # what rounding takes from a hidden layer is 200 times as large in the image
    assert chosen() == WHOLE


def test_a_network_without_finite_answers_stays_with_float32(chosen, network):
    network.encoder.stem.bias.fill_(float("nan"))
    assert chosen() == WHOLE


def test_what_a_recipe_names_is_taken_untried(chosen):
    assert chosen(half_is_fast=True, named=WHOLE) == WHOLE
    assert chosen(half_is_fast=False, named=f"{WHOLE}-float16") == f"{WHOLE}-float16"
