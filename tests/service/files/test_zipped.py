import io
import stat
import struct
import tempfile
import time
import zipfile
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zips import Member, bomb, zip_of

from service.files import zipped
from service.files.errors import BadFile
from service.files.upload import Upload


def contents(data: bytes, most: int = 100) -> dict[str, bytes]:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        upload = Upload(file.fileno())
        return {entry.name: zipped.read(upload, entry) for entry in zipped.entries(upload, most)}


def refusal(data: bytes, most: int = 100) -> BadFile:
    with pytest.raises(BadFile) as caught:
        contents(data, most)
    return caught.value


def zip_file(seekable: bool = True, method: int = zipfile.ZIP_DEFLATED, **parts: bytes) -> bytes:
    stream = io.BytesIO() if seekable else Unseekable()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in parts.items():
            with archive.open(name, "w", force_zip64=name == "wide") as entry:
                entry.write(content)
    return stream.getvalue()


class Unseekable(io.BytesIO):
    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        raise io.UnsupportedOperation

    def seek(self, *_: int) -> int:
        raise io.UnsupportedOperation


@pytest.mark.parametrize("seekable", [True, False], ids=["sizes first", "sizes after"])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_what_zipfile_writes_is_read(seekable: bool, method: int) -> None:
    parts = {"a": b"one" * 100, "wide": b"two", "empty": b"", "b/c/ä.png": bytes(range(256)) * 9}
    assert contents(zip_file(seekable, method, **parts)) == parts


def test_folders_and_comments_are_read() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("folder/", b"")
        archive.writestr("folder/file", b"x")
        archive.comment = b"made by hand"
    assert contents(stream.getvalue()) == {"folder/": b"", "folder/file": b"x"}


@pytest.mark.parametrize("raw", ["grün".encode(), b"gr\x81n"])
def test_names_are_utf8_or_in_the_old_code_page(raw: bytes) -> None:
    assert contents(zip_of(Member(b"x", name=raw))) == {"grün": b"x"}


@pytest.mark.parametrize(
    "name", [b"../x", b"/x", b"a//x", b"./x", b"a/..", b"a\\x", b"C:/x", b"x\0y", b"x\ny", b"a/../../x", b"//"]
)
def test_a_name_that_leads_elsewhere_is_refused(name: bytes) -> None:
    assert refusal(zip_of(Member(b"x", name=name))).title == "a name in the zip leads elsewhere"


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK])
def test_what_is_no_file_is_refused(kind: int) -> None:
    assert "link" in refusal(zip_of(Member(b"/etc/passwd", mode=kind | 0o777))).detail


@pytest.mark.parametrize("kind", [0, stat.S_IFREG, stat.S_IFDIR])
def test_files_and_folders_are_taken(kind: int) -> None:
    assert contents(zip_of(Member(b"x", mode=kind | 0o644))) == {"x.npy": b"x"}


def test_a_name_stands_in_it_once() -> None:
    assert "twice" in refusal(zip_of(Member(b"x"), Member(b"y"))).detail


@pytest.mark.parametrize("flags", [0x1, 0x40, 0x2000])
def test_encryption_is_refused(flags: int) -> None:
    assert refusal(zip_of(Member(b"x", flags=flags))).title == "the zip is encrypted"


@pytest.mark.parametrize("method", [1, 9, 12, 14, 93, 99])
def test_only_stored_and_deflated_are_taken(method: int) -> None:
    assert refusal(zip_of(Member(b"x", method=method))).title == "the compression is unknown"


@pytest.mark.parametrize("method", [0, 8])
@pytest.mark.parametrize("change", [-1, 1, 1000, 2**31])
def test_a_size_that_lies_is_refused(method: int, change: int) -> None:
    refusal(zip_of(Member(b"some bytes", method=method, file_size=10 + change)))


def test_a_checksum_that_lies_is_refused() -> None:
    assert "checksum" in refusal(zip_of(Member(b"x", crc=1))).detail


@pytest.mark.parametrize(
    "lie",
    [
        {"local_name": b"y.npy"},
        {"local_name": b"y"},
        {"offset": 1},
        {"offset": 10**6},
        {"compress_size": 2**31},
    ],
)
def test_an_entry_that_is_not_where_it_should_be_is_refused(lie: dict[str, int]) -> None:
    refusal(zip_of(Member(b"x" * 50, **lie)))


def test_the_header_and_the_table_of_contents_agree() -> None:
    honest = zip_of(Member(b"x" * 50))
    for place, width in ((6, "<H"), (8, "<H"), (14, "<I"), (18, "<I"), (22, "<I")):
        lying = bytearray(honest)
        struct.pack_into(width, lying, place, struct.unpack_from(width, lying, place)[0] ^ 8)
        refusal(bytes(lying))


def test_entries_do_not_overlap() -> None:
    inner = Member(b"x" * 50, name=b"b")
    outer = Member(inner.local(), name=b"a")
    body, directory = outer.local(), outer.central(0) + inner.central(31)
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 2, 2, len(directory), len(body), 0)
    assert "shares its bytes" in refusal(body + directory + end).detail


@pytest.mark.parametrize("before", [b"x", b"#!/bin/sh\n", zip_of(Member(b"x"))])
def test_nothing_comes_before_it(before: bytes) -> None:
    assert "put before it" in refusal(before + zip_of(Member(b"x"))).detail


def test_nothing_follows_it() -> None:
    assert "follows" in refusal(zip_of(Member(b"x")) + b"x").detail


@pytest.mark.parametrize("count", [0, 2, 65535])
def test_the_count_is_true(count: int) -> None:
    refusal(zip_of(Member(b"x"), count=count), most=100_000)


def test_too_many_are_refused_before_they_are_read() -> None:
    many = zip_of(*(Member(b"", name=b"%d" % number) for number in range(101)))
    assert refusal(many).title == "too many files in the zip"
    assert len(contents(many, most=101)) == 101


def test_a_bomb_is_inflated_only_as_far_as_it_says() -> None:
    start = time.monotonic()
    assert "inflate" in refusal(bomb(b"", gigabytes=4, file_size=1000)).detail
    assert time.monotonic() - start < 2


@pytest.mark.parametrize("tail", [b"", b"PK\x05\x06", b"PK\x05\x06" * 10_000, b"PK\x06\x07" * 10_000, bytes(70_000)])
def test_what_has_no_end_is_refused(tail: bytes) -> None:
    refusal(b"PK\x03\x04" + tail)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_damaged_zip_is_refused_or_read_as_it_was(data: st.DataObject) -> None:
    parts = {"a/1.png": b"one" * 9, "b/2.png": bytes(50), "c": b""}
    damaged = bytearray(zip_file(data.draw(st.booleans()), data.draw(st.sampled_from([0, 8])), **parts))
    places = st.integers(0, len(damaged) - 1)
    for place, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=4)):
        damaged[place] = value
    kept = bytes(damaged[: data.draw(st.integers(len(damaged) - 2, len(damaged)) | places)])
    try:
        found = contents(kept)
    except BadFile as bad:
        bad.detail.encode()
        return
    assert {zlib.crc32(content) for content in found.values()} <= {zlib.crc32(part) for part in parts.values()}
