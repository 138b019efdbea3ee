import json
import time

import pytest
import redis
from servers import Redis, open_folder, running
from sqlalchemy import select

from flashcards.contract import tokens
from ledger.db import Database
from ledger.envelope import unfold
from ledger.inbox import QUEUE
from ledger.keys import Keyring
from ledger.settings import Settings
from ledger.tables import Job, Submission
from worker import announcer, door
from worker.station import Station

SECRET = "a secret of the tests" * 2


@pytest.fixture
def server():
    with open_folder() as folder, running(Redis(folder / "redis")) as server:
        yield server


@pytest.fixture
def broker(server):
    with redis.Redis.from_url(server.url) as client:
        yield client


@pytest.fixture
def open_door(server, tmp_path):
    """A worker's, over Redis and a record in a file."""
    opened = []

    def open_door(**settings) -> Station:
        station = Station(Settings(home=tmp_path, broker_url=server.url, **settings))
        opened.append((station, door.start(station)))
        return station

    yield open_door
    for station, opened_door in opened:
        station.draining.set()
        opened_door.close()
        station.close()


def send(broker, **fields) -> None:
    broker.lpush(QUEUE, json.dumps(fields))


def settled(station, key: str, seconds: float = 30) -> Submission:
    return until(lambda: _submission(station, key), seconds)


def _submission(station, key: str) -> Submission | None:
    with station.db.read() as session:
        return session.scalar(select(Submission).where(Submission.key == key))


def until(look, seconds: float = 30):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.05)
    raise TimeoutError


def nothing_left(broker) -> bool:
    return not broker.llen(QUEUE) and not list(broker.scan_iter(f"{QUEUE}.taken.*"))


def test_a_message_becomes_a_job_and_is_let_go_of(open_door, broker):
    station = open_door()
    send(broker, id="a", job={"kind": "noop"})
    assert settled(station, "a").job_id is not None
    until(lambda: nothing_left(broker))


def test_it_is_rung_for(open_door, broker):
    station = open_door()
    send(broker, id="a", job={"kind": "noop"})
    job_id = settled(station, "a").job_id
    (ring,) = until(lambda: broker.lrange("cpu", 0, -1))
    assert job_id in str(json.loads(ring)["headers"]["argsrepr"])


@pytest.mark.parametrize("rubbish", [b"not json", b"", b"\xff\x00", b"[]", b'{"job": {"kind": "noop"}}', b"[" * 90_000])
def test_what_nobody_can_be_told_of_is_set_aside_and_the_next_is_taken(open_door, broker, rubbish):
    station = open_door()
    broker.lpush(QUEUE, rubbish)
    send(broker, id="good", job={"kind": "noop"})
    assert settled(station, "good").job_id is not None
    assert broker.lrange(f"{QUEUE}.refused", 0, -1) == [rubbish]
    until(lambda: nothing_left(broker))


def test_a_defect_of_ours_does_not_bring_a_message_back_for_ever(open_door, broker, monkeypatch):
    def fail_once(raw, longest):
        monkeypatch.undo()
        raise RuntimeError("a defect")

    monkeypatch.setattr(door, "unfold", fail_once)
    station = open_door()
    send(broker, id="bad", job={"kind": "noop"})
    send(broker, id="good", job={"kind": "noop"})
    assert settled(station, "good").job_id is not None
    assert len(broker.lrange(f"{QUEUE}.refused", 0, -1)) == 1


def test_with_the_database_away_it_waits_with_the_message_in_hand(open_door, broker, monkeypatch):
    station = open_door()
    away, write = [True], station.db.write
    from sqlalchemy.exc import OperationalError

    def write_when_back():
        if away[0]:
            raise OperationalError("INSERT", {}, Exception("the server closed the connection"))
        return write()

    monkeypatch.setattr(station.db, "write", write_when_back)
    send(broker, id="a", job={"kind": "noop"})
    time.sleep(1.5)
    assert _submission(station, "a") is None
    assert not nothing_left(broker)
    away[0] = False
    assert settled(station, "a").job_id is not None
    until(lambda: nothing_left(broker))


def test_with_redis_away_it_waits_for_it(open_door, server, broker):
    station = open_door()
    server.stop()
    time.sleep(1.5)
    server.start()
    send(broker, id="a", job={"kind": "noop"})
    assert settled(station, "a").job_id is not None


def test_what_a_dead_worker_has_left_is_taken_in_by_another(open_door, broker, monkeypatch):
    monkeypatch.setattr(door, "LOOK_SECONDS", 0.2)
    broker.lpush(f"{QUEUE}.taken.worker_dead", json.dumps({"id": "left", "job": {"kind": "noop"}}))
    broker.zadd(f"{QUEUE}.takers", {"worker_dead": time.time() - 60})
    assert settled(open_door(), "left").job_id is not None


