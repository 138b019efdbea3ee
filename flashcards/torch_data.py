"""Cards as a torch `Dataset`. The client needs no torch: it is taken from whoever asks for one."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Not the client's: whoever unpickles a dataset imports this module alone.
Cards = NDArray[np.float32] | NDArray[np.uint8]
Transform = Callable[[Any], Any]


def torch_dataset(
    cards: Cards | str | PathLike[str],
    range: tuple[float, float] = (0.0, 1.0),
    transform: Transform | None = None,
) -> Any:
    """Of an array N x H x W x C, or of the npy or npz file of a set: an npy file stays on the disk.

    An item is a float tensor C x H x W; uint8 cards are brought to `range`. It is for `torch.utils.data.DataLoader`.
    """
    found = cards if isinstance(cards, np.ndarray) else _opened(Path(cards))
    if found.ndim != 4:
        raise ValueError(f"cards are N x H x W x C, and these have {found.ndim} sides")
    return _card_dataset()(found, range, transform)


def _opened(path: Path) -> Cards:
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            inside: Cards = arrays["x"]
        return inside
    mapped: Cards = np.load(path, mmap_mode="r", allow_pickle=False)
    return mapped


@cache
def _card_dataset() -> Any:
    torch, base = import_module("torch"), import_module("torch.utils.data").Dataset

    class CardDataset(base):  # type: ignore[misc, valid-type]
        """Flashcards, one by one."""

        def __init__(self, cards: Cards, range: tuple[float, float], transform: Transform | None) -> None:
            self.cards, self.range, self.transform = cards, range, transform

        def __len__(self) -> int:
            return len(self.cards)

        def __getitem__(self, index: int) -> Any:
            card = np.array(self.cards[index], dtype=np.float32)  # a copy: torch would write through to the file
            if self.cards.dtype == np.uint8:
                low, high = self.range
                card = (low + card * np.float32((high - low) / 255)).astype(np.float32)
            tensor = torch.from_numpy(np.ascontiguousarray(card.transpose(2, 0, 1)))
            return tensor if self.transform is None else self.transform(tensor)

    # Found under this name again by the processes of a DataLoader.
    CardDataset.__module__, CardDataset.__qualname__ = __name__, "CardDataset"
    return CardDataset


def __getattr__(name: str) -> Any:
    if name == "CardDataset":
        return _card_dataset()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
