import os
import signal

# numpy's threads spin while they wait: on a machine that other tests share they cost minutes.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from contextlib import contextmanager
from pathlib import Path

import browser
import httpx
import numpy as np
import pytest
from collector import running_collector
from making import make_key, npz, push_dataset, push_model
from pieces import PART_BYTES
from servers import open_folder, postgres, running, s3_server
from service_process import free_port, running_service
from tracking import MlflowServer


def pytest_configure(config):
    """A shell starts what runs in its background deaf to Ctrl-C, and so would be all that is started here."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Whole stacks and a browser take long to start, whatever the test: all of those are slow."""
    for item in items:
        if item.path.relative_to(Path(__file__).parent).parts[0] in ("browser", "e2e"):
            item.add_marker(pytest.mark.slow)


def pytest_make_parametrize_id(config, val, argname):
    """Files are made with the time of day in them: named by it, a test would be another one in every process."""
    return argname if isinstance(val, bytes) else None


def pytest_terminal_summary(terminalreporter):
    if not browser.is_here():
        terminalreporter.write_line(f"WARNING: the page was not looked at: {browser.MISSING}", yellow=True, bold=True)


@pytest.fixture(scope="session")
def postgres_url():
    with open_folder() as folder, postgres(folder / "postgres") as url:
        yield url


@pytest.fixture(scope="session")
def s3():
    with s3_server() as server:
        yield server


@pytest.fixture(scope="session")
def mlflow(tmp_path_factory):
    """One MLflow server for every test that does not break it."""
    with running(MlflowServer(tmp_path_factory.mktemp("tracking") / "mlflow")) as server:
        yield server


@pytest.fixture(scope="session")
def service(tmp_path_factory):
    """One embedded service for every test that does not break it."""
    home = tmp_path_factory.mktemp("service") / "home"
    with running_service(home, threads=1, upload_part_bytes=PART_BYTES) as running:
        yield running


@pytest.fixture(scope="session")
def collector():
    with running_collector() as collector:
        yield collector


@pytest.fixture(scope="session")
def watched(tmp_path_factory, collector):
    """One more, with a port for the worker's figures and somebody who collects spans."""
    home = tmp_path_factory.mktemp("watched") / "home"
    settings = {"threads": 1, "log_format": "json", "metrics_port": free_port()}
    with running_service(home, environment=collector.environment, **settings) as running:
        yield running


@pytest.fixture(scope="session")
def api(service):
    with httpx.Client(base_url=service.url, timeout=60) as client:
        yield client


@pytest.fixture(scope="session")
def digits() -> dict[str, np.ndarray]:
    """Real handwritten digits, 8 x 8, as uint8: small enough to train on in seconds."""
    from sklearn.datasets import load_digits

    found = load_digits()
    images = (found.images / 16 * 255).astype(np.uint8)
    return {
        "x_train": images[:1000],
        "y_train": found.target[:1000],
        "x_test": images[1000:1200],
        "y_test": found.target[1000:1200],
    }


@pytest.fixture(scope="session")
def digits_npz(digits) -> bytes:
    return npz(**digits)


@pytest.fixture(scope="session")
def dataset(api, digits_npz) -> dict:
    return push_dataset(api, digits_npz)


@pytest.fixture(scope="session")
def model(api) -> dict:
    """An uploaded network for 16 x 16 grey images."""
    return push_model(api)


@pytest.fixture(scope="session")
def locked(tmp_path_factory):
    """A service with keys, as it would stand in a network."""
    folder = tmp_path_factory.mktemp("locked")
    settings = {"threads": 1, "upload_part_bytes": PART_BYTES, "log_format": "json", "log_level": "DEBUG"}
    with running_service(folder / "home", admin_key_file=folder / "admin-key", **settings) as running:
        yield running


@pytest.fixture(scope="session")
def knock(locked):
    """A client of that service that holds this key."""

    @contextmanager
    def knock(key: str | None):
        headers = {"Authorization": f"Bearer {key}"} if key is not None else {}
        with httpx.Client(base_url=locked.url, timeout=60, headers=headers) as client:
            yield client

    return knock


@pytest.fixture(scope="session")
def admin_key(locked) -> str:
    return (locked.home.parent / "admin-key").read_text().strip()


@pytest.fixture(scope="session")
def admin(knock, admin_key):
    with knock(admin_key) as client:
        yield client


@pytest.fixture(scope="session")
def alice(knock, admin):
    """A tenant that has one of everything."""
    with knock(make_key(admin, tenant="alice", scopes=["read", "write", "admin"])) as client:
        yield client


@pytest.fixture(scope="session")
def mallory(knock, admin):
    """Another tenant, with every right in its own house."""
    with knock(make_key(admin, tenant="mallory", scopes=["read", "write", "admin"])) as client:
        yield client
