import asyncio

import pytest
from servers import redis_server

from ledger.settings import Settings
from service.rates import Rate, Rates


@pytest.fixture(scope="module")
def broker_url(tmp_path_factory):
    with redis_server(tmp_path_factory.mktemp("rates")) as url:
        yield url


def spend(rates: Rates, times: int, key_id: str = "key_a", limit: int | None = None) -> list[Rate]:
    async def spend_all() -> list[Rate]:
        seen = [await rates.spend(key_id, limit) for _ in range(times)]
        await rates.close()
        return seen

    return asyncio.run(spend_all())


@pytest.fixture
def frozen(monkeypatch):
    monkeypatch.setattr("service.rates.time.time", lambda: 1_000_000_030.0)


def test_a_key_counts_for_itself(frozen, tmp_path):
    rates = Rates(Settings(home=tmp_path, requests_per_minute=3))
    seen = spend(rates, 5)
    assert [rate.exceeded for rate in seen] == [False, False, False, True, True]
    assert [rate.limit for rate in spend(rates, 1, "key_b", limit=7)] == [7]
    assert dict(seen[0].headers) == {
        b"ratelimit-limit": b"3",
        b"ratelimit-remaining": b"2",
        b"ratelimit-reset": str(seen[0].reset_seconds).encode(),
    }


def test_the_next_minute_starts_anew(monkeypatch, tmp_path):
    rates = Rates(Settings(home=tmp_path, requests_per_minute=1))
    monkeypatch.setattr("service.rates.time.time", lambda: 60.0)
    assert [rate.exceeded for rate in spend(rates, 2)] == [False, True]
    monkeypatch.setattr("service.rates.time.time", lambda: 120.0)
    assert not spend(rates, 1)[0].exceeded


def test_api_processes_count_together_in_redis(frozen, tmp_path, broker_url):
    settings = Settings(home=tmp_path, broker_url=broker_url, requests_per_minute=4)
    first, second = Rates(settings), Rates(settings)

    async def in_turns() -> list[int]:
        used = [(await rates.spend("key_shared", None)).used for rates in (first, second, first, second)]
        await first.close()
        await second.close()
        return used

    assert asyncio.run(in_turns()) == [1, 2, 3, 4]


def test_with_redis_away_each_counts_for_itself(frozen, tmp_path):
    rates = Rates(Settings(home=tmp_path, broker_url="redis://127.0.0.1:1/0", requests_per_minute=2))
    assert [rate.exceeded for rate in spend(rates, 3)] == [False, False, True]
