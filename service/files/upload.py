import io
import os

from service.files.errors import BadFile
from service.files.looks import HEAD_BYTES

MAX_READ = 1 << 20


class Upload(io.FileIO):
    """The uploaded file. A read stays small whatever a length inside the file asks for."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd, "rb", closefd=False)
        self.size = os.fstat(fd).st_size

    def read(self, size: int | None = -1) -> bytes:
        rest = max(0, self.size - self.tell())
        wanted = rest if size is None or size < 0 else min(size, rest)
        if wanted > MAX_READ:
            raise BadFile("the file is damaged", "its table of contents is larger than any real one")
        return super().read(wanted) or b""

    def head(self) -> bytes:
        return os.pread(self.fileno(), HEAD_BYTES, 0)

    def bytes_at(self, offset: int, count: int) -> bytearray:
        buffer = bytearray(count)
        self.fill(memoryview(buffer), offset)
        return buffer

    def fill(self, view: memoryview, offset: int) -> None:
        if os.preadv(self.fileno(), [view], offset) != len(view):
            raise BadFile("the file is cut off", "it ended while it was read: upload it again")
