import os
import re
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from deployment import read_compose

from flashcards.contract.tokens import is_token

NOBODY = 65534


def make(root: Path, folder: Path) -> str:
    return subprocess.run([root / "docker/make-secrets", folder], check=True, capture_output=True, text=True).stdout


def make_as_nobody(root: Path, folder: Path) -> int:
    """The script comes by standard input: nobody else may be allowed to look into our tree."""
    nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/"}
    script = (root / "docker/make-secrets").read_bytes()
    return subprocess.run(["sh", "-s", folder], input=script, capture_output=True, **nobody).returncode


@pytest.fixture
def nobodys() -> Iterator[Path]:
    """A folder of somebody who is not root; pytest's own ones are root's alone."""
    if os.geteuid() != 0:
        pytest.skip("only root may become somebody else")
    with TemporaryDirectory(dir="/tmp") as folder:
        os.chown(folder, NOBODY, NOBODY)
        yield Path(folder)


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_key_is_one_of_ours(secrets):
    assert is_token((secrets / "admin_key").read_text().removesuffix("\n"))


def test_each_is_long_and_differs(secrets, root, tmp_path):
    make(root, tmp_path / "others")
    mine, others = contents(secrets), contents(tmp_path / "others")
    assert mine.keys() == others.keys()
    for name, text in mine.items():
        assert text != others[name], name
        assert re.search(r"[0-9A-Za-z]{20}", text), name
    assert all(len(mine[name].strip()) == 43 for name in ("postgres_password", "database_password", "key_secret"))


def test_what_is_there_is_left_alone(root, tmp_path):
    folder = tmp_path / "secrets"
    make(root, folder)
    before = contents(folder)
    (folder / "admin_key").unlink()
    assert make(root, folder) == f"made {folder / 'admin_key'}\n"
    after = contents(folder)
    assert before.pop("admin_key") != after.pop("admin_key")
    assert before == after


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_as_root_each_file_belongs_to_whoever_reads_it(secrets, root):
    compose = read_compose(root / "docker-compose.yml")
    assert mode(secrets) == 0o700
    for service in compose["services"].values():
        for name in service.get("secrets", []):
            facts = (secrets / name).stat()
            assert f"{facts.st_uid}:{facts.st_gid}" == service["user"], name
            assert mode(secrets / name) == 0o600


def test_as_anybody_else_the_folder_keeps_others_out(root, nobodys):
    assert make_as_nobody(root, nobodys / "secrets") == 0
    assert mode(nobodys / "secrets") == 0o700
    assert {mode(path) for path in (nobodys / "secrets").iterdir()} == {0o444}


def test_a_secret_that_cannot_be_read_is_not_taken_for_an_empty_one(root, nobodys):
    make_as_nobody(root, nobodys / "secrets")
    (nobodys / "secrets/database_password").chmod(0)
    (nobodys / "secrets/database_url").unlink()
    assert make_as_nobody(root, nobodys / "secrets") != 0
    assert not (nobodys / "secrets/database_url").exists()


def test_git_does_not_see_them(root):
    ignored = subprocess.run(["git", "check-ignore", "--quiet", "docker/secrets/admin_key"], cwd=root)
    assert ignored.returncode == 0
