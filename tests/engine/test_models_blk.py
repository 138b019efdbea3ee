import pytest
import torch

from engine.models import Autoencoder, build, chunk_size
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
    for conv in [*network.encoder.blocks, *network.decoder.blocks, network.decoder.head]:
        conv.register_forward_hook(lambda _, inputs, output: seen.append(output))
    network(torch.rand(2, 8, 8, 3).permute(0, 3, 1, 2))
    assert len(seen) == 5
    assert all(h.is_contiguous(memory_format=torch.channels_last) for h in seen)


def test_chunks_shrink_only_for_large_images():
    assert chunk_size(BlkArchitecture(blocks=4, filters=64), ImageShape(32, 32, 3)) == 64
    assert chunk_size(BlkArchitecture(blocks=4, filters=512), ImageShape(64, 64, 3)) == 64
    assert chunk_size(BlkArchitecture(blocks=4, filters=64), ImageShape(512, 512, 3)) == 8
    assert chunk_size(BlkArchitecture(blocks=4, filters=512), ImageShape(1024, 1024, 3)) == 1
