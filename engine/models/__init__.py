"""Networks out of architectures: one file a family."""

import torch

from engine.models.blk import BlkAutoencoder
from engine.models.conv_ae import ConvAutoencoder
from engine.models.dense_ae import DenseAutoencoder
from engine.models.layers import Autoencoder, Classifier
from engine.models.resnet18 import ResnetClassifier
from engine.models.tasknet import TasknetClassifier
from engine.models.tasknet_ae import TasknetAutoencoder
from engine.models.vae import VaeAutoencoder
from engine.models.vgg16 import VggClassifier
from flashcards.contract.architecture import Architecture
from flashcards.contract.image import ImageShape

__all__ = ["Autoencoder", "Classifier", "Network", "build", "chunk_size"]

Network = Autoencoder | Classifier

FAMILIES = {
    "blk": BlkAutoencoder,
    "vae": VaeAutoencoder,
    "conv_ae": ConvAutoencoder,
    "dense_ae": DenseAutoencoder,
    "tasknet_ae": TasknetAutoencoder,
    "tasknet": TasknetClassifier,
    "resnet18": ResnetClassifier,
    "vgg16": VggClassifier,
}
CHUNK = 64  # images a forward pass, where nothing else says how many
WIDEST_MAP = 2**29  # bytes of the widest feature map of a chunk; only images beyond 128x128 come near it


def build(architecture: Architecture, image: ImageShape, generator: torch.Generator | None = None) -> Network:
    return FAMILIES[architecture.family](architecture, image, generator)


def chunk_size(architecture: Architecture, image: ImageShape) -> int:
    """How many images go through at once: 64, or the power of two below it that keeps large images in memory."""
    # While its maze is drawn an image takes about as much memory as 16 channels of it.
    bytes_an_image = 4 * max(architecture.widest(image), 16 * image.height * image.width)
    chunk = CHUNK
    while chunk > 1 and chunk * bytes_an_image > WIDEST_MAP:
        chunk //= 2
    return chunk
