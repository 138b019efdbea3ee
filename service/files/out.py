import io


class NoRoom(Exception):
    """The file that is being made does not fit, on the disk or under its limit."""

    def __init__(self, errno: int | None) -> None:
        super().__init__(errno)
        self.errno = errno


class Out(io.BufferedWriter):
    """The one file that a conversion may write: opened by the parent, empty, and limited."""

    def __init__(self, fd: int) -> None:
        super().__init__(_Raw(fd, "wb", closefd=False))


class _Raw(io.FileIO):
    def write(self, data: object) -> int | None:  # type: ignore[override]
        try:
            return super().write(data)  # type: ignore[arg-type]
        except OSError as error:
            # Not an OSError any more, which would be taken for damage in the upload.
            raise NoRoom(error.errno) from None
