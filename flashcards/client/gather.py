"""The files of a published dataset as the one file that an upload is: the service reads them, this only packs."""

import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path

from flashcards.client.files import CHUNK

#: Omniglot's two zips are two splits; what is in them comes along as it is.
SPLITS = {"images_background.zip": "train", "images_evaluation.zip": "test"}


def gather(files: Sequence[Path], to: Path) -> Path:
    """A single file goes as it is. Nothing is compressed: it was before."""
    if len(files) == 1:
        return files[0]
    with zipfile.ZipFile(to, "w", zipfile.ZIP_STORED) as archive:
        for file in files:
            if file.name in SPLITS:
                _add_split(archive, file, SPLITS[file.name])
            else:
                with (
                    file.open("rb") as source,
                    archive.open(zipfile.ZipInfo(file.name), "w", force_zip64=True) as entry,
                ):
                    shutil.copyfileobj(source, entry, CHUNK)
    return to


def _add_split(archive: zipfile.ZipFile, file: Path, split: str) -> None:
    with zipfile.ZipFile(file) as found:
        for info in found.infolist():
            below = info.filename.partition("/")[2]  # without images_background/
            if below.endswith(".png"):
                archive.writestr(zipfile.ZipInfo(f"{split}/{below}"), found.read(info))
