"""A receiver of webhooks as bad as they come, in a process of its own that knows nothing of ours.

Half of what comes in fails: refused with 500, cut off, redirected to where nothing may go, or left hanging. What
it takes it writes down before it answers, so that a kill loses nothing of the account.
"""

import json
import random
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from standardwebhooks import Webhook

#: Of all that comes in.
BEHAVIOURS = {"take": 0.5, "refuse": 0.34, "redirect": 0.08, "cut": 0.06, "hang": 0.02}


class Receiver(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, account: Path, secret: str, forbidden: str, hang_seconds: float) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.verifier = Webhook(secret)
        self.forbidden = forbidden
        self.hang_seconds = hang_seconds
        self._account = account.open("a", buffering=1)
        self._lock = threading.Lock()

    def write(self, **line: Any) -> None:
        with self._lock:
            self._account.write(json.dumps(line) + "\n")

    def handle_error(self, *_: object) -> None:
        """Whoever hangs up is no error here."""


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        told = self.server.verifier.verify(body, dict(self.headers))  # raises, and the connection is cut
        (done,) = random.choices(list(BEHAVIOURS), list(BEHAVIOURS.values()))
        self.server.write(id=self.headers["webhook-id"], job=told["data"]["job"], type=told["type"], done=done)
        getattr(self, f"_{done}")()

    def _take(self) -> None:
        self._answer(204)

    def _refuse(self) -> None:
        self._answer(500)

    def _redirect(self) -> None:
        self._answer(random.choice((301, 302, 307, 308)), ("Location", self.server.forbidden))

    def _cut(self) -> None:
        self.connection.shutdown(socket.SHUT_RDWR)

    def _hang(self) -> None:
        time.sleep(self.server.hang_seconds)

    def _answer(self, status: int, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for header in headers:
            self.send_header(*header)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    Receiver(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4], float(sys.argv[5])).serve_forever()