def test_read_twice_it_is_one_job(open_door, broker):
    """As when a worker is killed between the commit and letting go."""
    station = open_door()
    for _ in range(3):
        send(broker, id="a", job={"kind": "noop"})
    until(lambda: nothing_left(broker) and _submission(station, "a"))
    with station.db.read() as session:
        assert len(session.scalars(select(Job)).all()) == 1


class TestKeys:
    @pytest.fixture
    def key(self, tmp_path):
        """One of alice's, made as an API would."""
        Settings(home=tmp_path).home.mkdir(exist_ok=True)
        station = Station(Settings(home=tmp_path))
        token = tokens.new_token()
        with station.db.write() as session:
            values = {"name": "line 7", "scopes": ["write"], "retain_data": True}
            Keyring(station.db, SECRET).add(session, "alice", token, **values)
        station.close()
        return token

    def test_who_has_one_comes_in_as_its_tenant(self, open_door, broker, tmp_path, key):
        station = open_door(database_url=f"sqlite:///{tmp_path / 'flashcards.db'}", key_secret=SECRET)
        send(broker, id="a", token=key, job={"kind": "noop"})
        assert (settled(station, "a").tenant, settled(station, "a").problem) == ("alice", None)

    def test_who_has_none_does_not(self, open_door, broker, tmp_path, key):
        station = open_door(database_url=f"sqlite:///{tmp_path / 'flashcards.db'}", key_secret=SECRET)
        send(broker, id="a", job={"kind": "noop"})
        assert (settled(station, "a").tenant, settled(station, "a").problem["status"]) == (None, 401)

    def test_a_worker_that_cannot_tell_keys_takes_nothing(self, open_door, broker, tmp_path, key):
        station = open_door(database_url=f"sqlite:///{tmp_path / 'flashcards.db'}")
        send(broker, id="a", job={"kind": "noop"})
        time.sleep(2)
        assert _submission(station, "a") is None
        assert broker.llen(QUEUE) == 1


class TestAnnouncer:
    def test_the_end_of_a_job_is_said_on_the_queue_of_its_choice(self, open_door, broker):
        station = open_door()
        send(broker, id="a", job={"kind": "noop", "announce": "results.mine"}, reply_to="results.mine")
        settled(station, "a")
        assert announcer.announce(station) == 1
        assert announcer.announce(station) == 0
        (envelope,) = broker.lrange("results.mine", 0, -1)
        assert json.loads(envelope)["headers"]["task"] == "flashcards.announce"
        assert unfold(envelope, 1024**2).fields["event"] == "submission.accepted"

    def test_with_the_broker_away_it_is_said_later(self, open_door, server, broker):
        station = open_door()
        send(broker, id="a", job={"kind": "noop"}, reply_to="results.mine")
        settled(station, "a")
        server.stop()
        assert announcer.announce(station) == 1
        server.start()
        assert until(lambda: announcer.announce(station))
        assert broker.llen("results.mine") == 1

    def test_a_worker_that_dies_before_it_is_noted_says_it_twice_with_one_id(self, open_door, broker, monkeypatch):
        station = open_door()
        send(broker, id="a", job={"kind": "noop"}, reply_to="results.mine")
        settled(station, "a")
        monkeypatch.setattr(announcer.announcements, "CLAIM_SECONDS", 0.1)
        monkeypatch.setattr(announcer.announcements, "said", lambda db, ids: None)
        announcer.announce(station)
        monkeypatch.undo()
        assert until(lambda: announcer.announce(station))
        ids = {unfold(each, 1024**2).fields["id"] for each in broker.lrange("results.mine", 0, -1)}
        assert (broker.llen("results.mine"), len(ids)) == (2, 1)


def test_on_files_as_well(tmp_path):
    station = Station(Settings(home=tmp_path))
    opened = door.start(station)
    folder = tmp_path / "broker" / QUEUE
    (folder / "1.msg").write_bytes(b"not json}")
    (folder / "2.msg").write_text(json.dumps({"id": "a", "job": {"kind": "noop"}}))
    try:
        assert settled(station, "a").job_id is not None
        until(lambda: [path.name for path in folder.iterdir()] == [".1.msg.taken.refused"])
    finally:
        station.draining.set()
        opened.close()
        station.close()


def test_on_a_broker_that_it_does_not_know_the_door_stays_shut(tmp_path):
    station = Station(Settings(home=tmp_path, broker_url="amqp://127.0.0.1:1"))
    assert door.start(station) is None
    station.close()


def test_the_record_is_one_that_stays(open_door, broker, tmp_path):
    """The message is gone from the broker, so the row must be there for another process."""
    station = open_door()
    send(broker, id="a", job={"kind": "noop"})
    settled(station, "a")
    other = Database(f"sqlite:///{tmp_path / 'flashcards.db'}")
    with other.read() as session:
        assert session.scalar(select(Job.state)) == "queued"
    other.close()
