import base64
import json
import pickle
from datetime import UTC, datetime, timedelta

import pytest
from kombu import Connection

from ledger.broker import celery_config
from ledger.envelope import Unreadable, unfold
from ledger.settings import Settings

LONGEST = 1024**2
FIELDS = {"id": "mine", "token": "fc_x", "job": {"kind": "noop"}}


def wrapped(body: bytes, /, **changes) -> bytes:
    """As kombu lays it into Redis."""
    headers = {"task": "flashcards.submit", "id": "celerys", **changes.pop("headers", {})}
    outside = {
        "body": base64.b64encode(body).decode(),
        "content-type": "application/json",
        "headers": headers,
        "properties": {"body_encoding": "base64"},
        **changes,
    }
    return json.dumps(outside).encode()


def task(args=(), kwargs=FIELDS, **changes) -> bytes:
    return wrapped(json.dumps([list(args), kwargs, {}]).encode(), **changes)


def test_bare_fields():
    letter = unfold(json.dumps(FIELDS).encode(), LONGEST)
    assert (letter.id, letter.token, letter.fields, letter.trouble) == ("mine", "fc_x", FIELDS, None)


def test_a_task_of_celery():
    letter = unfold(task(), LONGEST)
    assert (letter.id, letter.fields, letter.trouble) == ("mine", FIELDS, None)


def test_what_celery_itself_sends(tmp_path):
    from celery import Celery

    settings = Settings(home=tmp_path)
    app = Celery("producer", set_as_current=False)
    app.conf.update(celery_config(settings))
    app.send_task("flashcards.submit", kwargs={"job": {"kind": "noop"}}, task_id="celerys", queue="flashcards.submit")
    (file,) = (settings.broker_folder / "flashcards.submit").glob("*.msg")
    letter = unfold(file.read_bytes(), LONGEST)
    assert letter.trouble is None
    assert letter.fields == {"id": "celerys", "job": {"kind": "noop"}}


def test_a_body_that_kombu_did_not_pack(tmp_path):
    with Connection("memory://") as connection:
        message = connection.default_channel.prepare_message(
            json.dumps([[], FIELDS, {}]), content_type="application/json", headers={"task": "flashcards.submit"}
        )
    assert unfold(json.dumps(message).encode(), LONGEST).fields == FIELDS


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"not json",
        b"\xff\xfe\x00",
        b'"text"',
        b"[]",
        b"{}",
        b'{"job": {}}',
        b'{"id": ""}',
        b'{"id": 7}',
        b"[" * 100_000,
        b'{"id": ' + b"9" * 10_000 + b"}",
        b" " * (LONGEST + 1),
    ],
    ids=["empty", "words", "bytes", "text", "list", "nothing", "no id", "empty id", "number", "deep", "long", "large"],
)
def test_nobody_to_tell(raw):
    with pytest.raises(Unreadable):
        unfold(raw, LONGEST)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (task(headers={"task": "flashcards.run"}), "flashcards.run"),
        (task(headers={"eta": "2030-01-01T00:00:00+00:00"}), "without eta or countdown"),
        (task(headers={"expires": (datetime.now(UTC) - timedelta(hours=1)).isoformat()}), "expired"),
        (task(headers={"compression": "application/x-gzip"}), "compressed"),
        (task(args=[1]), "as kwargs"),
        (task(kwargs=[1]), "as kwargs"),
        (wrapped(b"not json"), "cannot be read"),
        (task(body="%%%"), "cannot be read"),
        (task(body=7), "cannot be read"),
        (wrapped(pickle.dumps([[], FIELDS, {}]), **{"content-type": "application/x-python-serialize"}), "only JSON"),
    ],
)
def test_what_is_wrong_is_said_under_its_id(raw, words):
    letter = unfold(raw, LONGEST)
    assert letter.id in ("mine", "celerys")
    assert words in letter.trouble


def test_what_has_not_expired_yet_is_taken():
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    assert unfold(task(headers={"expires": later}), LONGEST).trouble is None
