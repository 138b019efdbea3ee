"""More of the corpus: files that pretend to be MNIST, CIFAR or SVHN."""

import gzip
import io
import struct
import tarfile
import zlib

import numpy as np
from corpus import DATASETS, Build, hostile, zip_file
from published import cifar, idx, svhn, tar
from zips import Member, zip_of

IMAGES = np.zeros((4, 8, 8), np.uint8)
COLOURS = np.zeros((4, 32, 32, 3), np.uint8)
RECORDS = cifar(COLOURS, np.arange(4))
LABELS = np.arange(4)


def deflated_zeros(start: bytes, gigabytes: int) -> bytes:
    """An honest beginning, then zeros: a flushed block can be repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    head = packer.compress(start) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(1 << 24)) + packer.flush(zlib.Z_FULL_FLUSH)
    return head + block * (64 * gigabytes) + packer.flush()


def gzipped_zeros(start: bytes, gigabytes: int) -> bytes:
    return b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + deflated_zeros(start, gigabytes) + bytes(8)


# IDX.


@hostile(DATASETS)
def idx_of_all_the_pixels_there_are(canary: str) -> bytes:
    """2**96 pixels announced, none there."""
    return idx(IMAGES, sides=(2**32 - 1,) * 3)


@hostile(DATASETS, input="32x32x3")
def idx_of_one_endless_image(canary: str) -> bytes:
    """One image of four billion by four, to be resized."""
    return idx(IMAGES, sides=(1, 2**32 - 1, 4))


@hostile(DATASETS, input="1024x1024x3")
def idx_that_would_grow(canary: str) -> bytes:
    """A megabyte of single pixels, each to become three megabytes."""
    return idx(np.zeros((10**6, 1, 1), np.uint8))


@hostile(DATASETS)
def idx_that_is_cut_off(canary: str) -> bytes:
    """Half of its images."""
    return idx(IMAGES)[:100]


@hostile(DATASETS)
def idx_in_a_bomb(canary: str) -> bytes:
    """4 GB of zeros in a gzip, behind a header that says four images."""
    return gzipped_zeros(idx(IMAGES), gigabytes=4)


@hostile(DATASETS)
def idx_gzipped_twice(canary: str) -> bytes:
    """A gzip in a gzip."""
    return gzip.compress(gzip.compress(idx(IMAGES)))


@hostile(DATASETS)
def idx_with_a_false_checksum(canary: str) -> bytes:
    """A gzip whose content is not what was packed."""
    return gzip.compress(idx(IMAGES))[:-8] + bytes(8)


@hostile(DATASETS)
def idx_labels_alone(canary: str) -> bytes:
    """Labels and no images."""
    return gzip.compress(idx(LABELS))


@hostile(DATASETS)
def idx_zip_with_too_few_labels(canary: str) -> bytes:
    """Three labels for four images."""
    return zip_file({"train-images-idx3-ubyte": idx(IMAGES), "train-labels-idx1-ubyte": idx(LABELS[:3])})


@hostile(DATASETS)
def idx_zip_with_a_bomb_inside(canary: str) -> bytes:
    """A gzip of gigabytes in a zip, under a well-known name."""
    return zip_file({"train-images-idx3-ubyte.gz": gzipped_zeros(idx(IMAGES), gigabytes=4)})


@hostile(DATASETS)
def idx_zip_that_lies_about_a_size(canary: str) -> bytes:
    """An entry that inflates to more than the zip says."""
    member = Member(idx(IMAGES), name=b"train-images-idx3-ubyte", method=8, file_size=100)
    return zip_of(member)


@hostile(DATASETS)
def idx_zip_with_a_program(canary: str) -> bytes:
    """Something else beside the four files."""
    return zip_file({"train-images-idx3-ubyte": idx(IMAGES), "setup.py": f"import os; os.mknod({canary!r})".encode()})


# CIFAR.


@hostile(DATASETS)
def cifar_with_a_label_too_many(canary: str) -> bytes:
    """Nothing marks a bare file but its labels: one of them is 10."""
    return RECORDS + b"\x0a" + RECORDS[1:3073]


@hostile(DATASETS)
def cifar_tar_of_gigabytes(canary: str) -> bytes:
    """A readme of 4 GB of zeros in front of the data."""
    return gzipped_zeros(tar_header("readme.html", 4 << 30), gigabytes=4)


@hostile(DATASETS)
def cifar_tar_with_an_endless_size(canary: str) -> bytes:
    """A batch that says 8 GB, and is a few bytes."""
    return tar_header("data_batch_1.bin", 8**11 - 1) + RECORDS


def tar_header(name: str, size: int, kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = size, kind, link
    return info.tobuf(tarfile.USTAR_FORMAT)


def tar_with(kind: bytes, name: str) -> Build:
    def build(canary: str) -> bytes:
        honest = tar({"data_batch_1.bin": RECORDS}, "w")
        return gzip.compress(tar_header("test_batch.bin", 0, kind, "/etc/passwd") + honest)

    build.__name__ = f"cifar_tar_with_a_{name}"
    build.__doc__ = f"A {name} in place of a batch."
    return build


for type, what in ((tarfile.SYMTYPE, "link"), (tarfile.LNKTYPE, "hard_link"), (tarfile.CHRTYPE, "device")):
    hostile(DATASETS)(tar_with(type, what))


@hostile(DATASETS)
def cifar_tar_that_renames(canary: str) -> bytes:
    """A header that gives the next file another name and size."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("data_batch_1.bin")
        info.size, info.pax_headers = len(RECORDS), {"path": "../../etc/cron.d/x", "size": "1"}
        archive.addfile(info, io.BytesIO(RECORDS))
    return stream.getvalue()


