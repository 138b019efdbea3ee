"""How often a key may ask: so many requests a minute, counted in Redis where several API processes share one."""

import time
from dataclasses import dataclass
from typing import Protocol

import structlog
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from ledger.settings import Settings

WINDOW_SECONDS = 60
REDIS_SECONDS = 0.25
AWAY_SECONDS = 5.0
log = structlog.get_logger()


@dataclass(frozen=True)
class Rate:
    """Where a key stands in the minute under way."""

    limit: int
    used: int
    reset_seconds: int

    @property
    def exceeded(self) -> bool:
        return self.used > self.limit

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        left = max(0, self.limit - self.used)
        named = (("limit", self.limit), ("remaining", left), ("reset", self.reset_seconds))
        return [(f"ratelimit-{name}".encode(), str(value).encode()) for name, value in named]


class Counter(Protocol):
    async def count(self, key_id: str, window: int) -> int:
        """One more in this window; how many that makes."""

    async def close(self) -> None: ...


class Here:
    """For the one API process of the embedded default."""

    def __init__(self) -> None:
        self._window = 0
        self._used: dict[str, int] = {}

    async def count(self, key_id: str, window: int) -> int:
        if window != self._window:
            self._window, self._used = window, {}
        self._used[key_id] = self._used.get(key_id, 0) + 1
        return self._used[key_id]

    async def close(self) -> None:
        pass


class Shared:
    """For all API processes together. With Redis away each counts for itself: a limit is no reason to be down."""

    def __init__(self, url: str) -> None:
        once = Retry(NoBackoff(), retries=0)
        self._redis = Redis.from_url(
            url, socket_timeout=REDIS_SECONDS, socket_connect_timeout=REDIS_SECONDS, retry=once
        )
        self._here = Here()
        self._away_until = 0.0

    async def count(self, key_id: str, window: int) -> int:
        here = await self._here.count(key_id, window)
        if time.monotonic() < self._away_until:
            return here
        try:
            return await self._count_in_redis(f"flashcards:rate:{key_id}:{window}")
        except (RedisError, OSError) as error:
            log.warning("rates.redis_away", error=str(error))
            self._away_until = time.monotonic() + AWAY_SECONDS
            return here

    async def close(self) -> None:
        await self._redis.aclose()

    async def _count_in_redis(self, name: str) -> int:
        async with self._redis.pipeline() as pipeline:
            pipeline.incr(name)
            pipeline.expire(name, 2 * WINDOW_SECONDS)
            used, _ = await pipeline.execute()
        return int(used)


class Rates:
    def __init__(self, settings: Settings) -> None:
        self._default = settings.requests_per_minute
        is_redis = settings.broker.startswith(("redis://", "rediss://", "unix://"))
        self._counter: Counter = Shared(settings.broker) if is_redis else Here()

    async def spend(self, key_id: str, own_limit: int | None) -> Rate:
        window, second = divmod(int(time.time()), WINDOW_SECONDS)
        used = await self._counter.count(key_id, window)
        return Rate(own_limit or self._default, used, WINDOW_SECONDS - second)

    async def close(self) -> None:
        await self._counter.close()
