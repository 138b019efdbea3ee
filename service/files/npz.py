"""npz: a zip of named .npy arrays. Declared sizes are checked before a body is read, real ones while it is."""

import codecs
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf, isfinite
from typing import Any, NamedTuple, NotRequired, TypedDict

import numpy as np

from service.files.errors import BadFile
from service.files.looks import looks_like
from service.files.npy import CHUNK, Array, open_array
from service.files.parts import Part, Size
from service.files.upload import Upload
from service.files.words import several, sides, size

MAX_MEMBERS = 16
MAX_CLASSES = 100_000
MAX_VALUE = float(np.finfo(np.float32).max)
PAIRS = {"train": ("x_train.npy", "y_train.npy"), "test": ("x_test.npy", "y_test.npy")}
SINGLE = {"train": ("x.npy", "y.npy")}
ACCEPTED = frozenset(name for pairs in (PAIRS, SINGLE) for pair in pairs.values() for name in pair)
LAYOUT = "an npz holds x (and y), or x_train (and y_train, x_test, y_test)"
ENCRYPTED = 0x1 | 0x40 | 0x2000
DAMAGED = "the npz is damaged"
UNFIT = "the arrays are not a dataset"
DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, RuntimeError, OverflowError)

codecs.lookup("cp437")  # zipfile asks for it on the first name, when no module can be opened any more


class Limits(NamedTuple):
    max_bytes: int
    max_side: int
    max_channels: int
    max_vector: int = 0  # the width of an image of one row, where it may be more than a side


class SplitFacts(TypedDict):
    count: int
    shape: str
    dtype: str
    low: float
    high: float
    classes: int | None
    lowest_label: int | None
    highest_label: int | None
    labels: NotRequired[list[str] | None]


class Splits(TypedDict):
    format: str
    splits: dict[str, SplitFacts]
    preparation: NotRequired[Any]


def read_splits(upload: Upload, limits: Limits) -> Splits:
    head = upload.head()
    if not head.startswith(b"PK\x03\x04"):
        raise BadFile("not an npz file", f"it looks like {looks_like(head)}; save it with numpy.savez: {LAYOUT}")
    with _damage_is_bad(), zipfile.ZipFile(upload) as archive:
        splits = {split: _facts(x, y) for split, (x, y) in _pairs(archive, limits).items()}
    return {"format": "npz", "splits": splits}


@contextmanager
def open_parts(upload: Upload, limits: Limits) -> Iterator[dict[str, Part]]:
    """To be written anew, prepared."""
    with _damage_is_bad(), zipfile.ZipFile(upload) as archive:
        yield {split: _part(x, y) for split, (x, y) in _pairs(archive, limits).items()}


def _pairs(archive: zipfile.ZipFile, limits: Limits) -> dict[str, tuple[Array, Array | None]]:
    members = _members(archive, limits.max_bytes)
    layout = _layout(set(members))
    arrays = {name: _open(archive, info) for name, info in members.items()}
    _check_shapes(layout, arrays, limits)
    return {split: (arrays[x], arrays.get(y)) for split, (x, y) in layout.items()}


def _part(x: Array, y: Array | None) -> Part:
    if x.fortran:
        raise BadFile(UNFIT, f"{x.name} lies in Fortran order: to prepare it, save numpy.ascontiguousarray(x)")
    itemsize = 1 if x.dtype == np.uint8 else 4  # floating images become float32
    return Part(x.shape[0], x.images(), y.chunks if y else None, size=Size(*_image_shape(x)), itemsize=itemsize)


@contextmanager
def _damage_is_bad() -> Iterator[None]:
    try:
        yield
    except PermissionError:  # the sandbox's word, not the file's
        raise
    except DAMAGE as error:
        raise BadFile(DAMAGED, f"{str(error)[:200] or 'it ends early'}: save it and upload it again") from error


def _members(archive: zipfile.ZipFile, max_bytes: int) -> dict[str, zipfile.ZipInfo]:
    entries = archive.infolist()
    if len(entries) > MAX_MEMBERS:
        raise BadFile("too many arrays", f"there are {len(entries):,} in the file; {LAYOUT}")
    unknown = {entry.orig_filename for entry in entries} - ACCEPTED
    if unknown:
        raise BadFile("unknown arrays", f"{several(unknown)} cannot be taken; {LAYOUT}")
    members = {entry.orig_filename: entry for entry in entries}
    if len(members) != len(entries):
        raise BadFile(DAMAGED, "a name stands in it twice")
    for entry in entries:
        _check_entry(entry)
    inflated = sum(entry.file_size for entry in entries)
    if inflated > max_bytes:
        raise BadFile("the dataset is too large", f"it takes {size(inflated)}, and {size(max_bytes)} are allowed")
    return members


