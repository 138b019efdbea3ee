import gzip
import io
import tempfile

import numpy as np
import pytest
from published import COLOURS, DIGITS, cifar, idx, svhn, tar, zipped
from zips import Member, zip_of

from service.files.dataset import read_dataset
from service.files.errors import BadFile
from service.files.npz import Limits, Splits
from service.files.upload import Upload

LIMITS = Limits(max_bytes=50_000_000, max_side=64, max_channels=4)


def read(data: bytes) -> Splits:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        return read_dataset(Upload(file.fileno()), LIMITS)


def refusal(data: bytes) -> BadFile:
    with pytest.raises(BadFile) as caught:
        read(data)
    return caught.value


def npz(**arrays: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def test_a_zip_of_arrays_is_an_npz() -> None:
    assert read(npz(x=np.zeros((2, 4, 4), "u1")))["splits"]["train"]["count"] == 2


@pytest.mark.parametrize("name", [b"1.png", b"cat/1.jpg", b"notes.txt"])
def test_a_zip_without_arrays_is_left_to_the_conversion(name: bytes) -> None:
    assert read(zip_of(Member(b"x", name=name))) == {"format": "images", "splits": {}}


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (idx(DIGITS), "idx"),
        (gzip.compress(idx(DIGITS)), "idx"),
        (zipped({"train-images-idx3-ubyte.gz": b""}), "bundle"),
        (zipped({"svhn/train_32x32.mat": b""}), "bundle"),
        (cifar(COLOURS, np.arange(7)), "cifar"),
        (cifar(COLOURS, np.arange(7), np.arange(7)), "cifar"),
        (tar({"train.bin": b""}), "tar"),
        (tar({"train.bin": b""}, "w"), "tar"),
        (svhn(COLOURS, np.arange(7)), "mat"),
    ],
)
def test_what_well_known_datasets_are_published_as(data: bytes, kind: str) -> None:
    assert read(data) == {"format": kind, "splits": {}}


def test_arrays_beside_images_are_refused() -> None:
    assert refusal(zip_of(Member(b"x", name=b"1.png"), Member(b"x", name=b"x.npy"))).title == "unknown arrays"


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"", "an empty file"),
        (b"\x93NUMPY\x01\x00v\x00{'descr': '<f4'", "a single .npy array"),
        (b"\x80\x04\x95\x00.", "a pickle"),
        (b"<html></html>", "an HTML page"),
        (b"PK\x05\x06" + bytes(18), "an empty zip file"),
        (b"\x10\0\0\0\0\0\0\0{}", "a safetensors file"),
        (gzip.compress(b"hello"), "a gzip file, in which there is a text file"),
        (b"\x89PNG\r\n\x1a\n", "a PNG image"),
        (b"RIFF\0\0\0\0WEBP", "a WEBP image"),
        (zip_of(Member(b"x", name=b"ae/data.pkl")), "a .pt checkpoint"),
    ],
)
def test_other_formats_are_named(data: bytes, name: str) -> None:
    bad = refusal(data)
    assert bad.title == "not a dataset"
    assert name in bad.detail
    assert "zip" in bad.detail
