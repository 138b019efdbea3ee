import json
import time

import pytest
from typer.testing import CliRunner

from flashcards import Client
from flashcards.cli import app
from flashcards.errors import NotFound


@pytest.fixture(scope="module")
def client(service):
    with Client(service.url) as client:
        yield client


@pytest.fixture(scope="module")
def sent(service, client):
    """One that became a job, one that did not."""
    folder = service.home / "broker" / "flashcards.submit"
    for id, kind in (("cli-good", "noop"), ("cli-bad", "nap")):
        draft = folder / f"{id}.tmp"
        draft.write_text(json.dumps({"id": id, "job": {"kind": kind}}))
        draft.rename(draft.with_suffix(".msg"))
    for _ in range(600):
        if len(client.submissions.list().items) >= 2:
            return {item.id: item for item in client.submissions.each()}
        time.sleep(0.05)
    raise TimeoutError


def run(service, *words: str) -> str:
    done = CliRunner().invoke(app, ["submissions", *words], env={"FLASHCARDS_URL": service.url})
    assert done.exit_code == 0, done.output
    return done.output


def test_the_client_reads_them(client, sent):
    assert client.submissions.get("cli-good") == sent["cli-good"]
    assert [item.id for item in client.submissions.each("rejected")] == ["cli-bad"]
    with pytest.raises(NotFound):
        client.submissions.get("cli-never")


def test_the_command_lists_and_shows_them(service, sent):
    listed = json.loads(run(service, "ls", "--json"))
    assert {item["id"]: item["state"] for item in listed} == {"cli-good": "accepted", "cli-bad": "rejected"}
    assert sent["cli-good"].job in run(service, "show", "cli-good")
    assert "nap" in run(service, "show", "cli-bad")
    assert "cli-bad" in run(service, "ls", "--state", "rejected")
