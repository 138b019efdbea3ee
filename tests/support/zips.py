"""Zips that lie, made by hand."""

import struct
import zlib
from dataclasses import dataclass


@dataclass
class Member:
    """An entry of a zip that can lie about everything."""

    data: bytes
    name: bytes = b"x.npy"
    method: int = 0
    flags: int = 0
    file_size: int | None = None
    compress_size: int | None = None
    crc: int | None = None
    local_name: bytes | None = None
    offset: int = 0
    mode: int = 0
    extra: bytes = b""

    @property
    def fields(self) -> bytes:
        stored = self.data if self.method == 0 else deflate(self.data)
        crc = zlib.crc32(self.data) if self.crc is None else self.crc
        packed = len(stored) if self.compress_size is None else self.compress_size
        full = len(self.data) if self.file_size is None else self.file_size
        return struct.pack("<HHHHHIII", 20, self.flags, self.method, 0, 0, crc, packed, full)

    def local(self) -> bytes:
        name = self.local_name or self.name
        stored = self.data if self.method == 0 else deflate(self.data)
        return b"PK\x03\x04" + self.fields + struct.pack("<HH", len(name), 0) + name + stored

    def central(self, offset: int) -> bytes:
        lengths = (len(self.name), len(self.extra), 0, 0, 0)
        rest = struct.pack("<HHHHHII", *lengths, self.mode << 16, offset + self.offset)
        return b"PK\x01\x02" + struct.pack("<H", 20) + self.fields + rest + self.name + self.extra


def deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def zip_of(*members: Member, count: int | None = None, size: int | None = None) -> bytes:
    body, directory = b"", b""
    for member in members:
        directory += member.central(len(body))
        body += member.local()
    number = len(members) if count is None else count
    length = len(directory) if size is None else size
    return body + directory + struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, number, number, length, len(body), 0)


def bomb(header: bytes, gigabytes: int, file_size: int) -> bytes:
    """Zeros behind an honest header. A flushed block can be repeated: no time is spent on compressing them all."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    start = packer.compress(header) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(1 << 24)) + packer.flush(zlib.Z_FULL_FLUSH)
    stored = start + block * (64 * gigabytes) + packer.flush()
    member = Member(stored, file_size=file_size, compress_size=len(stored))
    archive = bytearray(zip_of(member))
    for place in (8, archive.index(b"PK\x01\x02") + 10):
        archive[place : place + 2] = struct.pack("<H", 8)
    return bytes(archive)
