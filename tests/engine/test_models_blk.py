import pytest
import torch

from engine.models import Autoencoder, build, chunk_size
from engine.models.blk import fold_upsampling, multiplications
from flashcards.contract.architecture import BlkArchitecture
from flashcards.contract.image import ImageShape

COLOUR = ImageShape(32, 32, 3)


@pytest.mark.parametrize(
    ("blocks", "filters", "parameters", "latent"),
    [
        (4, 16, 24_083, 64),
        (4, 32, 94_243, 128),
        (4, 64, 372_803, 256),
        (4, 128, 1_482_883, 512),
        (3, 64, 298_947, 1024),
        (2, 32, 57_251, 2048),
    ],
)
def test_the_six_rows_of_the_paper(blocks, filters, parameters, latent):
    network = build(BlkArchitecture(blocks=blocks, filters=filters), COLOUR)
    assert sum(parameter.numel() for parameter in network.parameters()) == parameters
    assert network.encoder(torch.zeros(1, 3, 32, 32)).numel() == latent


@pytest.mark.parametrize("channels", [1, 3])
def test_tensors_are_those_of_the_contract_in_order(channels):
    architecture, image = BlkArchitecture(blocks=3, filters=5), ImageShape(8, 8, channels)
    network = build(architecture, image)
    assert [(name, tuple(t.shape)) for name, t in network.state_dict().items()] == architecture.tensors(image)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("head", ["linear", "sigmoid"])
def test_it_computes_the_paper_layer_by_layer(activation, head):
    network = build(BlkArchitecture(blocks=2, filters=6, activation=activation, head=head), COLOUR)
    x = torch.rand(2, 3, 8, 8)
    act = getattr(torch, activation)

    h = act(network.encoder.stem(x))
    for conv in network.encoder.blocks:
        h = torch.nn.functional.max_pool2d(act(conv(h)), 2)
    h = act(network.decoder.stem(act(network.encoder.latent(h))))
    for conv in network.decoder.blocks:
        h = act(conv(h.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)))
    y = network.decoder.head(h)

    torch.testing.assert_close(network(x), torch.sigmoid(y) if head == "sigmoid" else y)


def test_init_is_xavier_with_zero_bias_and_follows_its_generator():
    def made(seed: int) -> Autoencoder:
        return build(BlkArchitecture(blocks=1, filters=8), COLOUR, torch.Generator().manual_seed(seed))

    stem = made(0).encoder.stem
    bound = (6 / (9 * 3 + 9 * 8)) ** 0.5
    assert 0.9 * bound < stem.weight.abs().max() <= bound
    assert not stem.bias.any()
    assert torch.equal(stem.weight, made(0).encoder.stem.weight)
    assert not torch.equal(stem.weight, made(1).encoder.stem.weight)


def test_every_layer_hands_channels_last_on():
    network = build(BlkArchitecture(blocks=2, filters=8), COLOUR)
    seen = []

    def watched(h: torch.Tensor) -> torch.Tensor:
        seen.append(h)
        return torch.tanh(h)

    network.encoder.activation = network.decoder.activation = watched
    seen.append(network(torch.rand(2, 8, 8, 3).permute(0, 3, 1, 2)))
    assert len(seen) == 8
    assert all(h.is_contiguous(memory_format=torch.channels_last) for h in seen)


@pytest.mark.parametrize("filters", [1, 3, 8])
def test_folding_the_upsampling_changes_neither_answer_nor_gradient(filters):
    decoder = build(BlkArchitecture(blocks=1, filters=filters), COLOUR).decoder.double()
    conv, h = decoder.blocks[0], torch.randn(2, filters, 4, 6, dtype=torch.float64, requires_grad=True)
    large = torch.nn.functional.interpolate(h, scale_factor=2, mode="nearest")
    folded = fold_upsampling(conv.weight, decoder.meeting)
    answers = [conv(large), torch.nn.functional.conv_transpose2d(h, folded, conv.bias, stride=2, padding=1)]
    torch.testing.assert_close(*answers)
    torch.testing.assert_close(*(torch.autograd.grad(y.sin().sum(), (conv.weight, conv.bias, h)) for y in answers))


def test_multiplications_are_those_of_the_layers_that_the_paper_draws():
    architecture, image = BlkArchitecture(blocks=2, filters=4), ImageShape(8, 12, 3)
    shapes = [shape for name, shape in architecture.tensors(image) if name.endswith("weight")]
    pixels = [96, 96, 24, 6, 6, 24, 96, 96]  # of the image that each conv writes, before a pool
    by_layer = sum(9 * out * into * many for (out, into, _, _), many in zip(shapes, pixels, strict=True))
    assert multiplications(architecture, image) == by_layer


def test_chunks_shrink_only_for_large_images():
    assert chunk_size(BlkArchitecture(blocks=4, filters=64), ImageShape(32, 32, 3)) == 64
    assert chunk_size(BlkArchitecture(blocks=4, filters=512), ImageShape(64, 64, 3)) == 64
    assert chunk_size(BlkArchitecture(blocks=4, filters=64), ImageShape(512, 512, 3)) == 8
    assert chunk_size(BlkArchitecture(blocks=4, filters=512), ImageShape(1024, 1024, 3)) == 1
