"""A zip, read more strictly than unzip does: one table of contents at the end, and every entry where it says it is.

Nothing is ever written out under a name from the file, no name leads upwards, and no byte belongs to two entries.
"""

import codecs
import stat
import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from service.files.errors import BadFile
from service.files.upload import Upload
from service.files.words import quoted, size

MAX_DIRECTORY = 64 << 20
MAX_NAME = 400
MAX_COMMENT = 0xFFFF
STORED, DEFLATED = 0, 8
ENCRYPTED = 0x1 | 0x40 | 0x2000
SIZES_FOLLOW, UTF8 = 0x8, 0x800
FULL = 0xFFFFFFFF  # the true number is in a zip64 field
FULL_END = (0xFFFF, FULL, FULL)
ZIP64_EXTRA = 1
DAMAGED = "the zip is damaged"
CODE_PAGE = "cp437"

END = struct.Struct("<4sHHHHIIH")
LOCATOR = struct.Struct("<4sIQI")
END64 = struct.Struct("<4sQHHIIQQQQ")
CENTRAL = struct.Struct("<4s6H3I5H2I")
LOCAL = struct.Struct("<4s5H3I2H")

codecs.lookup(CODE_PAGE)  # imported on first use, when no module can be opened any more


class Entry(NamedTuple):
    name: str
    method: int
    begin: int  # where its bytes lie in the upload
    packed: int
    size: int
    crc: int

    @property
    def is_folder(self) -> bool:
        return self.name.endswith("/")


class Listed(NamedTuple):
    """An entry as the table of contents has it, before its own header is looked at."""

    raw_name: bytes
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    offset: int


def entries(upload: Upload, most: int) -> list[Entry]:
    """Every entry, in the order of the table of contents."""
    begin, length, count = _directory(upload)
    if count > most:
        raise BadFile("too many files in the zip", f"there are {count:,}, and {most:,} are the most")
    if length > MAX_DIRECTORY or length > upload.size:
        raise BadFile(DAMAGED, "its table of contents is larger than any real one")
    listed = list(_listed(bytes(upload.bytes_at(begin, length)), count))
    found = [_located(upload, each, begin) for each in listed]
    _check_names(found)
    _check_overlap(listed, found)
    return found


def read(upload: Upload, entry: Entry) -> bytes:
    """All of it: the caller has looked at its size."""
    data = bytes(upload.bytes_at(entry.begin, entry.packed))
    if entry.method == DEFLATED:
        data = _inflated(entry, data)
    if zlib.crc32(data) != entry.crc:
        raise BadFile(DAMAGED, f"{quoted(entry.name)} does not have the checksum that it should have")
    return data


def _inflated(entry: Entry, packed: bytes) -> bytes:
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        data = inflater.decompress(packed, entry.size + 1)
    except zlib.error as error:
        raise BadFile(DAMAGED, f"{quoted(entry.name)} cannot be inflated") from error
    if len(data) != entry.size or not inflater.eof or inflater.unused_data:
        raise BadFile(DAMAGED, f"{quoted(entry.name)} does not inflate to the {size(entry.size)} that it says")
    return data


def _directory(upload: Upload) -> tuple[int, int, int]:
    """Where the table of contents begins, how long it is, and how many entries it lists."""
    tail_begin = max(0, upload.size - END.size - MAX_COMMENT)
    tail = upload.bytes_at(tail_begin, upload.size - tail_begin)
    place = tail.rfind(b"PK\x05\x06")
    if place < 0 or len(tail) - place < END.size:
        raise BadFile(DAMAGED, "its table of contents is missing, as in a file that is cut off: upload it again")
    _, disk, first_disk, here, count, length, begin, comment = END.unpack_from(tail, place)
    if disk or first_disk or here != count:
        raise BadFile(DAMAGED, "it is one part of several")
    if place + END.size + comment != len(tail):
        raise BadFile(DAMAGED, "something follows its end")
    end = tail_begin + place
    if end >= LOCATOR.size and (locator := upload.bytes_at(end - LOCATOR.size, LOCATOR.size))[:4] == b"PK\x06\x07":
        end, *wide = _directory64(upload, locator, end - LOCATOR.size)
        told = zip((count, length, begin), wide, FULL_END, strict=True)
        if any(short not in (true, full) for short, true, full in told):
            raise BadFile(DAMAGED, "it has two tables of contents that differ")
        count, length, begin = wide
    if begin + length != end:
        raise BadFile(DAMAGED, "its table of contents is not where it says: something was put before it")
    return begin, length, count


def _directory64(upload: Upload, locator: bytearray, end: int) -> tuple[int, int, int, int]:
    _, disk, begin, disks = LOCATOR.unpack(locator)
    if disk or disks > 1 or begin + END64.size > end:
        raise BadFile(DAMAGED, "its zip64 end is not where it says")
    signature, rest, _, _, _, _, here, count, length, first = END64.unpack(upload.bytes_at(begin, END64.size))
    if signature != b"PK\x06\x06" or begin + 12 + rest != end or here != count:
        raise BadFile(DAMAGED, "its zip64 end cannot be read")
    return begin, count, length, first


