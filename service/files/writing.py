"""Splits become the npz that is kept: stored, in one go, never more than some images in memory."""

import zipfile
from itertools import chain
from math import prod

import numpy as np
from numpy.lib import format as npy

from service.files.errors import BadFile
from service.files.npz import MAX_CLASSES, PAIRS, SplitFacts, Splits
from service.files.out import Out
from service.files.parts import Part, Size, Wanted
from service.files.prepare import Preparation
from service.files.words import size

TOO_LARGE = "the dataset is too large"
UNFIT = "the file is not a dataset"
MAX_PIXELS = 64_000_000


def write_parts(out: Out, parts: dict[str, Part], preparation: Preparation, wanted: Wanted) -> Splits:
    _check_sizes([part for part in parts.values() if part.size], preparation, wanted)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        splits = {split: _write(archive, PAIRS[split], part, preparation) for split, part in parts.items()}
    facts: Splits = {"format": "npz", "splits": splits}
    if told := preparation.told():
        facts["preparation"] = told
    return facts


def _check_sizes(parts: list[Part], preparation: Preparation, wanted: Wanted) -> None:
    """Before a pixel is read: what the headers say, and what would come of it."""
    becomes = []
    for part in parts:
        assert part.size is not None
        if prod(part.size[:2]) > MAX_PIXELS:
            raise BadFile(TOO_LARGE, f"its images are {part.size}; {MAX_PIXELS:,} pixels are the most")
        becomes.append(preparation.becomes(part.size))
    if len(set(becomes)) > 1:
        both = " and ".join(str(each) for each in becomes)
        raise BadFile(UNFIT, f"the splits have images of {both}: ?input={becomes[0]} brings all to one size")
    for part, made in zip(parts, becomes, strict=True):
        if max(made[:2]) > wanted.max_side:
            how = "?input=HxWxC makes the images smaller"
            raise BadFile(TOO_LARGE, f"its images are {made}; sides go up to {wanted.max_side:,}, and {how}")
        for each in (part.size, made):
            _check_total(sum(part.count for part in parts), each or made, part.itemsize, wanted.max_bytes)


def _check_total(count: int, each: Size, itemsize: int, max_bytes: int) -> None:
    total = count * prod(each) * itemsize
    if total > max_bytes:
        took = f"{count:,} images of {each} take {size(total)}"
        raise BadFile(TOO_LARGE, f"{took}, and {size(max_bytes)} are allowed")


def _write(archive: zipfile.ZipFile, members: tuple[str, str], part: Part, preparation: Preparation) -> SplitFacts:
    x, y = members
    rows = (prepared for batch in part.batches for prepared in preparation.images(batch))
    first = next(rows)
    low, high = float(first.min()), float(first.max())
    with archive.open(zipfile.ZipInfo(x), "w", force_zip64=True) as member:
        _write_header(member, first.dtype, (part.count, *first.shape[1:]))
        for batch in chain([first], rows):
            member.write(batch.tobytes())
            low, high = min(low, float(batch.min())), max(high, float(batch.max()))
    known = _write_labels(archive, y, part) if part.labels else set()
    return {
        "count": part.count,
        "shape": str(Size(*first.shape[1:])),
        "dtype": first.dtype.name,
        "low": low,
        "high": high,
        "classes": len(known) or None,
        "lowest_label": min(known, default=None),
        "highest_label": max(known, default=None),
        "labels": list(part.names) if known and part.names else None,
    }


def _write_labels(archive: zipfile.ZipFile, name: str, part: Part) -> set[int]:
    assert part.labels is not None
    known: set[int] = set()
    batches = part.labels()
    first = next(batches)
    with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as member:
        _write_header(member, first.dtype, (part.count,))
        for labels in chain([first], batches):
            member.write(labels.tobytes())
            known.update(labels.tolist())  # numpy.unique would import more of numpy, which is too late here
            if len(known) > MAX_CLASSES:
                raise BadFile(UNFIT, f"there are more than {MAX_CLASSES:,} different labels")
    return known


def _write_header(member: object, dtype: "np.dtype[np.generic]", shape: tuple[int, ...]) -> None:
    npy.write_array_header_1_0(member, {"descr": dtype.str, "fortran_order": False, "shape": shape})  # type: ignore[arg-type]