def _check_entry(entry: zipfile.ZipInfo) -> None:
    if entry.flag_bits & ENCRYPTED:
        raise BadFile("the npz is encrypted", f"{entry.filename} needs a password: upload it without one")
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise BadFile("the compression is unknown", f"{entry.filename}: numpy.savez or savez_compressed write it right")


def _layout(names: set[str]) -> dict[str, tuple[str, str]]:
    single = names & {"x.npy", "y.npy"}
    if single and names != single:
        raise BadFile(UNFIT, f"there is {several(names)} in one file; {LAYOUT}")
    pairs = SINGLE if single else PAIRS
    layout = {split: pair for split, pair in pairs.items() if pair[0] in names}
    for split, (x, y) in pairs.items():
        if x not in names and (split == "train" or y in names):
            raise BadFile(UNFIT, f"there is no {x}; {LAYOUT}")
    return layout


def _open(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Array:
    declared = entry.file_size
    entry.file_size += CHUNK  # zipfile would stop at the declared size in silence, however much follows
    return open_array(entry.filename, archive.open(entry), declared)


def _check_shapes(layout: dict[str, tuple[str, str]], arrays: dict[str, Array], limits: Limits) -> None:
    for x, y in layout.values():
        _check_images(arrays[x], limits)
        if y in arrays and arrays[y].shape != arrays[x].shape[:1]:
            labels, images = sides(arrays[y].shape), arrays[x].shape[0]
            raise BadFile(UNFIT, f"{y} is {labels}, and {x} has {images:,} images: one label for each, in one row")
    first, *others = [arrays[x] for x, _ in layout.values()]
    for other in others:
        if other.shape[1:] != first.shape[1:] or other.dtype.kind != first.dtype.kind:
            kinds = " and ".join(f"{each.name} has {sides(each.shape[1:])} {each.dtype}" for each in (first, other))
            raise BadFile(UNFIT, f"{kinds}: both splits need the same images")


def _check_images(array: Array, limits: Limits) -> None:
    if len(array.shape) not in (2, 3, 4) or array.shape[0] < 1:
        wanted = "images are N x height x width, or N x height x width x channels, vectors N x values"
        raise BadFile(UNFIT, f"{array.name} is {sides(array.shape)}; {wanted}, with N of at least 1")
    height, width, channels = _image_shape(array)
    widest = max(limits.max_side, limits.max_vector if height == 1 else 0)
    if not (1 <= height <= limits.max_side and 1 <= width <= widest):
        allowed = f"sides go from 1 to {limits.max_side}, of a vector to {max(limits.max_side, limits.max_vector)}"
        raise BadFile(UNFIT, f"{array.name} has images of {height}x{width}; {allowed}")
    if not 1 <= channels <= limits.max_channels:
        hint = "; channels come last: x.transpose(0, 2, 3, 1)" if height <= limits.max_channels else ""
        raise BadFile(UNFIT, f"{array.name} has {channels} channels; they go from 1 to {limits.max_channels}{hint}")


def _image_shape(array: Array) -> tuple[int, int, int]:
    """A vector is an image of one row."""
    if len(array.shape) == 2:
        return 1, array.shape[1], 1
    height, width, channels = (*array.shape[1:], 1)[:3]
    return height, width, channels


def _facts(x: Array, y: Array | None) -> SplitFacts:
    low, high = _range(x)
    known = set() if y is None else _known_labels(y)
    return {
        "count": x.shape[0],
        "shape": sides(_image_shape(x)),
        "dtype": x.dtype.name,
        "low": low,
        "high": high,
        "classes": len(known) or None,
        "lowest_label": min(known, default=None),
        "highest_label": max(known, default=None),
    }


def _range(array: Array) -> tuple[float, float]:
    low, high = inf, -inf
    for values in array.chunks():
        with np.errstate(all="ignore"):
            least, most = float(values.min()), float(values.max())
        if not (isfinite(least) and isfinite(most)):
            raise BadFile("the images are not finite", f"{array.name} holds NaN or infinity")
        low, high = min(low, least), max(high, most)
    if max(-low, high) > MAX_VALUE:
        raise BadFile("the images are out of range", f"{array.name} goes from {low:g} to {high:g}, past float32")
    return low, high


def _known_labels(array: Array) -> set[int]:
    known: set[int] = set()
    for labels in array.chunks():
        known.update(labels.tolist())
        if len(known) > MAX_CLASSES:
            raise BadFile(UNFIT, f"{array.name} has more than {MAX_CLASSES:,} different labels")
    return known
