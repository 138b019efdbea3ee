"""A few of each trouble, as `make chaos` makes them: so that neither the service nor the chaos itself rots."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from servers import open_folder

from tests.chaos.troubles import kinds, plan

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder():
    with open_folder() as found:
        yield found


def command(folder: Path, stack: str, kills: int, *more: str) -> list[str]:
    options = ["--stack", stack, "--kills", str(kills), "--seed", "1", "--pause", "0.5", "--folder", str(folder)]
    return [sys.executable, "-m", "tests.chaos", *options, *more]


def report_of(folder: Path) -> dict:
    (told,) = json.loads((folder / "report.json").read_text())
    return told


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("stack", "kills", "more"), [("embedded", 5, []), ("servers", 3, ["--own"]), ("servers", 7, [])]
)
def test_every_trouble_is_got_over(folder, stack, kills, more):
    ran = subprocess.run(command(folder, stack, kills, *more), cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
    told = report_of(folder)
    made = {met["name"] for met in told["troubles"]} | set(told["skipped"])
    assert made == {trouble.name for trouble in kinds(stack, own=bool(more))} | set(told["skipped"])
    assert told["killed"] == kills
    assert told["checks"] == len(told["troubles"]) + 1
    assert told["summary"]["accepted"] == len(told["jobs"]) > 0
    assert "every promise was kept" in (folder / "report.md").read_text()


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(600)
def test_an_interrupted_run_goes_on_where_it_was(folder):
    state = folder / "embedded-1" / "state.json"
    first = subprocess.Popen(command(folder, "embedded", 2), cwd=ROOT, stdout=subprocess.PIPE, text=True)
    while not state.exists() or json.loads(state.read_text())["done"] < 2:
        assert first.poll() is None
        time.sleep(0.2)
    first.send_signal(signal.SIGINT)
    assert "goes on from here" in first.communicate(timeout=120)[0]
    assert first.returncode == 130
    before = json.loads(state.read_text())
    assert 2 <= before["done"] < len(plan("embedded", 1, 2, disk=True))

    second = subprocess.run(command(folder, "embedded", 2), cwd=ROOT, capture_output=True, text=True)
    assert second.returncode == 0, second.stdout[-6000:] + second.stderr[-2000:]
    told = report_of(folder)
    assert told["troubles"][: before["done"]] == before["troubles"]
    assert [job["id"] for job in told["jobs"][: len(before["jobs"])] if job["id"]] == [
        job["id"] for job in told["jobs"][: len(before["jobs"])]
    ]


@pytest.mark.parametrize("stack", ["embedded", "servers"])
def test_a_seed_makes_the_same_troubles_and_another_one_others(stack):
    first = plan(stack, 1, 100, disk=True)
    assert first == plan(stack, 1, 100, disk=True)
    assert first != plan(stack, 2, 100, disk=True)
    assert sum(trouble.kill for trouble in first) == 100
    assert {trouble.name for trouble in first} == {trouble.name for trouble in kinds(stack)}
    assert all(not trouble.needs_disk for trouble in plan(stack, 1, 100, disk=False))
