"""Files on their way to the service and back: what they are made of, and where they go."""

import os
import shutil
import zipfile
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from flashcards.contract.image import IMAGE_SUFFIXES
from flashcards.errors import FlashcardsError

#: Called with the bytes sent so far, and all there are.
Progress = Callable[[int, int], None]

CHUNK = 1024**2
#: Larger files are uploaded in parts.
PARTS_ABOVE = 64 * 1024**2


def size_of(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def zip_images(folder: Path, to: Path) -> None:
    """The images below a folder, stored, since they are compressed already. The same images make the same bytes."""
    below = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    found = sorted(path.as_posix() for path in below if _is_image(path))
    if not found:
        raise FlashcardsError(f"there is no image in {folder}; {', '.join(IMAGE_SUFFIXES)} are taken")
    with zipfile.ZipFile(to, "w", zipfile.ZIP_STORED) as archive:
        for name in found:
            info = zipfile.ZipInfo(name)  # without the time of the file
            with (folder / name).open("rb") as image, archive.open(info, "w", force_zip64=True) as entry:
                shutil.copyfileobj(image, entry, CHUNK)


def zip_array(npy: Path, to: Path) -> None:
    """The array of an npy file as the `x` of an npz, which can be uploaded as a dataset."""
    part = to.with_name(f"{npy.name}.part")
    try:
        with (
            zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive,
            npy.open("rb") as array,
            archive.open(zipfile.ZipInfo("x.npy"), "w", force_zip64=True) as entry,
        ):
            shutil.copyfileobj(array, entry, CHUNK)
        part.replace(to)
    finally:
        part.unlink(missing_ok=True)


def _is_image(path: Path) -> bool:
    hidden = any(part.startswith(".") or part == "__MACOSX" for part in path.parts)
    return path.suffix.lower() in IMAGE_SUFFIXES and not hidden


def target(to: str | PathLike[str], name: str) -> Path:
    path = Path(to)
    return path / name if path.is_dir() else path
