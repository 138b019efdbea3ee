"""What a person would look at when something does not work, asked of the service itself."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
from pydantic_core import from_json

import flashcards
from flashcards.client.aio.http import Http
from flashcards.client.answers import refusal
from flashcards.findings import LOW_DISK_BYTES, Finding, good, unseen, wrong

JOBS = "/v1/jobs"
FIGURE = re.compile(r'^flashcards_(\w+?)(?:\{queue="(\w+)"\})? (\S+)$', re.MULTILINE)
#: What to do about a part that /readyz misses.
ADVICE = {
    "database": "see that the database is up and FLASHCARDS_DATABASE_URL is right; the log of the API says what it met",
    "broker": "see that the broker is up and FLASHCARDS_BROKER_URL is right; jobs are kept, and wait for it",
    "store": "see that the folder or bucket of FLASHCARDS_STORE_URL is there and may be read and written",
    "worker": "start one with `flashcards worker`; under `flashcards serve`, its log says why the worker ended",
}

Figures = dict[tuple[str, str], float]


async def examine(http: Http) -> list[Finding]:
    """The first finding is about the service as a whole: where it is wrong, nothing else could be asked."""
    try:
        document = _document(await http.probe("/openapi.json"))
        if document is None:
            return [_somebody_else(http.url)]
        return [_version(http.url, document), *await _parts_of(http, document)]
    except httpx.TransportError as error:
        return [_no_answer(http.url, error)]


async def _parts_of(http: Http, document: dict[str, Any]) -> list[Finding]:
    key = await _key(http, _wants_key(document))
    return [key, *_readiness(await http.probe("/readyz")), *_figures(await http.probe("/metrics"))]


def _document(answer: httpx.Response) -> dict[str, Any] | None:
    """None where it is not ours."""
    try:
        found = from_json(answer.content)
        return found if found["info"]["title"] == "Flashcards" else None
    except (ValueError, TypeError, KeyError):
        return None


def _wants_key(document: dict[str, Any]) -> bool:
    return "security" in document.get("paths", {}).get(JOBS, {}).get("get", {})


def _no_answer(url: str, error: httpx.TransportError) -> Finding:
    reason = str(error) or type(error).__name__
    return wrong(
        "service",
        f"no answer from {url} ({reason})",
        "`flashcards serve` starts it; FLASHCARDS_URL or --url names another address",
    )


def _somebody_else(url: str) -> Finding:
    return wrong(
        "service",
        f"somebody answers at {url}, but it is no Flashcards service",
        "FLASHCARDS_URL or --url names the right address; `flashcards serve --port` starts ours on another port",
    )


def _version(url: str, document: dict[str, Any]) -> Finding:
    theirs, ours = str(document["info"].get("version")), flashcards.__version__
    other = "" if theirs == ours else f"; this command is {ours}"
    return good("service", f"version {theirs} at {url}{other}")


async def _key(http: Http, wanted: bool) -> Finding:
    answer = await http.probe(f"{JOBS}?limit=1")
    if answer.is_success:
        return good("key", "it is good" if wanted else "none is needed")
    refused = refusal(answer)
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        return wrong(
            "key",
            refused.problem.detail,
            "put a key of this service into FLASHCARDS_KEY; its operator makes one with `flashcards keys create NAME`",
        )
    if answer.status_code == httpx.codes.FORBIDDEN and wanted:
        return wrong("key", refused.problem.detail, "ask the operator for a key with the scopes read and write")
    return wrong("requests", str(refused), "the log of the API says more")


def _readiness(answer: httpx.Response) -> Iterator[Finding]:
    try:
        checks = {str(part): bool(holds) for part, holds in from_json(answer.content)["checks"].items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        yield wrong("readiness", f"/readyz answers with status {answer.status_code}", "the log of the API says more")
        return
    for part, holds in checks.items():
        there, missing = ("alive", "none is alive") if part == "worker" else ("it answers", "it does not answer")
        yield good(part, there) if holds else wrong(part, missing, ADVICE.get(part, "the log of the API says more"))


def _figures(answer: httpx.Response) -> Iterator[Finding]:
    if not answer.is_success:
        yield unseen("queues, disk", "only the operator's key is told of them")
        return
    figures = {(name, queue): float(value) for name, queue, value in FIGURE.findall(answer.text)}
    yield from _queues(figures)
    yield _device(figures)
    yield _disk(figures.get(("disk_free_bytes", "")))


def _queues(figures: Figures) -> Iterator[Finding]:
    """Those that are served, and those in which something waits: nobody needs a worker on every queue."""
    serving = {queue: count for (name, queue), count in figures.items() if name == "workers" and count}
    waiting = {queue: age for (name, queue), age in figures.items() if name == "oldest_queued_seconds" and age}
    for queue in sorted(serving.keys() | waiting.keys()):
        yield _queue(queue, round(serving.get(queue, 0)), waiting.get(queue))


def _device(figures: Figures) -> Finding:
    """Where jobs are worked on. No GPU is needed, and one that is there is used by the workers of its queue."""
    found = round(figures.get(("workers", "gpu"), 0))
    words = (
        f"{found} worker{'' if found == 1 else 's'} with a GPU" if found else "jobs run on CPUs: no GPU worker is there"
    )
    return good("device", words)


def _queue(queue: str, workers: int, oldest: float | None) -> Finding:
    words = "nothing waits" if oldest is None else f"the oldest job has waited for {max(0.0, oldest):,.0f} s"
    if workers == 0:
        return wrong(
            f"queue {queue}",
            f"no worker serves it; {words}",
            f"start one with `flashcards worker --queue {queue}`, or cancel its jobs",
        )
    return good(f"queue {queue}", f"{workers} worker{'' if workers == 1 else 's'} on {queue}; {words}")


def _disk(free: float | None) -> Finding:
    if free is None:
        return unseen("disk", "this service does not tell")
    found = f"{free / 1024**3:,.1f} GiB free where the service keeps its files"
    if free < LOW_DISK_BYTES:
        return wrong(
            "disk",
            found,
            "make room: `flashcards storage` lists what is kept, `rm` of jobs, datasets and cards lets go of it",
        )
    return good("disk", found)
