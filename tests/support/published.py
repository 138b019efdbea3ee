"""Files in the forms that MNIST, CIFAR and SVHN are published in, small."""

import io
import struct
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping

import numpy as np
from scipy.io import savemat

from service.files.convert import write_dataset
from service.files.npz import Splits
from service.files.out import Out
from service.files.parts import Wanted
from service.files.upload import Upload

WANTED = Wanted(max_bytes=10_000_000, max_side=64, max_channels=4, suffixes=(".png",))
RNG = np.random.default_rng(0)
DIGITS = RNG.integers(0, 256, (6, 5, 4), np.uint8)
COLOURS = RNG.integers(0, 256, (7, 32, 32, 3), np.uint8)


def convert(data: bytes, wanted: Wanted = WANTED) -> tuple[Splits, dict[str, np.ndarray]]:
    """What is told of a file, and the arrays that are kept in its place."""
    with tempfile.TemporaryFile() as file, tempfile.TemporaryFile() as made:
        file.write(data)
        file.flush()
        with Out(made.fileno()) as out:
            told = write_dataset(Upload(file.fileno()), out, wanted)
        made.seek(0)
        return told, dict(np.load(io.BytesIO(made.read()), allow_pickle=False))


def idx(values: np.ndarray, kind: int = 8, sides: tuple[int, ...] | None = None) -> bytes:
    told = values.shape if sides is None else sides
    return struct.pack(f">BBBB{len(told)}I", 0, 0, kind, len(told), *told) + values.astype("u1").tobytes()


def cifar(images: np.ndarray, *labels: np.ndarray) -> bytes:
    columns = [np.asarray(each, "u1")[:, None] for each in labels]
    return np.hstack([*columns, images.transpose(0, 3, 1, 2).reshape(len(images), -1)]).tobytes()


def tar(files: Mapping[str, bytes], mode: str = "w:gz") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def mat(compress: bool = True, **arrays: object) -> bytes:
    stream = io.BytesIO()
    savemat(stream, arrays, do_compression=compress)
    return stream.getvalue()


def svhn(images: np.ndarray, labels: object, compress: bool = True) -> bytes:
    return mat(compress, X=images.transpose(1, 2, 3, 0), y=np.reshape(np.asarray(labels), (-1, 1)))


def zipped(files: Mapping[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()
