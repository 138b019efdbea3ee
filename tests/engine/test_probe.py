from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file

from engine.errors import ForwardMismatch
from engine.probe import forward_unverified
from engine.weights import load_network

CPU = torch.device("cpu")


@pytest.fixture
def probed(new_model, tmp_path):
    """A model with a probe whose answers are off by so much."""

    def make(off: float):
        model = new_model()
        network = load_network(model, CPU)
        x_BCHW = torch.rand(3, 1, 8, 8, generator=torch.Generator().manual_seed(0))
        x, y = (tensor.permute(0, 2, 3, 1).contiguous() for tensor in (x_BCHW, network(x_BCHW) + off))
        save_file({"x": x, "y": y}, tmp_path / "probe")
        return network, replace(model, probe=tmp_path / "probe")

    return make


def test_an_upload_without_a_probe_is_unverified_and_our_own_network_is_not(new_model):
    model = new_model()
    network = load_network(model, CPU)
    assert forward_unverified(network, model, CPU)
    assert not forward_unverified(network, replace(model, made_here=True), CPU)


@pytest.mark.parametrize("off", [0.0, 5e-4])
def test_a_probe_that_agrees_verifies(probed, off):
    assert not forward_unverified(*probed(off), CPU)


@pytest.mark.parametrize("off", [2e-3, 1.0, float("nan")])
def test_a_probe_that_disagrees_is_said_with_its_distance(probed, off):
    with pytest.raises(ForwardMismatch, match="off by up to"):
        forward_unverified(*probed(off), CPU)
