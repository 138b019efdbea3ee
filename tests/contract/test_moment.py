from datetime import UTC, datetime, timedelta, timezone

from pydantic import TypeAdapter

from flashcards.contract.base import Moment

MOMENT = TypeAdapter(Moment)


def written(at: datetime) -> str:
    return MOMENT.dump_json(at).decode().strip('"')


def test_a_whole_second_sorts_among_its_fractions():
    whole = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    moments = [whole - timedelta(milliseconds=1), whole, whole + timedelta(milliseconds=250)]
    assert sorted(map(written, moments)) == [
        "2026-03-01T09:29:59.999Z",
        "2026-03-01T09:30:00.000Z",
        "2026-03-01T09:30:00.250Z",
    ]


def test_it_is_told_in_utc_and_read_back_the_same():
    at = datetime(2026, 3, 1, 9, 30, 0, 250_000, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    assert written(at) == "2026-03-01T04:00:00.250Z"
    assert MOMENT.validate_json(MOMENT.dump_json(at)) == at


def test_the_schema_says_what_it_is():
    assert MOMENT.json_schema(mode="serialization")["format"] == "date-time"
