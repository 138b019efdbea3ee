import subprocess
from pathlib import Path

import pytest
from deployment import Image
from dockerfile import parse

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def secrets(tmp_path_factory) -> Path:
    """What make-secrets makes, run as whoever runs the tests."""
    folder = tmp_path_factory.mktemp("deployment") / "secrets"
    subprocess.run([ROOT / "docker/make-secrets", folder], check=True, stdout=subprocess.DEVNULL)
    return folder


@pytest.fixture
def image() -> Image:
    text = (ROOT / "docker/Dockerfile").read_text()
    return Image(ROOT, parse(text), (ROOT / ".dockerignore").read_text())
