"""Large files, cut down to what a test can send: every file is large here."""

import asyncio
import hashlib
import json
from collections.abc import Callable

import pytest
from making import npz, weights
from pieces import PART_BYTES
from typer.testing import CliRunner

from flashcards import AsyncClient, Client
from flashcards.cli import app
from flashcards.errors import FlashcardsError, Invalid

NET = {"name": "net", "architecture": "blk_2_fil_4", "input": "16x16x1"}


class Progress:
    """What was said on the way, and what somebody does when a part has been sent."""

    def __init__(self, then: Callable[[int], None] = lambda _: None) -> None:
        self.sent: list[int] = []
        self._then = then

    def __call__(self, sent: int, size: int) -> None:
        self.sent.append(sent)
        self._then(len(self.sent))


@pytest.fixture
def net(tmp_path, request):
    """Of every test another one: an upload that was left is not found by the next."""
    path = tmp_path / "net.safetensors"
    path.write_bytes(weights(metadata={"of": request.node.name}))
    return path


@pytest.fixture
def far(service):
    with Client(service.url, parts_above=0) as client:
        yield client


def left(client, net) -> list[str]:
    """Of this file, and not yet anything."""
    digest = hashlib.sha256(net.read_bytes()).hexdigest()
    return [upload.id for upload in client.uploads.each() if upload.became is None and upload.digest == digest]


def test_a_model_in_parts_is_the_model(client, far, net, tmp_path):
    progress = Progress()
    model = far.models.push(net, **NET, progress=progress)
    size = net.stat().st_size
    assert progress.sent == [*range(0, size, PART_BYTES), size]
    assert client.models.weights(model.id, tmp_path / "back").read_bytes() == net.read_bytes()
    upload = next(client.uploads.each())
    assert (upload.became, upload.missing, upload.digest) == (f"/v1/models/{model.id}", [], model.digest)


def test_datasets_and_bundles_too(client, far, digits, net, tmp_path):
    assert far.datasets.push(digits, name="digits").splits["test"].count == 200
    (tmp_path / "digits.npz").write_bytes(npz(**digits))
    prepared = far.datasets.push(tmp_path / "digits.npz", input=(16, 16, 3), invert=True)
    assert str(prepared.splits["train"].shape) == "16x16x3"
    model = far.models.push(net, **NET)
    bundle = client.models.bundle(model.id, tmp_path)
    assert far.models.import_bundle(bundle, name="again").model.digest == model.digest


def test_small_ones_go_in_one(client, net):
    before = [upload.id for upload in client.uploads.each()]
    client.models.push(net, **NET)
    assert [upload.id for upload in client.uploads.each()] == before


def test_pushed_again_it_goes_on_where_it_was(far, net):
    def stop(parts: int) -> None:
        if parts == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        far.models.push(net, **NET, progress=Progress(stop))
    (upload,) = left(far, net)
    assert far.uploads.get(upload).missing[0] == 4
    progress = Progress()
    model = far.models.push(net, **NET, progress=progress)
    assert progress.sent[0] == 3 * PART_BYTES
    assert far.uploads.get(upload).became == f"/v1/models/{model.id}"


def test_a_line_that_breaks_costs_one_part(relay, net, client, tmp_path):
    relay.cuts = [("up", 3500), ("up", 2500), ("down", 1500), ("down", 0)]
    progress = Progress()
    with Client(relay.url, parts_above=0) as shaky:
        model = shaky.models.push(net, **NET, progress=progress)
    assert relay.connections >= 5
    assert progress.sent == sorted(set(progress.sent)), "no part is told of twice"
    assert client.models.weights(model.id, tmp_path / "back").read_bytes() == net.read_bytes()
    assert left(client, net) == []


def test_one_that_is_taken_away_under_way_is_begun_again(far, net):
    def take_away(parts: int) -> None:
        if parts == 3:
            far.uploads.delete(left(far, net)[0])

    progress = Progress(take_away)
    far.models.push(net, **NET, progress=progress)
    assert progress.sent[2:4] == [2 * PART_BYTES, 0]


def test_one_that_somebody_else_brought_to_its_end_is_begun_again(client, far, net):
    """Two push the same file at once under two names: both get what they asked for."""

    def be_faster(parts: int) -> None:
        if parts == 3:
            assert far.models.push(net, **NET | {"name": "the faster one"}).name == "the faster one"

    assert far.models.push(net, **NET, progress=Progress(be_faster)).name == "net"


def test_what_is_refused_is_refused_once(far, net):
    progress = Progress()
    with pytest.raises(Invalid, match="blk_3_fil_4"):
        far.models.push(net, **NET | {"architecture": "blk_3_fil_4"}, progress=progress)
    assert progress.sent.count(0) == 1
    again = Progress()
    far.models.push(net, **NET, progress=again)
    assert again.sent == [net.stat().st_size], "a wrong word costs no second upload"


def test_a_file_that_changes_while_it_is_sent(far, net):
    before = net.read_bytes()

    def change(parts: int) -> None:
        if parts == 2:
            net.write_bytes(before[:-1] + b"!")

    with pytest.raises(Invalid) as raised:
        far.models.push(net, **NET, progress=Progress(change))
    assert raised.value.type == "/problems/digest-mismatch"
    net.write_bytes(before)
    far.uploads.delete(left(far, net)[0])


def test_a_file_that_is_cut_while_it_is_sent(far, net):
    before = net.read_bytes()

    def cut(parts: int) -> None:
        if parts == 2:
            net.write_bytes(net.read_bytes()[:100])

    with pytest.raises(FlashcardsError, match="became shorter"):
        far.models.push(net, **NET, progress=Progress(cut))
    net.write_bytes(before)
    far.uploads.delete(left(far, net)[0])


def test_where_the_store_gives_no_links_the_service_takes_the_parts(service, net):
    with Client(service.url, parts_above=0, direct_uploads=True) as direct:
        assert direct.models.push(net, **NET).size == net.stat().st_size


def test_the_client_that_awaits(service, net):
    async def push() -> int:
        async with AsyncClient(service.url, parts_above=0) as client:
            return (await client.models.push(net, **NET)).size

    assert asyncio.run(push()) == net.stat().st_size


def test_there_is_an_end_to_beginning_again(far, net, monkeypatch):
    tries = []
    push = far._http.post

    def post(kind, path, body=None, params=None, **more):
        if path == "/v1/models":
            tries.append(path)
            far.uploads.delete(params["upload"])
        return push(kind, path, body, params, **more)

    monkeypatch.setattr(far._http, "post", post)
    with pytest.raises(FlashcardsError, match="there is no upload"):
        far.models.push(net, **NET)
    assert len(tries) == 3


def test_the_command_lists_and_drops_them(service, far, net):
    def run(*words: str) -> str:
        done = CliRunner().invoke(app, ["uploads", *words], env={"FLASHCARDS_URL": service.url})
        assert done.exit_code == 0, done.output
        return done.output

    def stop(parts: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        far.models.push(net, **NET, progress=Progress(stop))
    (upload,) = left(far, net)
    assert f"0 of {-(-net.stat().st_size // PART_BYTES)} parts" in run("ls")
    assert upload in [item["id"] for item in json.loads(run("ls", "--json"))]
    assert run("rm", upload) == f"deleted {upload}\n"
    assert left(far, net) == []
