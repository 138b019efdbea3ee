"""Images on their way into the npz: brought to a size and to channels, inverted; and a word on what was done."""

from collections.abc import Iterator, Sequence
from typing import TypedDict

import numpy as np
from PIL import Image

from service.files import picture
from service.files.errors import BadFile
from service.files.parts import Size, Values

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
        """One at a time where they are resized: they may become much larger than they were."""
        if self.size is None or batch.shape[1:] == self.size:
            yield self._inverted(batch)
            return
        for image in batch:
            yield self._inverted(_fitted(image, self.size)[None])

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


def _fitted(image: Values, wanted: Size) -> Values:
    if image.dtype != np.uint8:
        return _fitted_floats(image.astype("f4"), wanted)
    plain = Image.fromarray(np.ascontiguousarray(image if image.shape[2] == 3 else image[..., 0]))
    return picture.pixels(picture.fitted(plain, wanted))


def _fitted_floats(image: Values, wanted: Size) -> Values:
    planes = [image @ LUMA] if image.shape[2] == 3 and wanted.channels == 1 else list(image.transpose(2, 0, 1))
    sides = (wanted.width, wanted.height)
    resized = [
        np.asarray(Image.fromarray(np.ascontiguousarray(plane)).resize(sides, Image.Resampling.BILINEAR))
        for plane in planes
    ]
    return np.stack(resized * (wanted.channels // len(resized)), axis=-1)


for kind in ("u1", "f4"):  # once before the sandbox closes, as all that decodes
    for channels in (1, 3):
        _fitted(np.zeros((2, 2, channels), kind), Size(3, 3, 4 - channels))
