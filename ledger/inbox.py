"""Messages that come in by the broker, each held until what it asked for is on record.

Unlike a ring, a submission is nowhere but in the broker. So it is not popped: it is moved, in one step, to where its
taker keeps what it works on, and deleted from there after the commit. A taker that dies leaves it there, and another
one puts it back. It may then be read twice, which its id makes harmless. (kombu's own emulation of acks has a moment
between two commands in which a killed process loses the message, and gives back what is left only after an hour.)
"""

import os
import time
from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from redis import Redis

from ledger.settings import Settings

QUEUE = "flashcards.submit"
SILENT_SECONDS = 15.0  # a taker that was not heard of for so long is gone
SET_ASIDE_AT_MOST = 1000
SET_ASIDE_SECONDS = 7 * 86400
IS_REDIS = ("redis://", "rediss://", "unix://")


@dataclass(frozen=True)
class Taken:
    raw: bytes
    name: str = ""


class Inbox(Protocol):
    def take(self, seconds: float) -> Taken | None:
        """The next message, now the caller's; None where none came in that time."""

    def done(self, taken: Taken) -> None:
        """What it asked for is on record."""

    def set_aside(self, taken: Taken) -> None:
        """Nobody can be told what is wrong with it: kept for a while, for whoever looks after the service."""

    def put_back_lost(self) -> int:
        """What takers that are gone have left."""

    def close(self) -> None: ...


def open_inbox(settings: Settings, taker: str) -> Inbox | None:
    """None: of this broker nobody knows how to take without losing."""
    if settings.broker.startswith("embedded"):
        return FolderInbox(settings.broker_folder / QUEUE)
    if settings.broker.startswith(IS_REDIS):
        return RedisInbox(settings.broker, taker)
    return None


class RedisInbox:
    TAKERS = f"{QUEUE}.takers"  # when each was last heard of, by the clock of Redis
    ASIDE = f"{QUEUE}.refused"
    #: kombu keeps a list for each priority; what has none is in the first.
    SOURCES = (QUEUE, *(f"{QUEUE}\x06\x16{priority}" for priority in (3, 6, 9)))

    def __init__(self, url: str, taker: str) -> None:
        self._redis = Redis.from_url(url, socket_timeout=10, socket_connect_timeout=5)
        self._taker = taker
        self._mine = self._list_of(taker)
        self._signed_at = float("-inf")

    def take(self, seconds: float) -> Taken | None:
        self._give_sign()
        for source in self.SOURCES[1:]:
            if (raw := _got(self._redis.lmove(source, self._mine, "RIGHT", "LEFT"))) is not None:
                return Taken(raw)
        raw = _got(self._redis.blmove(QUEUE, self._mine, cast(int, seconds), "RIGHT", "LEFT"))
        return None if raw is None else Taken(raw)

    def done(self, taken: Taken) -> None:
        self._redis.lrem(self._mine, 1, cast(str, taken.raw))

    def set_aside(self, taken: Taken) -> None:
        with self._redis.pipeline(transaction=True) as steps:
            steps.lpush(self.ASIDE, taken.raw)
            steps.ltrim(self.ASIDE, 0, SET_ASIDE_AT_MOST - 1)
            steps.expire(self.ASIDE, SET_ASIDE_SECONDS)
            steps.lrem(self._mine, 1, cast(str, taken.raw))
            steps.execute()

    def put_back_lost(self) -> int:
        """Our own as well: what is there between two messages was left by an error."""
        silent = self._redis.zrangebyscore(self.TAKERS, "-inf", self._now() - SILENT_SECONDS)
        count = self._put_back(self._mine)
        for taker in cast(list[bytes], silent):
            count += self._put_back(self._list_of(taker.decode()))
            self._redis.zrem(self.TAKERS, taker)
        return count

    def close(self) -> None:
        try:
            self._put_back(self._mine)
            self._redis.zrem(self.TAKERS, self._taker)
        finally:
            self._redis.close()

    def _put_back(self, left: str) -> int:
        count = 0
        while self._redis.lmove(left, QUEUE, "LEFT", "RIGHT") is not None:
            count += 1
        return count

    def _give_sign(self) -> None:
        if time.monotonic() - self._signed_at >= 1:
            self._redis.zadd(self.TAKERS, {self._taker: self._now()})
            self._signed_at = time.monotonic()

    def _now(self) -> float:
        seconds, micros = self._redis.time()
        return seconds + micros / 1e6

    def _list_of(self, taker: str) -> str:
        return f"{QUEUE}.taken.{taker}"


def _got(answer: Awaitable[Any] | Any) -> bytes | None:
    return cast(bytes | None, answer)


class FolderInbox:
    """The embedded broker: a message is a file, and taking it is a rename."""

    #: The stock transport of kombu writes under the final name: what is no JSON yet may be so in a moment.
    UNFINISHED_SECONDS = 5.0
    POLL_SECONDS = 0.05

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def take(self, seconds: float) -> Taken | None:
        deadline = time.monotonic() + seconds
        while True:
            for name in sorted(name for name in os.listdir(self._folder) if _is_message(name)):
                if (taken := self._take(name)) is not None:
                    return taken
            if time.monotonic() >= deadline:
                return None
            time.sleep(self.POLL_SECONDS)

    def done(self, taken: Taken) -> None:
        (self._folder / taken.name).unlink(missing_ok=True)

    def set_aside(self, taken: Taken) -> None:
        (self._folder / taken.name).rename(self._folder / f"{taken.name}.refused")
        kept = sorted(self._folder.glob(".*.refused"))
        for old in kept[:-SET_ASIDE_AT_MOST]:
            old.unlink(missing_ok=True)

    def put_back_lost(self) -> int:
        count = 0
        for path in self._folder.glob(".*.taken"):
            if time.time() - path.stat().st_mtime > SILENT_SECONDS:
                path.rename(path.with_name(path.name.removeprefix(".").removesuffix(".taken")))
                count += 1
        return count

    def close(self) -> None:
        pass

    def _take(self, name: str) -> Taken | None:
        path = self._folder / name
        try:
            if not _looks_whole(path) and time.time() - path.stat().st_mtime < self.UNFINISHED_SECONDS:
                return None
            mine = self._folder / f".{name}.taken"
            path.rename(mine)
            os.utime(mine)
            return Taken(mine.read_bytes(), mine.name)
        except FileNotFoundError:
            return None


def _is_message(name: str) -> bool:
    return name.endswith(".msg") and not name.startswith(".")


def _looks_whole(path: Path) -> bool:
    return path.read_bytes().rstrip().endswith(b"}")
