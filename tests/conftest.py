import httpx
import numpy as np
import pytest
from making import npz, push_dataset, push_model
from servers import postgres
from service_process import running_service


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory):
    with postgres(tmp_path_factory.mktemp("postgres")) as url:
        yield url


@pytest.fixture(scope="session")
def service(tmp_path_factory):
    """One embedded service for every test that does not break it."""
    with running_service(tmp_path_factory.mktemp("service") / "home", threads=1) as running:
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