@hostile(DATASETS)
def cifar_tar_of_many_files(canary: str) -> bytes:
    """Ten thousand empty files."""
    return tar({f"{number}.txt": b"" for number in range(10_000)})


@hostile(DATASETS)
def cifar_tar_that_is_cut_off(canary: str) -> bytes:
    """Half of a tar.gz."""
    noise = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3), np.uint8)
    whole = tar({"data_batch_1.bin": cifar(noise, LABELS)})
    return whole[: len(whole) // 2]


# SVHN.

PLAIN = svhn(COLOURS[:, :8, :8], LABELS, compress=False)
SIDES_PLACE = 128 + 8 + 16 + 8


def mat_of(packed: bytes) -> bytes:
    return PLAIN[:128] + struct.pack("<II", 15, len(packed)) + packed


@hostile(DATASETS)
def mat_of_all_the_pixels_there_are(canary: str) -> bytes:
    """Sides of two billion each."""
    data = bytearray(PLAIN)
    struct.pack_into("<4i", data, SIDES_PLACE, 2**31 - 1, 2**31 - 1, 3, 2**31 - 1)
    return bytes(data)


@hostile(DATASETS)
def mat_of_negative_sides(canary: str) -> bytes:
    """Sides below zero, whose product is right."""
    data = bytearray(PLAIN)
    struct.pack_into("<4i", data, SIDES_PLACE, -8, -8, 3, 4)
    return bytes(data)


@hostile(DATASETS)
def mat_in_a_bomb(canary: str) -> bytes:
    """4 GB of zeros behind an array that says it has ended."""
    length = struct.unpack_from("<I", PLAIN, 132)[0]
    return mat_of(b"\x78\xda" + deflated_zeros(PLAIN[128 : 136 + length], gigabytes=4) + bytes(4))


@hostile(DATASETS)
def mat_in_itself(canary: str) -> bytes:
    """A compressed element inside a compressed element."""
    inner = zlib.compress(PLAIN[128:])
    return mat_of(zlib.compress(struct.pack("<II", 15, len(inner)) + inner))


@hostile(DATASETS)
def mat_of_cells(canary: str) -> bytes:
    """An array of class cell, which would nest."""
    data = bytearray(PLAIN)
    data[144] = 1
    return bytes(data)


@hostile(DATASETS)
def mat_that_is_cut_off(canary: str) -> bytes:
    """Half of a .mat."""
    return PLAIN[: len(PLAIN) // 2]


@hostile(DATASETS)
def mat_of_another_kind(canary: str) -> bytes:
    """Version 7.3, an HDF5 file with links to others."""
    return b"MATLAB 7.3 MAT-file".ljust(512) + b"\x89HDF\r\n\x1a\n" + bytes(600)


@hostile(DATASETS)
def mat_with_too_few_labels(canary: str) -> bytes:
    """Three labels for four images."""
    return svhn(COLOURS, LABELS[:3])
