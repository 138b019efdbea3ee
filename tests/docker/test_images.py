"""No image is built here: what the files name must exist in the tree."""

import re
import shlex
from pathlib import Path

import yaml
from typer.main import get_command

from flashcards.cli import app
from ledger.settings import Settings

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "docker/Dockerfile").read_text()
SERVICE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["flashcards"]


def assert_is_a_command(words: list[str]) -> None:
    assert words[0] == "flashcards"
    assert words[1] in get_command(app).commands


def test_every_copied_path_is_there_and_every_package_is_copied():
    copied = [
        path for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.M) for path in shlex.split(line)[:-1]
    ]
    assert all((ROOT / path).exists() for path in copied)
    assert {"flashcards", "service", "ledger", "worker", "engine"} <= set(copied)


def test_commands_exist():
    assert_is_a_command(yaml.safe_load(re.search(r"^CMD (.+)$", DOCKERFILE, re.M)[1]))
    assert_is_a_command(SERVICE["command"])


def test_settings_exist():
    named = set(re.findall(r"FLASHCARDS_([A-Z_]+)", DOCKERFILE + (ROOT / "docker-compose.yml").read_text()))
    assert named
    assert {name.lower() for name in named} <= set(Settings.model_fields)


def test_the_build_target_and_file_exist():
    assert (ROOT / SERVICE["build"]["dockerfile"]).is_file()
    assert f"AS {SERVICE['build']['target']}\n" in DOCKERFILE


def test_the_container_is_locked_down():
    assert (SERVICE["read_only"], SERVICE["cap_drop"]) == (True, ["ALL"])
    assert re.search(r"^USER flashcards$", DOCKERFILE, re.M)
    assert SERVICE["environment"]["FLASHCARDS_HOST"] == "127.0.0.1"