def _listed(directory: bytes, count: int) -> Iterator[Listed]:
    place = 0
    for _ in range(count):
        if place + CENTRAL.size > len(directory):
            raise BadFile(DAMAGED, "its table of contents is shorter than it says")
        (signature, _, _, flags, method, _, _, crc, packed, full, name, extra, comment, disk, _, mode, offset) = (
            CENTRAL.unpack_from(directory, place)
        )
        after = place + CENTRAL.size + name
        raw_name, fields = directory[place + CENTRAL.size : after], directory[after : after + extra]
        place = after + extra + comment
        if signature != b"PK\x01\x02" or disk or not 1 <= name <= MAX_NAME or place > len(directory):
            raise BadFile(DAMAGED, "its table of contents cannot be read")
        _check_kind(raw_name, flags, method, mode >> 16)
        if FULL in (full, packed, offset):
            full, packed, offset = _from_zip64(fields, (full, packed, offset))
        yield Listed(raw_name, flags, method, crc, packed, full, offset)
    if place != len(directory):
        raise BadFile(DAMAGED, "its table of contents is longer than it says")


def _check_kind(raw_name: bytes, flags: int, method: int, mode: int) -> None:
    name = quoted(_text(raw_name))
    if flags & ENCRYPTED:
        raise BadFile("the zip is encrypted", f"{name} needs a password: upload it without one")
    if method not in (STORED, DEFLATED):
        raise BadFile("the compression is unknown", f"{name}: stored and deflated entries are taken")
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise BadFile(
            "the zip holds more than files", f"{name} is a link or a device: put the file itself in its place"
        )


def _from_zip64(fields: bytes, short: tuple[int, int, int]) -> tuple[int, ...]:
    """The 64-bit numbers stand in the extra field, only those that do not fit, in this order."""
    while len(fields) >= 4:
        kind, length = struct.unpack_from("<HH", fields)
        if kind == ZIP64_EXTRA and length >= 8 * short.count(FULL) and len(fields) >= 4 + length:
            wide = iter(struct.unpack_from(f"<{short.count(FULL)}Q", fields, 4))
            return tuple(next(wide) if number == FULL else number for number in short)
        fields = fields[4 + length :]
    raise BadFile(DAMAGED, "a size in its table of contents is missing")


def _located(upload: Upload, listed: Listed, directory: int) -> Entry:
    name = quoted(_text(listed.raw_name))
    if listed.method == STORED and listed.packed != listed.size:
        raise BadFile(DAMAGED, f"{name} is stored, and has two sizes")
    if listed.offset + LOCAL.size + len(listed.raw_name) > directory:
        raise BadFile(DAMAGED, f"{name} lies outside of the file")
    head = upload.bytes_at(listed.offset, LOCAL.size + len(listed.raw_name))
    signature, _, flags, method, _, _, crc, packed, full, length, extra = LOCAL.unpack_from(head)
    if signature != b"PK\x03\x04" or head[LOCAL.size :] != listed.raw_name or length != len(listed.raw_name):
        raise BadFile(DAMAGED, f"{name} is not where the table of contents says")
    kinds_agree = (flags | UTF8, method) == (listed.flags | UTF8, listed.method)
    told = ((crc, listed.crc), (packed, listed.packed), (full, listed.size))
    unsaid = {FULL, 0} if flags & SIZES_FOLLOW else {FULL}
    if not kinds_agree or any(here != there and here not in unsaid for here, there in told):
        raise BadFile(DAMAGED, f"{name} and the table of contents say two things of it")
    begin = listed.offset + LOCAL.size + length + extra
    if begin + listed.packed > directory:
        raise BadFile(DAMAGED, f"{name} lies outside of the file")
    return Entry(_text(listed.raw_name), listed.method, begin, listed.packed, listed.size, listed.crc)


def _text(raw_name: bytes) -> str:
    """Many tools forget to say that their names are UTF-8. The others mean the code page of the first PC."""
    try:
        return raw_name.decode()
    except UnicodeDecodeError:
        return raw_name.decode(CODE_PAGE)


def _check_names(found: list[Entry]) -> None:
    known: set[str] = set()
    for entry in found:
        parts = entry.name.removesuffix("/").split("/")
        if not entry.name.isprintable() or "\\" in entry.name or ":" in parts[0] or {"", ".", ".."} & set(parts):
            raise BadFile("a name in the zip leads elsewhere", f"{quoted(entry.name)} is no plain path below the top")
        if entry.name in known:
            raise BadFile(DAMAGED, f"{quoted(entry.name)} stands in it twice")
        known.add(entry.name)


def _check_overlap(listed: list[Listed], found: list[Entry]) -> None:
    end = 0
    for offset, begin, packed, name in sorted(
        (one.offset, entry.begin, entry.packed, entry.name) for one, entry in zip(listed, found, strict=True)
    ):
        if offset < end:
            raise BadFile(DAMAGED, f"{quoted(name)} shares its bytes with another entry")
        end = begin + packed
