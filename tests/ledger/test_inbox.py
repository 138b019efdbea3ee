import json
import os
import time

import pytest
import redis
from celery import Celery
from servers import open_folder, redis_server

from ledger import inbox as inboxes
from ledger.inbox import QUEUE, open_inbox
from ledger.settings import Settings


@pytest.fixture(scope="module")
def redis_url():
    with open_folder() as folder, redis_server(folder / "redis") as url:
        yield url


class Broker:
    """Either of the two, as producers and the service see it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._is_redis = settings.broker.startswith("redis")
        if self._is_redis:
            self._redis = redis.Redis.from_url(settings.broker)
            self._redis.flushall()

    def inbox(self, taker: str = "worker_a"):
        return open_inbox(self.settings, taker)

    def send(self, *messages: bytes) -> None:
        for number, message in enumerate(messages):
            if self._is_redis:
                self._redis.lpush(QUEUE, message)
            else:
                folder = self.settings.broker_folder / QUEUE
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"{time.time_ns()}-{number}.msg").write_bytes(message)

    def aside(self) -> list[bytes]:
        if self._is_redis:
            return self._redis.lrange(f"{QUEUE}.refused", 0, -1)
        return [path.read_bytes() for path in (self.settings.broker_folder / QUEUE).glob(".*.refused")]

    def let_takers_grow_silent(self) -> None:
        if self._is_redis:
            for taker in self._redis.zrange(f"{QUEUE}.takers", 0, -1):
                self._redis.zincrby(f"{QUEUE}.takers", -60, taker)
        else:
            for path in (self.settings.broker_folder / QUEUE).glob(".*.taken"):
                os.utime(path, (time.time() - 60, time.time() - 60))


@pytest.fixture(params=["embedded", "redis"])
def broker(request, tmp_path):
    url = request.getfixturevalue("redis_url") if request.param == "redis" else ""
    return Broker(Settings(home=tmp_path, broker_url=url))


def test_in_the_order_in_which_they_came_and_once(broker):
    broker.send(b'{"n": 1}', b'{"n": 2}')
    one, other = broker.inbox("worker_a"), broker.inbox("worker_b")
    first, second = one.take(1), other.take(1)
    assert [first.raw, second.raw] == [b'{"n": 1}', b'{"n": 2}']
    one.done(first)
    other.done(second)
    assert one.take(0.1) is None


def test_what_its_taker_left_is_put_back_once_it_is_silent(broker):
    broker.send(b'{"n": 1}')
    assert broker.inbox("worker_a").take(1) is not None  # and dies
    heir = broker.inbox("worker_b")
    assert heir.put_back_lost() == 0
    assert heir.take(0.1) is None
    broker.let_takers_grow_silent()
    assert heir.put_back_lost() == 1
    assert heir.take(1).raw == b'{"n": 1}'


def test_what_is_done_is_not_put_back(broker):
    broker.send(b'{"n": 1}')
    one = broker.inbox("worker_a")
    one.done(one.take(1))
    broker.let_takers_grow_silent()
    assert broker.inbox("worker_b").put_back_lost() == 0


def test_what_is_set_aside_stays_there(broker):
    broker.send(b"{}", b'{"n": 2}')
    one = broker.inbox("worker_a")
    one.set_aside(one.take(1))
    assert one.take(1).raw == b'{"n": 2}'
    assert broker.aside() == [b"{}"]


def test_not_for_ever(broker, monkeypatch):
    monkeypatch.setattr(inboxes, "SET_ASIDE_AT_MOST", 2)
    one = broker.inbox("worker_a")
    for n in range(4):
        broker.send(b'{"n": %d}' % n)
        one.set_aside(one.take(1))
    assert sorted(broker.aside()) == [b'{"n": 2}', b'{"n": 3}']


def test_every_priority_of_celery_is_read(redis_url, tmp_path):
    broker = Broker(Settings(home=tmp_path, broker_url=redis_url))
    producer = Celery(broker=redis_url, set_as_current=False)
    for priority in (0, 3, 6, 9):
        producer.send_task("flashcards.submit", task_id=f"p-{priority}", queue=QUEUE, priority=priority)
    one, found = broker.inbox(), set()
    while (taken := one.take(0.1)) is not None:
        found.add(json.loads(taken.raw)["headers"]["id"])
        one.done(taken)
    assert found == {"p-0", "p-3", "p-6", "p-9"}


def test_a_file_that_is_still_being_written_is_left_for_a_moment(tmp_path):
    broker = Broker(Settings(home=tmp_path))
    broker.send(b'{"n": ')
    one = broker.inbox()
    assert one.take(0.1) is None
    (file,) = (tmp_path / "broker" / QUEUE).glob("*.msg")
    os.utime(file, (time.time() - 60, time.time() - 60))
    assert one.take(0.1).raw == b'{"n": '


def test_of_another_broker_nobody_knows(tmp_path):
    assert open_inbox(Settings(home=tmp_path, broker_url="amqp://localhost"), "worker_a") is None
