"""Published datasets by their names: from a folder that the user names, else from their publishers."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from flashcards.cli.bars import transfer_bar
from flashcards.contract.resources import Dataset
from flashcards.errors import FlashcardsError

if TYPE_CHECKING:
    from flashcards.client import Client

FOLDER_VARIABLE = "FLASHCARDS_DATA"


def fetch_published(name: str, folder: Path, keep: bool, quiet: bool) -> list[Path]:
    """The files, in a folder of that name. Without `keep` an npz of the user's own stays where it is."""
    # `flashcards --help` does without the HTTP client.
    from flashcards.client.fetch import fetch
    from flashcards.client.official import OFFICIAL

    if name not in OFFICIAL:
        raise FlashcardsError(f"there is no published dataset {name!r}: {', '.join(OFFICIAL)}; ids begin with dataset_")
    if own := _own(name):
        return [_copied(own, folder) if keep else own]
    found = []
    for file in OFFICIAL[name]:
        with transfer_bar(file.name, quiet) as progress:
            found.append(fetch(file, folder / name, progress))  # two of them call their files the same
    return found


def push_published(client: "Client", name: str, folder: Path, input: str, invert: bool, quiet: bool) -> Dataset:
    from flashcards.client.gather import gather

    files = fetch_published(name, folder, keep=False, quiet=quiet)
    with tempfile.TemporaryDirectory() as between, transfer_bar(name, quiet) as progress:
        return client.datasets.push(gather(files, Path(between, f"{name}.zip")), name, progress, input, invert)


def _own(name: str) -> Path | None:
    folder = os.environ.get(FOLDER_VARIABLE)
    path = Path(folder, f"{name}.npz") if folder else None
    return path if path and path.is_file() else None


def _copied(own: Path, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path, part = folder / own.name, folder / f"{own.name}.part"
    if path.exists() and path.samefile(own):
        return path
    shutil.copyfile(own, part)
    return part.replace(path)
