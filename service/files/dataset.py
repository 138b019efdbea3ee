"""A dataset's file: an npz, or a zip of images, which are both zips. What the entries are called decides."""

from service.files import zipped
from service.files.errors import BadFile
from service.files.looks import looks_like
from service.files.npz import LAYOUT, Limits, Splits, read_splits
from service.files.upload import Upload

MAX_ENTRIES = 200_000
HOW = f"{LAYOUT}; or a zip holds PNG, JPEG or WEBP images, in folders that are labels or in none"


def read_dataset(upload: Upload, limits: Limits) -> Splits:
    """What an npz holds. Of a zip of images only that it is one: it is read when it is converted."""
    head = upload.head()
    if not head.startswith(b"PK\x03\x04"):
        raise BadFile("not a dataset", f"it looks like {looks_like(head)}; {HOW}")
    names = [entry.name for entry in zipped.entries(upload, MAX_ENTRIES)]
    if any(name.endswith(".npy") for name in names):
        return read_splits(upload, limits)
    if any(name.endswith("/data.pkl") for name in names):
        raise BadFile("not a dataset", f"it looks like a .pt checkpoint, which makes a model; {HOW}")
    return {"format": "images", "splits": {}}
