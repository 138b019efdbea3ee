import socket
import threading
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

import pytest

from flashcards import Client


@pytest.fixture(scope="session")
def client(service):
    with Client(service.url) as client:
        yield client


@pytest.fixture(scope="session")
def digits_id(client, digits) -> str:
    return client.datasets.push(digits, name="digits").id


@pytest.fixture(scope="session")
def trained(client, digits_id):
    """A training that has ended: small, and good enough to beat a constant image."""
    job = client.train(dataset=digits_id, architecture="blk_1_fil_8", epochs=4, learning_rate=5e-3, name="small")
    return client.jobs.wait(job.id)


@pytest.fixture(scope="session")
def captured(client, trained):
    return client.jobs.wait(client.capture(model=trained.result.model, count=70, r=3).id)


@pytest.fixture
def busy(client, digits_id, trained):
    """The one worker is at work for as long as the test runs, so further jobs stay queued."""
    job = client.train(dataset=digits_id, architecture="blk_1_fil_8", epochs=100_000)
    next(event for event in client.jobs.events(job.id) if event.data.get("state") == "running")
    yield job
    client.jobs.cancel(job.id)
    client.jobs.wait(job.id)


class Relay:
    """A road to the service that breaks: each of its first connections is cut after so many bytes.

    `down` counts bytes of answers, `up` bytes of requests; what is past the cut is lost.
    """

    def __init__(self, url: str) -> None:
        self._target = (urlsplit(url).hostname, urlsplit(url).port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._closing = ExitStack()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.cuts: list[tuple[str, int]] = []
        self.connections = 0
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
                way, limit = self.cuts[self.connections] if self.connections < len(self.cuts) else ("", 0)
                self.connections += 1
                for source, sink, name in ((near, far, "up"), (far, near, "down")):
                    allowed = limit if name == way else None
                    threading.Thread(target=self._pump, args=(source, sink, allowed), daemon=True).start()

    @staticmethod
    def _pump(source: socket.socket, sink: socket.socket, allowed: int | None) -> None:
        with suppress(OSError), source, sink:
            while data := source.recv(65536):
                if allowed is not None:
                    data, allowed = data[:allowed], allowed - len(data)
                sink.sendall(data)
                if allowed is not None and allowed < 0:
                    break
            for end in (source, sink):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


@pytest.fixture
def relay(service):
    relay = Relay(service.url)
    yield relay
    relay.close()
