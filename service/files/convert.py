"""Whatever a dataset came as becomes an npz, prepared as its uploader asked."""

from collections.abc import Iterator
from contextlib import contextmanager

from service.files import bundle, cifar, idx, mat
from service.files.dataset import raw, recognise
from service.files.images import read_images
from service.files.npz import Limits, Splits, open_parts
from service.files.out import Out
from service.files.parts import Part, Wanted
from service.files.prepare import Preparation
from service.files.streams import unpacked
from service.files.upload import Upload
from service.files.writing import write_parts


def write_dataset(upload: Upload, out: Out, wanted: Wanted) -> Splits:
    preparation = Preparation(wanted.input, wanted.invert)
    with _parts(upload, wanted, preparation) as parts:
        return write_parts(out, parts, preparation, wanted)


@contextmanager
def _parts(upload: Upload, wanted: Wanted, preparation: Preparation) -> Iterator[dict[str, Part]]:
    kind = recognise(upload)
    if kind == "npz":
        with open_parts(
            upload, Limits(wanted.max_bytes, wanted.max_side, wanted.max_channels, wanted.max_vector)
        ) as parts:
            yield parts
    elif kind == "images":
        yield read_images(upload, wanted, preparation)
    else:
        yield _published(kind, upload, wanted)


def _published(kind: str, upload: Upload, wanted: Wanted) -> dict[str, Part]:
    """The forms that well-known datasets are published in."""
    if kind == "bundle":
        return bundle.read_bundle(upload, wanted.max_bytes)
    if kind == "cifar":
        found = cifar.kind_of(upload)
        assert found is not None
        return cifar.read_bin(upload, found)
    plain = unpacked(lambda: raw(upload), "the file")
    if kind == "tar":
        return cifar.read_tar(plain, wanted.max_bytes)
    return {"train": mat.read_mat(plain) if kind == "mat" else idx.read_idx(plain)}
