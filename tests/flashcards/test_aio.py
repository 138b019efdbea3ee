"""The client of those who await: the same words, and many at once."""

import asyncio

import numpy as np
import pytest

from flashcards import AsyncClient
from flashcards.errors import ConnectionFailed, NotFound


def with_client(url, use):
    async def run():
        async with AsyncClient(url) as client:
            return await use(client)

    return asyncio.run(run())


def test_from_a_model_to_cards(service, trained, capsys):
    async def use(client):
        job = await client.capture(trained.result.model, count=70, r=3)
        ended = await job.wait(progress=True)
        return await ended.cards(), await client.jobs.report(ended.id)

    cards, report = with_client(service.url, use)
    assert cards.shape == (70, 8, 8, 1)
    assert report.job.state == "succeeded"
    assert capsys.readouterr().err.endswith("succeeded\n")


def test_many_wait_at_once_on_one_thread(service, captured):
    async def use(client):
        jobs = await asyncio.gather(*(client.submit({"kind": "noop"}) for _ in range(12)))
        return await asyncio.gather(*(job.wait(timeout=60) for job in jobs))

    assert {job.state for job in with_client(service.url, use)} == {"succeeded"}


def test_pages_are_walked_through(service, captured):
    async def use(client):
        return [job.id async for job in client.jobs.each(kind="capture")]

    found = with_client(service.url, use)
    assert captured.id in found
    assert len(found) == len(set(found))


def test_events_go_on_after_a_cut(relay, client, captured):
    """The road is cut in the middle of the first answers: nothing is lost, and nothing comes twice."""
    relay.cuts = [("down", 900), ("down", 700)]

    async def use(broken):
        return [event.seq async for event in broken.jobs.events(captured.id)]

    wanted = [event.seq for event in client.jobs.events(captured.id)]
    assert with_client(relay.url, use) == wanted == list(range(1, len(wanted) + 1))
    assert relay.connections >= 3


def test_a_request_whose_answer_is_lost_is_done_once(relay, client):
    relay.cuts = [("down", 40)]

    async def use(broken):
        return await broken.learners.create(name="asked once", architecture="blk_1_fil_4")

    with_client(relay.url, use)
    assert [each.name for each in client.learners.each()].count("asked once") == 1


def test_files_go_up_and_come_back(service, digits, tmp_path):
    np.savez(tmp_path / "images.npz", x=digits["x_test"])
    told = []

    async def use(client):
        dataset = await client.datasets.push(tmp_path / "images.npz", progress=lambda *sent: told.append(sent))
        return await client.datasets.download(dataset.id, tmp_path)

    assert with_client(service.url, use).read_bytes() == (tmp_path / "images.npz").read_bytes()
    assert told[-1] == ((tmp_path / "images.npz").stat().st_size,) * 2


@pytest.mark.slow  # it asks again for some seconds before it gives up
def test_nobody_there_is_said(service):
    with pytest.raises(ConnectionFailed, match="flashcards serve"):
        with_client("http://127.0.0.1:9", lambda client: client.jobs.list())


def test_what_is_not_there_is_said(service):
    with pytest.raises(NotFound, match="no such thing"):
        with_client(service.url, lambda client: client.jobs.get("job_" + "0" * 32))
