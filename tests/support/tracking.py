"""A real MLflow server, and servers that only look like one: silent, slow, broken."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import psutil
from servers import Server
from service_process import free_port

START_SECONDS = 300  # it imports a hundred packages


class MlflowServer(Server):
    """`mlflow server`, SQLite and a folder behind it."""

    start_seconds = START_SECONDS

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, **request: object) -> dict:
        answer = httpx.request(method, f"{self.url}/api/2.0/mlflow/{path}", timeout=60, **request)
        return answer.raise_for_status().json()

    def runs(self, experiment: str) -> list[dict]:
        try:
            found = self.ask("GET", "experiments/get-by-name", params={"experiment_name": experiment})
        except httpx.HTTPStatusError:
            return []
        body = {"experiment_ids": [found["experiment"]["experiment_id"]], "max_results": 1000}
        return self.ask("POST", "runs/search", json=body).get("runs", [])

    def history(self, run_id: str, metric: str) -> list[tuple[int, float]]:
        found = self.ask("GET", "metrics/get-history", params={"run_id": run_id, "metric_key": metric})
        return sorted((int(point.get("step", 0)), point["value"]) for point in found.get("metrics", []))

    def files(self, run_id: str, path: str | None = None) -> list[str]:
        params = {"run_id": run_id, **({"path": path} if path else {})}
        return sorted(file["path"] for file in self.ask("GET", "artifacts/list", params=params).get("files", []))

    def _spawn(self) -> "subprocess.Popen[bytes]":
        where = ["--host", "127.0.0.1", "--port", str(self.port), "--workers", "1"]
        stores = ["--backend-store-uri", f"sqlite:///{self.folder}/mlflow.db"]
        files = ["--artifacts-destination", str(self.folder / "files")]
        # Its own job runner would be three more processes, for nothing that is asked of it here.
        environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
        with (self.folder.parent / f"{self.folder.name}.log").open("ab") as log:
            command = [sys.executable, "-m", "mlflow", "server", *where, *stores, *files]
            return subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)

    def _answers(self) -> bool:
        with suppress(httpx.TransportError):
            return httpx.get(f"{self.url}/health", timeout=5).status_code == 200
        return False

    def _end(self, number: int) -> None:
        """With all that it has started: the first process only looks after the others."""
        family = []
        if self.process is not None:
            with suppress(psutil.NoSuchProcess):
                family = psutil.Process(self.process.pid).children(recursive=True)
        super()._end(number)
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(family, timeout=10)


def run_of(runs: list[dict], job_id: str) -> dict | None:
    """The one run of this job, with tags, params and metrics by name."""
    found = [run for run in runs if tagged(run).get("flashcards.job") == job_id]
    assert len(found) <= 1, "one job, one run"
    return found[0] if found else None


def tagged(run: dict) -> dict[str, str]:
    return {tag["key"]: tag["value"] for tag in run["data"].get("tags", [])}


def params_of(run: dict) -> dict[str, str]:
    return {param["key"]: param["value"] for param in run["data"].get("params", [])}


@contextmanager
def silent_server() -> Iterator[str]:
    """Accepts, and never answers."""
    held: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", free_port())) as listening:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    held.append(listening.accept()[0])

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
    for connection in held:
        connection.close()


@contextmanager
def answering_server(status: int, body: bytes, drip_seconds: float = 0.0, **headers: str) -> Iterator[tuple[str, list]]:
    """Says the same to everybody; what it was asked is in the list."""
    asked: list[str] = []
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            asked.append(f"{self.command} {self.path}")
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):
                for place in range(len(body)) if drip_seconds else ():
                    self.wfile.write(body[place : place + 1])
                    if over.wait(drip_seconds):
                        return
                if not drip_seconds:
                    self.wfile.write(body)

        do_GET = do_POST = do_PUT = answer

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        over.set()
        server.shutdown()
        thread.join()
