import io


class Sink(io.RawIOBase):
    """What a writer of files writes, until it is taken and sent. Nobody can go back in it."""

    def __init__(self) -> None:
        self._waiting = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        view = memoryview(data)  # type: ignore[arg-type]
        self._waiting += view
        return view.nbytes

    def take(self) -> bytes:
        taken = bytes(self._waiting)
        self._waiting.clear()
        return taken
