"""CIFAR's binary form: records of one label (CIFAR-10) or two (CIFAR-100: coarse, fine), then 32x32 in three planes.

Nothing in the file says what it is, so its size and every label in it have to be right.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from service.files import tar
from service.files.errors import BadFile
from service.files.parts import Part, Pixels, Size, Values
from service.files.streams import Limited, Open, Rewound, Span, Stream, exactly, records
from service.files.upload import Upload
from service.files.words import quoted, several

SIZE = Size(32, 32, 3)
PLANES = 3 * 32 * 32
BAD_LABEL = "a label is out of range"
TAKEN = "the official cifar-10-binary.tar.gz and cifar-100-binary.tar.gz are taken"


class Kind(NamedTuple):
    name: str
    classes: tuple[int, ...]  # of each label byte; the last is the one that is kept
    files: dict[str, tuple[str, ...]]
    label_names: str

    @property
    def width(self) -> int:
        return len(self.classes) + PLANES

    @property
    def data(self) -> set[str]:
        return {name for files in self.files.values() for name in files}


KINDS = (
    Kind(
        "CIFAR-10",
        (10,),
        {"train": tuple(f"data_batch_{number}.bin" for number in range(1, 6)), "test": ("test_batch.bin",)},
        "batches.meta.txt",
    ),
    Kind("CIFAR-100", (20, 100), {"train": ("train.bin",), "test": ("test.bin",)}, "fine_label_names.txt"),
)


def kind_of(upload: Upload) -> Kind | None:
    return next((kind for kind in KINDS if _fits(upload, kind)), None)


def _fits(upload: Upload, kind: Kind) -> bool:
    if not upload.size or upload.size % kind.width:
        return False
    batches = records(Span(upload, 0, upload.size), upload.size // kind.width, kind.width, kind.name)
    return all(_labels_fit(batch, kind) for batch in batches)


def _labels_fit(batch: Pixels, kind: Kind) -> bool:
    return bool((batch[:, : len(kind.classes)] < np.array(kind.classes)).all())


def read_bin(upload: Upload, kind: Kind) -> dict[str, Part]:
    return {"train": _part([(kind.name, upload.size, lambda: Span(upload, 0, upload.size))], kind)}


def read_tar(open: Open, max_bytes: int) -> dict[str, Part]:
    archive = Rewound(open)
    found = tar.members(archive, max_bytes, {name for kind in KINDS for name in kind.data})
    kind = next((kind for kind in KINDS if kind.data & set(found)), None)
    if kind is None:
        raise BadFile(tar.UNFIT, f"it holds {several(found) or 'nothing'}; {TAKEN}")
    _check_members(found, kind)
    names = _label_names(archive, found.get(kind.label_names), kind)
    return {
        split: _part([_opened(archive, found[name]) for name in files if name in found], kind, names)
        for split, files in kind.files.items()
        if any(name in found for name in files)
    }


Opened = tuple[str, int, Open]


def _opened(archive: Rewound, member: tar.Member) -> Opened:
    return member.name, member.size, lambda: Limited(archive.at(member.begin), member.size)


def _check_members(found: dict[str, tar.Member], kind: Kind) -> None:
    for name, member in found.items():
        if name in kind.data and (member.size % kind.width or not member.size):
            raise BadFile(tar.UNFIT, f"{quoted(member.name)} is not made of records of {kind.width:,} bytes")
        if name not in kind.data and name.endswith(".bin"):
            raise BadFile(tar.UNFIT, f"{quoted(member.name)} is no part of {kind.name}; {TAKEN}")
    if not set(found) & set(kind.files["train"]):
        raise BadFile(tar.UNFIT, f"there is a test split and no train split; {TAKEN}")


def _label_names(archive: Rewound, member: tar.Member | None, kind: Kind) -> list[str]:
    """Beside the data, a line each; left out where they are not one for each class."""
    if member is None:
        return []
    text = exactly(archive.at(member.begin), member.size, quoted(member.name)).decode("utf-8", "replace")
    names = text.split()
    fits = len(names) == kind.classes[-1] and all(name.isprintable() and len(name) <= 60 for name in names)
    return names if fits else []


def _part(files: list[Opened], kind: Kind, names: list[str] | None = None) -> Part:
    labels: list[Values] = []
    count = sum(length for _, length, _ in files) // kind.width
    return Part(count, _images(files, kind, labels), partial(iter, labels), names or (), SIZE)


def _images(files: list[Opened], kind: Kind, labels: list[Values]) -> Iterator[Values]:
    for name, length, open in files:
        stream: Stream = open()
        for batch in records(stream, length // kind.width, kind.width, quoted(name)):
            if not _labels_fit(batch, kind):
                raise BadFile(BAD_LABEL, f"{quoted(name)} has a label that {kind.name} does not have: is it damaged?")
            labels.append(batch[:, len(kind.classes) - 1].astype("<i8"))
            yield batch[:, len(kind.classes) :].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
