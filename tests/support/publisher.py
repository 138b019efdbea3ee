"""A web server that publishes files, and breaks off, refuses or knows no ranges when told to."""

import hashlib
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from flashcards.client.official import OfficialFile


class Publisher(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.cuts: list[int] = []  # each of the first answers ends after so many bytes
        self.statuses: list[int] = []  # each of the first answers is this refusal
        self.ranges = True
        self.asked: list[str | None] = []  # the Range of each request

    def publish(self, name: str, content: bytes, digest: str | None = None, size: int | None = None) -> OfficialFile:
        self.files[f"/{name}"] = content
        known = digest or hashlib.sha256(content).hexdigest()
        return OfficialFile(f"http://127.0.0.1:{self.server_port}/{name}", size or len(content), known)


class Handler(BaseHTTPRequestHandler):
    server: Publisher

    def do_GET(self) -> None:
        wish = self.headers.get("Range")
        self.server.asked.append(wish)
        content = self.server.files.get(self.path)
        if self.server.statuses or content is None:
            self.send_error(self.server.statuses.pop(0) if self.server.statuses else 404)
            return
        begin = int(wish.removeprefix("bytes=").rstrip("-")) if wish and self.server.ranges else 0
        if begin and begin >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        cut = self.server.cuts.pop(0) if self.server.cuts else len(content)
        self.wfile.write(content[begin : begin + cut])

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def publishing():
    server = Publisher()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
