"""A dataset's file is known by its content: what it begins with, what a zip's entries are called, what a gzip holds."""

from service.files import bundle, cifar, idx, mat, tar, zipped
from service.files.errors import BadFile
from service.files.looks import HEAD_BYTES, looks_like
from service.files.npz import LAYOUT, Limits, Splits, read_splits
from service.files.streams import GZIP_MAGIC, Span, Stream, unpacked
from service.files.upload import Upload

MAX_ENTRIES = 200_000
PARQUET = b"PAR1"
HOW = (
    f"{LAYOUT}; or a zip holds PNG, JPEG or WEBP images, in folders that are labels or in none; "
    "or it is parquet with image bytes, IDX as MNIST, binary CIFAR, or .mat as SVHN"
)


def read_dataset(upload: Upload, limits: Limits) -> Splits:
    """What an npz holds. Of the others only what they are: they are read when they are converted."""
    kind = recognise(upload)
    return read_splits(upload, limits) if kind == "npz" else {"format": kind, "splits": {}}


def recognise(upload: Upload) -> str:
    head = upload.head()
    if head.startswith(b"PK\x03\x04"):
        return _zip(upload)
    kind = (
        ("parquet" if head.startswith(PARQUET) else None)
        or _plain(head)
        or _gzipped(upload, head)
        or ("cifar" if cifar.kind_of(upload) else None)
    )
    if kind is None:
        raise BadFile("not a dataset", f"it looks like {looks_like(head)}; {HOW}")
    return kind


def raw(upload: Upload) -> Stream:
    return Span(upload, 0, upload.size)


def _zip(upload: Upload) -> str:
    names = [entry.name for entry in zipped.entries(upload, MAX_ENTRIES)]
    if any(name.endswith(".npy") for name in names):
        return "npz"
    if any(name.endswith("/data.pkl") for name in names):
        raise BadFile("not a dataset", f"it looks like a .pt checkpoint, which makes a model; {HOW}")
    return "bundle" if bundle.is_bundle(names) else "images"


def _plain(head: bytes) -> str | None:
    if idx.is_idx(head):
        return "idx"
    if mat.is_mat(head):
        return "mat"
    return "tar" if tar.is_tar(head) else None


def _gzipped(upload: Upload, head: bytes) -> str | None:
    if not head.startswith(GZIP_MAGIC):
        return None
    inside = unpacked(lambda: raw(upload), "the gzip")().read(HEAD_BYTES)
    kind = _plain(inside)
    if kind not in ("idx", "tar"):
        raise BadFile("not a dataset", f"it looks like a gzip file, in which there is {looks_like(inside)}; {HOW}")
    return kind
