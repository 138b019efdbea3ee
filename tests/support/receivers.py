"""Receivers of webhooks to test with: real servers on addresses of this machine, that behave as they are told."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # of five, a sixth who comes at the same moment is kept waiting for a second

    def handle_error(self, *_: object) -> None:
        """Whoever hangs up is no error here."""


@dataclass
class Receiver:
    """What came in, in order; `answer` says what is done with the next."""

    port: int
    requests: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    answer: Callable[[BaseHTTPRequestHandler], None] = lambda handler: respond(handler, 204)

    def url(self, host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}/hook"

    @property
    def ids(self) -> list[str]:
        return [headers["webhook-id"] for headers, _ in self.requests]


@dataclass
class Canary:
    """Whoever connected, in order."""

    port: int
    came: list[object] = field(default_factory=list)


def respond(handler: BaseHTTPRequestHandler, status: int, body: bytes = b"", **headers: str) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


@contextmanager
def receiving(address: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.requests.append(({name.lower(): value for name, value in self.headers.items()}, body))
            with suppress(OSError):
                receiver.answer(self)

        def log_message(self, *_: object) -> None:
            pass

    server = Server((address, port), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    receiver = Receiver(server.server_port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def listening(address: str) -> Iterator[Canary]:
    """Where nobody should come."""
    with socket.create_server((address, 0)) as listener:
        canary = Canary(listener.getsockname()[1])

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, peer = listener.accept()
                    canary.came.append(peer)
                    connection.close()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield canary
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def certificate(folder: Path, *names: str) -> tuple[Path, ssl.SSLContext]:
    """Signed by itself for these names: the file to trust, and the context of a server that has it."""
    key = ec.generate_private_key(ec.SECP256R1())
    called = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    start = datetime.now(UTC) - timedelta(hours=1)
    made = (
        x509.CertificateBuilder(called, called, key.public_key(), x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([_general(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "certificate.pem"
    unlocked = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, unlocked)
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path, folder / "key.pem")
    return path, context


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
