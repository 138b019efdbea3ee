"""Capsules measured with a network of one's own."""

import subprocess
import sys

import numpy as np
import pytest
import torch

import flashcards
from engine import capsule as engine_capsule
from engine.data import Images
from engine.models import Autoencoder, build
from flashcards.contract.architecture import BlkArchitecture, DenseArchitecture
from flashcards.contract.capsule import read
from flashcards.contract.image import ImageShape

CPU = torch.device("cpu")


class Linear:
    """An autoencoder in numpy that keeps two of three numbers, doubled."""

    def encoder(self, x: np.ndarray) -> np.ndarray:
        return 2 * x[:, :2]

    def decoder(self, z: np.ndarray) -> np.ndarray:
        return np.pad(z / 2, ((0, 0), (0, 1)))


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(0).normal(1, 2, (50, 3))


def test_a_network_whose_moments_are_known(x):
    found = flashcards.measure_capsule(Linear(), [x[:20], x[20:]])
    assert found.facts.count == 50
    assert found.facts.latent == (2,)
    assert found.mean_D == pytest.approx(2 * x[:, :2].mean(0))
    assert found.covariance() == pytest.approx(4 * np.cov(x[:, :2].T))
    lost = np.abs(x[:, 2]) / 3
    assert (found.facts.eps1, found.facts.eps2) == pytest.approx((lost.min(), lost.max()))
    assert found.facts.mean_error == pytest.approx(lost.mean())
    assert found.facts.error_quantiles["0.25"] == pytest.approx(np.quantile(lost, 0.25))
    assert found.facts.channel_mean == pytest.approx([x.mean()])  # the numbers of a vector are one channel
    assert found.facts.channel_deviation == pytest.approx([x.std()])
    assert read(found.to_bytes()).facts == found.facts


def test_batches_with_labels_and_a_digest(x):
    labelled = flashcards.measure_capsule(Linear(), ((some, np.zeros(len(some))) for some in np.split(x, 5)), "b" * 64)
    assert labelled.facts.model_digest == "b" * 64
    assert labelled.facts.mean_error == pytest.approx(flashcards.measure_capsule(Linear(), [x]).facts.mean_error)


@pytest.fixture
def network() -> Autoencoder:
    return build(BlkArchitecture(blocks=1, filters=4), ImageShape(8, 8, 3), torch.Generator().manual_seed(0))


def test_a_torch_module_gets_the_capsule_that_the_engine_measures(network):
    images = Images(np.random.default_rng(0).integers(0, 256, (70, 8, 8, 3), np.uint8), (0.0, 1.0))
    rows = np.arange(70)
    ours = engine_capsule.measure(network, images, rows, 64, CPU).capsule()
    loader = ((images.batch(rows[first : first + 30], CPU), torch.zeros(30)) for first in range(0, 70, 30))
    theirs = flashcards.measure_capsule(network, loader)
    assert theirs.facts.latent == (4, 4, 4)
    assert theirs.mean_D == pytest.approx(ours.mean_D, abs=1e-6)
    assert theirs.covariance() == pytest.approx(ours.covariance(), abs=1e-6)
    for name in ("eps1", "eps2", "mean_error", "channel_mean", "channel_deviation"):
        assert getattr(theirs.facts, name) == pytest.approx(getattr(ours.facts, name), rel=1e-5)


@pytest.mark.parametrize("shape", [(64,), (8, 8)])
def test_vectors_and_grey_images_get_the_capsule_that_the_engine_measures(shape):
    """As uploads of these shapes are read: a table is images of one row and one channel."""
    size, pixels = ImageShape(*(1, *shape)[-2:], 1), np.random.default_rng(0).random((70, *shape), np.float32)
    network = build(
        DenseArchitecture(family="dense_ae", widths=(32,), latent=6), size, torch.Generator().manual_seed(0)
    )
    images = Images(pixels.reshape(70, *size), (0.0, 1.0))
    ours = engine_capsule.measure(network, images, np.arange(70), 64, CPU).capsule()

    class Own(torch.nn.Module):
        """Of whoever has no channels."""

        def encoder(self, x):
            return network.encoder(x.reshape(len(x), 1, size.height, size.width))

        def decoder(self, z):
            return network.decoder(z).reshape(len(z), *shape)

    theirs = flashcards.measure_capsule(Own(), torch.from_numpy(pixels).split(30))
    assert theirs.covariance() == pytest.approx(ours.covariance(), abs=1e-6)
    for name in ("eps1", "eps2", "channel_mean", "channel_deviation"):
        assert getattr(theirs.facts, name) == pytest.approx(getattr(ours.facts, name), rel=1e-5)
    assert theirs.tones_CQ == pytest.approx(ours.tones_CQ, abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_a_module_of_any_precision(network, dtype):
    x = torch.rand(20, 3, 8, 8)
    exact = flashcards.measure_capsule(network, [x])
    found = flashcards.measure_capsule(network.to(dtype), [x.to(dtype)])
    assert found.facts.mean_error == pytest.approx(exact.facts.mean_error, rel=0.02)


def test_a_module_is_measured_as_in_use_and_left_as_it_was(network):
    modes = []
    network.train()
    network.decoder.eval()
    network.encoder.register_forward_hook(lambda part, *_: modes.append((part.training, torch.is_grad_enabled())))
    flashcards.measure_capsule(network, [torch.rand(4, 3, 8, 8)])
    assert modes == [(False, False)]
    assert (network.training, network.encoder.stem.training, network.decoder.head.training) == (True, True, False)

    class Fails(torch.nn.Module):
        def forward(self, x):
            raise RuntimeError("a defect of its own")

    network.encoder = Fails()
    with pytest.raises(RuntimeError, match="of its own"):
        flashcards.measure_capsule(network, [torch.rand(4, 3, 8, 8)])
    assert network.encoder.training


def changed(**parts):
    return type("Changed", (Linear,), {name: staticmethod(part) for name, part in parts.items()})()


@pytest.mark.parametrize(
    ("module", "batches", "words"),
    [
        (Linear(), [], "at least 2 images; there were 0"),
        (Linear(), [np.ones((1, 3))], "at least 2 images; there were 1"),
        (Linear(), [np.full((4, 3), np.nan)], "not a finite number"),
        (Linear(), [np.ones((4, 3)), np.ones((4, 5))], r"images differ in shape: \(3,\), then \(5,\)"),
        (changed(decoder=lambda z: z), [np.ones((4, 3))], "no autoencoder of them"),
        (changed(encoder=lambda x: (x, x), decoder=lambda z: z[0]), [np.ones((4, 3))], "the encoder gives a tuple"),
        (
            changed(encoder=lambda x: x.sum(), decoder=lambda z: np.ones((4, 3))),
            [np.ones((4, 3))],
            "one latent an image",
        ),
        (changed(encoder=lambda x: x, decoder=lambda z: z), [np.ones(4)], "none is left for an image"),
    ],
)
def test_what_cannot_be_measured_is_said_in_words(module, batches, words):
    with pytest.raises(ValueError, match=words):
        flashcards.measure_capsule(module, batches)


def test_it_needs_no_torch():
    code = "import sys, flashcards; flashcards.measure_capsule; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
