"""A tar, listed as a stream and never extracted. Plain files and folders only, each small or as expected."""

from collections.abc import Container, Iterator
from typing import NamedTuple

from service.files.errors import BadFile
from service.files.streams import Rewound, Stream, exactly
from service.files.words import quoted, size

BLOCK = 512
MAGIC, MAGIC_PLACE = b"ustar", 257
SIZE, CHECKSUM, KIND = slice(124, 136), slice(148, 156), slice(156, 157)
FILES, FOLDER, NOTES = (b"0", b"\0"), b"5", (b"x", b"g")
MAX_MEMBERS = 64
MAX_NOTE = 1 << 16
MAX_PADDING = 1 << 20
MAX_BESIDE = 1 << 20
DAMAGED = "the tar is damaged"
UNFIT = "the tar is not a dataset"


class Member(NamedTuple):
    path: str
    begin: int
    size: int

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def is_tar(head: bytes) -> bool:
    return head[MAGIC_PLACE:].startswith(MAGIC)


def members(tar: Rewound, max_bytes: int, expected: Container[str]) -> dict[str, Member]:
    """By name, whatever the folder. Only those that are expected may be large."""
    found: dict[str, Member] = {}
    for member in _walk(tar, max_bytes):
        if member.size > MAX_BESIDE and member.name not in expected:
            raise BadFile(UNFIT, f"{quoted(member.name)} takes {size(member.size)}, and is no part of a known dataset")
        if len(found) == MAX_MEMBERS:
            raise BadFile("too many files in the tar", f"there are more than {MAX_MEMBERS}")
        if member.name in found:
            raise BadFile(DAMAGED, f"{quoted(member.name)} stands in it twice")
        found[member.name] = member
    if any(tar.read(MAX_PADDING)) or tar.read(1):
        raise BadFile(DAMAGED, "something follows its end")
    return found


def _walk(tar: Rewound, max_bytes: int) -> Iterator[Member]:
    place, headers = 0, 0
    while any(header := exactly(tar.at(place), BLOCK, "the tar")):
        name, length, kind = _parse(header)
        place, headers = place + BLOCK, headers + 1
        if place + length > max_bytes or headers > 4 * MAX_MEMBERS:
            raise BadFile(
                "the dataset is too large", f"{quoted(name)} ends past the {size(max_bytes)} that are allowed"
            )
        if kind in FILES:
            yield Member(name, place, length)
        elif kind in NOTES:
            _check_note(tar.at(place), length)
        elif kind != FOLDER or length:
            raise BadFile(
                "the tar holds more than files",
                f"{quoted(name)} is a link or a device, or has a long name: leave it out",
            )
        place += -(-length // BLOCK) * BLOCK


def _parse(header: bytes) -> tuple[str, int, bytes]:
    if not is_tar(header):
        raise BadFile(DAMAGED, "a header in it cannot be read")
    blank = header[: CHECKSUM.start] + b" " * 8 + header[CHECKSUM.stop :]
    if _octal(header[CHECKSUM]) != sum(blank):
        raise BadFile(DAMAGED, "a header in it does not have the checksum that it should have")
    name = header[:100].partition(b"\0")[0].decode("utf-8", "replace")
    return name, _octal(header[SIZE]), header[KIND]


def _octal(field: bytes) -> int:
    digits = field.strip(b" \0")
    if not digits or len(digits) > 12 or digits.strip(b"01234567"):
        raise BadFile(DAMAGED, "a number in it cannot be read")
    return int(digits, 8)


def _check_note(stream: Stream, length: int) -> None:
    """Times and owners may stand there; another name or size for the next file may not."""
    if length > MAX_NOTE:
        raise BadFile(DAMAGED, f"a header in it takes {size(length)}")
    note = exactly(stream, length, "the tar")
    if any(word in note for word in (b" size=", b" path=", b" linkpath=", b" GNU.sparse")):
        raise BadFile(DAMAGED, "a header in it renames or resizes a file: make it with tar --format=ustar")
