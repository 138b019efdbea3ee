"""Which images of a zip are which split, and under which label: its folders say so.

1.png ...                              no labels
cat/1.png, dog/1.png ...               labels
greek/alpha/1.png, greek/beta/1.png    labels that are paths of two folders
train/cat/1.png, test/cat/1.png ...    two splits with labels; train/1.png, test/1.png without
"""

from collections.abc import Iterable
from typing import NamedTuple

from service.files.errors import BadFile
from service.files.words import quoted, several
from service.files.zipped import Entry

MAX_LABELS = 2_000
MAX_LABEL_TEXT = 50_000
SPLITS = ("train", "test")
#: What file managers put beside the images.
LITTER = {".ds_store", "thumbs.db", "desktop.ini"}
UNFIT = "the images are not laid out as a dataset"
MAX_FOLDERS = 2
LAYOUTS = "images lie at the top, in one folder a label, or in train/ and test/ with or without folders for labels"


Paths = list[tuple[list[str], Entry]]


class Picture(NamedTuple):
    entry: Entry
    label: int | None


class Layout(NamedTuple):
    splits: dict[str, list[Picture]]
    labels: list[str]


def lay_out(entries: Iterable[Entry], suffixes: Iterable[str]) -> Layout:
    """In the order of their names, whatever the order in the zip."""
    files = sorted((entry for entry in entries if not is_litter(entry)), key=lambda entry: entry.name)
    _check_suffixes(files, tuple(suffixes))
    below = _without_wrapper([(entry.name.split("/"), entry) for entry in files])
    found = _by_split(below)
    labels = sorted({_label(path) for part in found.values() for path, _ in part if len(path) > 1})
    _check_labels(labels)
    numbers = {label: number for number, label in enumerate(labels)}
    return Layout({split: _pictures(part, numbers) for split, part in found.items()}, labels)


def is_litter(entry: Entry) -> bool:
    *folders, name = entry.name.split("/")
    return entry.is_folder or "__MACOSX" in folders or name.lower() in LITTER


def _check_suffixes(files: list[Entry], suffixes: tuple[str, ...]) -> None:
    others = [entry.name for entry in files if not entry.name.lower().endswith(suffixes)]
    if others:
        raise BadFile("not only images", f"the zip also holds {several(others)}; {', '.join(suffixes)} are taken")
    if not files:
        raise BadFile("no images", f"there are none in the zip; {LAYOUTS}")


def _without_wrapper(paths: Paths) -> Paths:
    """A zipped folder often holds that folder, which is no label: there are folders in it."""
    while len({path[0] for path, _ in paths}) == 1 and paths[0][0][0] not in SPLITS:
        if any(len(path) < 3 for path, _ in paths):
            break
        paths = [(path[1:], entry) for path, entry in paths]
    return paths


def _by_split(paths: Paths) -> dict[str, Paths]:
    tops = {path[0] for path, _ in paths if len(path) > 1}
    if not tops & set(SPLITS):
        return {"train": paths}
    strange = [entry.name for path, entry in paths if len(path) < 2 or path[0] not in SPLITS]
    if strange:
        raise BadFile(UNFIT, f"there is {several(strange)} beside train/ and test/; {LAYOUTS}")
    if "train" not in tops:
        raise BadFile(UNFIT, f"there is test/ and no train/; {LAYOUTS}")
    return {split: [(path[1:], each) for path, each in paths if path[0] == split] for split in SPLITS if split in tops}


def _check_labels(labels: list[str]) -> None:
    if len(labels) > MAX_LABELS or sum(map(len, labels)) > MAX_LABEL_TEXT:
        most = f"{MAX_LABELS:,} folders with {MAX_LABEL_TEXT:,} letters in their names are the most"
        raise BadFile(UNFIT, f"there are {len(labels):,} labels; {most}. An npz takes more")


def _pictures(paths: Paths, numbers: dict[str, int]) -> list[Picture]:
    folders = len(paths[0][0]) - 1
    for path, entry in paths:
        if len(path) - 1 != folders or folders > MAX_FOLDERS:
            first, other = quoted(paths[0][1].name), quoted(entry.name)
            both = (
                f"{first} and {other} lie at different depths" if folders <= MAX_FOLDERS else f"{first} lies too deep"
            )
            raise BadFile(UNFIT, f"{both}; {LAYOUTS}")
    return [Picture(entry, numbers[_label(path)] if folders else None) for path, entry in paths]


def _label(path: list[str]) -> str:
    return "/".join(path[:-1])
