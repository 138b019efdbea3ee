import httpx
import pytest
from service_process import running_service


@pytest.fixture(scope="package")
def elsewhere(tmp_path_factory):
    """Another installation."""
    home = tmp_path_factory.mktemp("elsewhere") / "home"
    with running_service(home, threads=1) as running, httpx.Client(base_url=running.url, timeout=60) as client:
        yield client
