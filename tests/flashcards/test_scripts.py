"""What a script needs of the commands: JSON, exit codes, waiting or not, words to complete."""

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
import typer.main
from service_process import free_port
from typer.testing import CliRunner

from flashcards.cli import app, completion

COMMAND = Path(sys.executable).with_name("flashcards")
#: These become a process of the service, and have nothing to print.
PROCESSES = {"serve", "api", "worker", "courier"}
NAMED = {
    *("serve", "demo", "models", "datasets", "train", "capture", "analyze", "distill"),
    *("learn", "evaluate", "compare", "jobs", "learners", "keys", "capsule", "doctor"),
}


def run(url, *words, exit_code: int = 0):
    done = CliRunner().invoke(app, [str(word) for word in words], env={"FLASHCARDS_URL": url})
    assert done.exit_code == exit_code, done.output
    return done


def commands(group=None, path=()):
    group = group or typer.main.get_command(app)
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


def test_every_command_is_there():
    assert set(typer.main.get_command(app).commands) >= NAMED


@pytest.mark.parametrize(
    ("path", "command"), list(commands()), ids=lambda each: "-".join(each) if isinstance(each, tuple) else ""
)
def test_every_command_speaks_json_and_says_what_it_does(path, command):
    assert command.help
    options = {flag for each in command.params for flag in each.opts}
    assert ("--json" in options) == (path[-1] not in PROCESSES)


def test_a_refusal_is_json_too(service):
    told = json.loads(run(service.url, "jobs", "show", "job_" + "0" * 32, "--json", exit_code=1).stderr)
    assert (told["type"], told["status"]) == ("/problems/not-found", 404)


@pytest.mark.slow  # it asks again for some seconds before it gives up
def test_nobody_there_is_another_exit_code(tmp_path):
    url = f"http://127.0.0.1:{free_port()}"
    told = run(url, "models", "ls", exit_code=5).stderr
    assert url in told
    assert "`flashcards serve` starts it" in told
    assert "flashcards serve" in json.loads(run(url, "models", "ls", "--json", exit_code=5).stderr)["detail"]


def test_waiting_is_asked_for_or_not(service, trained):
    model = trained.result.model
    waited = json.loads(run(service.url, "capture", model, "--count", 16, "--wait", "--json").stdout)
    assert waited["state"] == "succeeded"
    asked = run(service.url, "capture", model, "--count", 16, "--detach").stdout.strip()
    assert json.loads(run(service.url, "jobs", "watch", asked, "--json").stdout)["state"] == "succeeded"


def test_a_report_comes_as_a_file_or_as_numbers(service, captured, tmp_path):
    path = run(service.url, "jobs", "report", captured.id, "--to", tmp_path).stdout.strip()
    assert Path(path).read_text().startswith("<!doctype html>")
    told = json.loads(run(service.url, "jobs", "report", captured.id, "--json").stdout)
    assert told["job"]["id"] == captured.id


def test_a_new_key_as_json(service):
    assert json.loads(run(service.url, "keys", "generate", "--json").stdout)["key"].startswith("fc_")


def test_ids_are_completed(service, trained, captured):
    context = click.Context(
        click.Command("show"), info_name="show", parent=click.Context(click.Command("cards"), info_name="cards")
    )
    context.find_root().params["url"] = service.url
    assert captured.result.flashcards in [id for id, _ in completion.of_group(context, "flashcards_")]
    assert (trained.result.model, "small") in completion.known("models")(context, trained.result.model[:20])
    assert completion.known("models")(context, "nothing") == []
    context.find_root().params["url"] = f"http://127.0.0.1:{free_port()}"
    assert completion.known("models")(context, "") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands(shell):
    environment = {
        **os.environ,
        "_FLASHCARDS_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": "flashcards lea",
        "COMP_CWORD": "1",
    }
    environment |= {"_TYPER_COMPLETE_ARGS": "flashcards lea", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    done = subprocess.run([COMMAND], env=environment, capture_output=True, text=True, check=False)
    assert "learners" in done.stdout
    assert "learn" in done.stdout
