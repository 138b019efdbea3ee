import numpy as np
import pytest
import torch
from torch.nn import functional as F

from engine.models.blk import BlkAutoencoder
from engine.passes.onnx_passes import OnnxPasses, phase
from flashcards.contract.architecture import BlkArchitecture
from flashcards.contract.image import ImageShape


def network(blocks=2, filters=8, channels=3, **fields) -> BlkAutoencoder:
    architecture = BlkArchitecture(blocks=blocks, filters=filters, **fields)
    return BlkAutoencoder(architecture, ImageShape(8, 8, channels), torch.Generator().manual_seed(1)).requires_grad_(
        False
    )


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("head", ["linear", "sigmoid"])
@pytest.mark.parametrize(
    ("blocks", "filters", "channels", "side"),
    [(1, 8, 1, (8, 8)), (2, 8, 3, (8, 12)), (3, 16, 3, (16, 8)), (1, 5, 2, (6, 4)), (1, 1, 1, (2, 2))],
)
def test_the_graph_computes_what_the_network_does(blocks, filters, channels, side, activation, head):
    frozen = network(blocks, filters, channels, activation=activation, head=head)
    for conv in (*frozen.encoder.blocks, *frozen.decoder.blocks, frozen.decoder.head):
        conv.bias.uniform_(-0.5, 0.5)
    x_BCHW = torch.rand(3, channels, *side)
    torch.testing.assert_close(OnnxPasses(frozen, 1)(x_BCHW), frozen(x_BCHW), atol=2e-6, rtol=1e-5)


def test_the_halves_of_a_network_make_the_whole():
    frozen, x_BCHW = network(), torch.rand(5, 3, 8, 8)
    z_BCHW = OnnxPasses(frozen.encoder, 1)(x_BCHW)
    assert z_BCHW.shape == (5, 8, 2, 2)
    assert torch.equal(OnnxPasses(frozen.decoder, 1)(z_BCHW), OnnxPasses(frozen, 1)(x_BCHW))


def test_memory_formats_and_threads_leave_every_bit_alone():
    frozen, x_BCHW = network(), torch.rand(7, 8, 8, 3).permute(0, 3, 1, 2)
    answers = [OnnxPasses(frozen, threads)(x) for threads in (1, 2) for x in (x_BCHW, x_BCHW.contiguous())]
    assert all(torch.equal(answers[0], other) for other in answers[1:])


def test_what_is_not_finite_stays_so():
    frozen, x_BCHW = network(), torch.rand(2, 3, 8, 8)
    x_BCHW[1, 0, 3, 3] = float("nan")
    y_BCHW = OnnxPasses(frozen, 1)(x_BCHW)
    assert y_BCHW[0].isfinite().all()
    assert y_BCHW[1].isnan().any()


def test_four_small_convs_are_the_large_one():
    weight, x = np.random.default_rng(0).normal(size=(2, 3, 3, 3)), torch.randn(1, 3, 4, 5, dtype=torch.float64)
    large = F.conv2d(F.interpolate(x, scale_factor=2, mode="nearest"), torch.from_numpy(weight), padding=1)
    for row in (0, 1):
        for column in (0, 1):
            padded = F.pad(x, (1 - column, column, 1 - row, row))
            small = F.conv2d(padded, torch.from_numpy(phase(weight, row, column)))
            torch.testing.assert_close(small, large[:, :, row::2, column::2])


def test_a_network_it_has_no_graph_for_is_refused():
    with pytest.raises(TypeError, match="Linear"):
        OnnxPasses(torch.nn.Linear(2, 2), 1)
