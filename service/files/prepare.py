"""Images on their way into the npz: brought to a size and to channels, inverted; and a word on what was done."""

from collections.abc import Iterator, Sequence
from math import prod
from typing import TypedDict

import numpy as np
from PIL import Image

from service.files import picture
from service.files.errors import BadFile
from service.files.parts import Size, Values

FILTER = Image.Resampling.BILINEAR
CHUNK = 1 << 20
LUMA = np.array([299, 587, 114], "f4") / 1000  # as Pillow weighs the colours of bytes
UNFIT = "the images cannot be prepared"


class Told(TypedDict):
    input: str | None
    resize: str | None
    channels: str | None
    invert: bool


class Preparation:
    def __init__(self, input: Sequence[int] | None, invert: bool) -> None:
        self.size = Size(*input) if input else None
        self._invert = invert
        self._resized = False
        self._channels: str | None = None

    def note(self, found: Size) -> None:
        """An image of this size comes: what will be done to it?"""
        if self.size is None:
            return
        self._resized |= found[:2] != self.size[:2]
        if found.channels != self.size.channels:
            self._channels = "copied" if found.channels == 1 else "luma"

    def becomes(self, found: Size) -> Size:
        if self.size is None:
            return found
        if found.channels not in (1, 3, self.size.channels):
            raise BadFile(UNFIT, f"they have {found.channels} channels: ?input= takes grey or colour images")
        self.note(found)
        return self.size

    def images(self, batch: Values) -> Iterator[Values]:
        """A few at a time where they are resized: they may become much larger than they were."""
        if self.size is None or batch.shape[1:] == self.size:
            yield self._inverted(batch)
            return
        at_once = max(1, CHUNK // prod(self.size))
        for begin in range(0, len(batch), at_once):
            yield self._inverted(_fitted(batch[begin : begin + at_once], self.size))

    def _inverted(self, batch: Values) -> Values:
        if not self._invert:
            return batch
        if batch.dtype != np.uint8:
            raise BadFile(UNFIT, "?invert= takes uint8: floating images do not say what is white. Invert them yourself")
        return 255 - batch

    def told(self) -> Told | None:
        if not (self._resized or self._channels or self._invert):
            return None
        return {
            "input": str(self.size) if self.size else None,
            "resize": "bilinear" if self._resized else None,
            "channels": self._channels,
            "invert": self._invert,
        }


def _fitted(batch: Values, wanted: Size) -> Values:
    fit = _fit if batch.dtype == np.uint8 else _fit_floats
    made = np.empty((len(batch), *wanted), "u1" if batch.dtype == np.uint8 else "f4")
    for image, row in zip(batch, made, strict=True):
        row[...] = fit(image, wanted)  # grey is copied to all channels of the row
    return made


def _fit(image: Values, wanted: Size) -> Values:
    grey = image.shape[2] == 1
    plain = Image.fromarray(np.ascontiguousarray(image[..., 0] if grey else image))
    return picture.pixels(picture.fitted(plain, wanted._replace(channels=1) if grey else wanted))


def _fit_floats(image: Values, wanted: Size) -> Values:
    planes = image.astype("f4").transpose(2, 0, 1)
    if len(planes) > wanted.channels:
        planes = np.tensordot(LUMA, planes, 1)[None]
    sides = (wanted.width, wanted.height)
    images = [Image.fromarray(np.ascontiguousarray(plane)) for plane in planes]
    return np.stack([np.asarray(image.resize(sides, FILTER)) for image in images], axis=-1)


for kind in ("u1", "f4"):  # once before the sandbox closes, as all that decodes
    for channels in (1, 3):
        _fitted(np.zeros((1, 2, 2, channels), kind), Size(3, 3, 4 - channels))
