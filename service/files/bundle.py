"""A zip of the files of a well-known dataset, under the names that they are published with."""

from collections.abc import Iterable

from service.files import idx, zipped
from service.files.errors import BadFile
from service.files.layout import is_litter
from service.files.mat import read_mat
from service.files.parts import Part
from service.files.streams import Open, Unzipped, unpacked
from service.files.upload import Upload
from service.files.words import quoted, several, size

MAX_ENTRIES = 64
IDX_NAMES = {name for pair in idx.NAMES.values() for name in pair}
MAT_NAMES = {"train": "train_32x32.mat", "test": "test_32x32.mat"}
UNFIT = "the zip is not a dataset"


def is_bundle(names: Iterable[str]) -> bool:
    return any(_plain(name) in IDX_NAMES | set(MAT_NAMES.values()) for name in names)


def read_bundle(upload: Upload, max_bytes: int) -> dict[str, Part]:
    entries = [entry for entry in zipped.entries(upload, MAX_ENTRIES) if not is_litter(entry)]
    found = {_plain(entry.name): entry for entry in entries}
    _check(entries, found, max_bytes)
    opened = {name: _opened(upload, entry) for name, entry in found.items()}
    if set(found) <= set(MAT_NAMES.values()):
        return {split: read_mat(opened[name], quoted(name)) for split, name in MAT_NAMES.items() if name in opened}
    return {split: _idx(opened, *pair) for split, pair in idx.NAMES.items() if set(pair) & set(opened)}


def _plain(name: str) -> str:
    """Some mirrors write train-images.idx3-ubyte, and some unpacked the files."""
    return name.rpartition("/")[2].removesuffix(".gz").replace(".idx", "-idx")


def _check(entries: list[zipped.Entry], found: dict[str, zipped.Entry], max_bytes: int) -> None:
    known = next(names for names in (IDX_NAMES, set(MAT_NAMES.values())) if names & set(found))
    others = [entry.name for entry in entries if _plain(entry.name) not in known]
    if others:
        raise BadFile(UNFIT, f"the zip also holds {several(others)}; {several(known)} are taken together")
    if len(found) != len(entries):
        raise BadFile(UNFIT, f"a file is in it twice: {several(entry.name for entry in entries)}")
    if not {*idx.NAMES["train"][:1], MAT_NAMES["train"]} & set(found):
        raise BadFile(UNFIT, f"there are no training images in it: it holds {several(found)}")
    inflated = sum(entry.size for entry in entries)
    if inflated > max_bytes:
        raise BadFile("the dataset is too large", f"it takes {size(inflated)}, and {size(max_bytes)} are allowed")


def _opened(upload: Upload, entry: zipped.Entry) -> Open:
    return unpacked(lambda: Unzipped(upload, entry), quoted(entry.name))


def _idx(opened: dict[str, Open], images: str, labels: str) -> Part:
    if images not in opened:
        raise BadFile(UNFIT, f"{labels} is there without {images}")
    return idx.read_idx(opened[images], opened.get(labels), images, labels)
