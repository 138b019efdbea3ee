"""cards.npy, written from front to back while cards are made, and readable whenever it is closed."""

import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np

from engine.errors import CardsUnfit
from engine.pictures import quantize
from engine.work import Product
from flashcards.contract.image import ImageShape
from flashcards.contract.recipe import CardDtype

CARDS = Product("cards.npy", "application/octet-stream")

# numpy would let the header grow with the digits of the count, and with it move the data. 128 bytes hold any shape the
# contract allows, so the count can be written again when it is known.
HEADER = 128
COPIED_AT_ONCE = 2**20
DESCR = {"float32": "<f4", "uint8": "|u1"}


def within(cards_NHWC: np.ndarray, range: tuple[float, float]) -> np.ndarray:
    """A card is an image, and images end where the range ends; a linear head does not, and what it adds there teaches
    the wrong thing: a background that is never quite black, strokes that are whiter than white."""
    return np.clip(cards_NHWC, *map(np.float32, range))


class CardFile:
    """A plain file, no memory map: what was written belongs to the page cache, not to this process."""

    def __init__(self, path: Path, image: ImageShape, dtype: CardDtype, range: tuple[float, float]) -> None:
        self.path, self.image, self.dtype, self.range = path, image, dtype, range
        self.count = 0

    def __enter__(self) -> Self:
        self._file = self.path.open("wb")
        self._file.write(self._header())
        return self

    def append(self, cards_NHWC: np.ndarray) -> None:
        as_told = quantize if self.dtype == "uint8" else within
        cards_NHWC = as_told(cards_NHWC, self.range)
        self._file.write(np.ascontiguousarray(cards_NHWC, dtype=DESCR[self.dtype]))
        self.count += len(cards_NHWC)

    def copy_to(self, target: BinaryIO) -> None:
        """The cards so far, without the header."""
        self._file.flush()
        with self.path.open("rb") as source:
            source.seek(HEADER)
            shutil.copyfileobj(source, target, COPIED_AT_ONCE)

    def take_over(self, source: BinaryIO, count: int) -> None:
        """Begin with cards that an earlier attempt has made."""
        shutil.copyfileobj(source, self._file, COPIED_AT_ONCE)
        self.count = count

    def join(self, path: Path) -> None:
        """Behind these, the cards of a file of the same kind."""
        cards_NHWC = np.load(path, mmap_mode="r", allow_pickle=False)
        kind = (cards_NHWC.shape[1:], cards_NHWC.dtype, cards_NHWC.offset)
        if kind != (tuple(self.image), np.dtype(DESCR[self.dtype]), HEADER):
            raise CardsUnfit(f"{path.name} holds {cards_NHWC.dtype} of {cards_NHWC.shape}: it is no part of this set")
        with path.open("rb") as source:
            source.seek(HEADER)
            shutil.copyfileobj(source, self._file, COPIED_AT_ONCE)
        self.count += len(cards_NHWC)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file as file:
            file.seek(0)
            file.write(self._header())
            file.flush()
            os.fsync(file.fileno())

    def _header(self) -> bytes:
        """Version 1.0 of the .npy format: magic, length, a Python dict padded with spaces, a newline."""
        shape = (self.count, *self.image)
        text = f"{{'descr': '{DESCR[self.dtype]}', 'fortran_order': False, 'shape': {shape}, }}"
        body = text.ljust(HEADER - 11).encode("latin1") + b"\n"
        return b"\x93NUMPY\x01\x00" + len(body).to_bytes(2, "little") + body
