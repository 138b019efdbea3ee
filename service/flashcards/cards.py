"""Reads a range of cards straight out of the stored .npy: only the rows asked for leave the store."""

import io
import math
from collections.abc import Iterator

import numpy as np
from numpy.lib import format as npy
from PIL import Image

from ledger.store import Store

HEADER_AT_MOST = 4096
GAP = 2
SMALLEST = 64
THINNEST = 8  # a vector is a strip


def read_cards(store: Store, tenant: str, digest: str, size: int, offset: int, limit: int) -> np.ndarray:
    head = io.BytesIO(store.read(tenant, digest, 0, min(size, HEADER_AT_MOST)))
    npy.read_magic(head)
    shape, _, dtype = npy.read_array_header_1_0(head)
    row_bytes = math.prod(shape[1:]) * dtype.itemsize
    count = max(0, min(limit, shape[0] - offset))
    if count == 0:
        return np.empty((0, *shape[1:]), dtype)
    data = store.read(tenant, digest, head.tell() + offset * row_bytes, count * row_bytes)
    return np.frombuffer(data, dtype).reshape(count, *shape[1:])


def read_batches(store: Store, tenant: str, digest: str, size: int, count: int, at_once: int) -> Iterator[np.ndarray]:
    for offset in range(0, count, at_once):
        yield read_cards(store, tenant, digest, size, offset, at_once)


def as_pixels(cards_NHWC: np.ndarray, low: float, high: float) -> np.ndarray:
    if cards_NHWC.dtype == np.uint8:
        return cards_NHWC
    scaled: np.ndarray = np.clip((cards_NHWC - low) / (high - low) * 255 + 0.5, 0, 255).astype(np.uint8)
    return scaled


def as_npz(cards_NHWC: np.ndarray) -> bytes:
    """Under the name `x`, so that a slice can be uploaded again as a dataset."""
    buffer = io.BytesIO()
    np.savez(buffer, x=cards_NHWC)
    return buffer.getvalue()


def as_png(cards_NHWC: np.ndarray, low: float, high: float) -> bytes:
    """A contact sheet of these cards."""
    pixels = as_pixels(cards_NHWC, low, high)
    pixels = pixels if pixels.shape[3] == 3 else np.repeat(pixels[..., :1], 3, axis=3)
    zoom = max(1, -(-SMALLEST // max(pixels.shape[1:3])))
    pixels = pixels.repeat(max(zoom, -(-THINNEST // pixels.shape[1])), axis=1).repeat(zoom, axis=2)
    count, height, width, _ = pixels.shape
    columns = math.ceil(math.sqrt(count))
    sheet = np.full((-(-count // columns) * (height + GAP) + GAP, columns * (width + GAP) + GAP, 3), 255, np.uint8)
    for place, card in enumerate(pixels):
        top, left = GAP + place // columns * (height + GAP), GAP + place % columns * (width + GAP)
        sheet[top : top + height, left : left + width] = card
    buffer = io.BytesIO()
    Image.fromarray(sheet).save(buffer, "PNG")
    return buffer.getvalue()
