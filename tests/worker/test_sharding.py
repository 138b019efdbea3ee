"""What a capture is brought: how far it may be split, or the parts of it in the order of their cards."""

from pathlib import Path

import pytest

from flashcards.contract.recipe import Recipe
from flashcards.contract.shards import CardSteps, Shard, ShardResult, Split
from flashcards.contract.specs import CaptureSpec, job_spec
from ledger import artifacts, blobs, jobs, lifecycle, outcomes, parents, shards
from ledger.admission import Admitted
from ledger.artifacts import Product
from ledger.db import Database
from ledger.migrate import migrate
from ledger.settings import Settings
from ledger.store import hash_file
from ledger.tables import DEFAULT_TENANT
from worker import sharding
from worker.errors import CannotBegin
from worker.station import Station

RECIPE = Recipe(
    model_digest="m",
    source="maze",
    seed=0,
    r=1,
    count=200,
    input="8x8x1",
    range=(0, 1),
    dtype="float32",
    backend="torch",
    threads=7,
    chunk=64,
)
SPLIT = Split(recipe=RECIPE, shards=[Shard(first=0, count=128), Shard(first=128, count=72)])
STEPS = CardSteps(gamma1=[0.1], gamma2=[0.2], sums=[[1.0]])


@pytest.fixture
def station(tmp_path):
    settings = Settings(home=tmp_path / "home")
    settings.home.mkdir()
    migrate(Database(settings.database))
    opened = Station(settings)
    yield opened
    opened.close()


@pytest.fixture
def claim(station):
    def claim(job_id=None):
        return lifecycle.claim(station.db, "cpu", station.worker_id, 60, job_id)

    return claim


@pytest.fixture
def capture(station, claim):
    """The claim of a worker that is about to begin."""

    def capture(**changes):
        spec = job_spec.validate_python({"kind": "capture", "model": "model_" + "0" * 32, "count": 200, **changes})
        with station.db.write() as session:
            job_id = jobs.create(session, DEFAULT_TENANT, spec, Admitted("cpu", [])).id
        return claim(job_id)

    return capture


@pytest.fixture
def split(station, capture):
    """The same once it has been split."""
    held = capture()
    with station.db.write() as session:
        assert shards.split(session, held, SPLIT)
    return held


def stage(station, held, folder) -> dict:
    return sharding.stage(station, held, CaptureSpec.model_validate(held.spec), folder)


def finish(station, held, folder: Path) -> None:
    """As a supervisor does: with a file of what this shard has made."""
    path = folder / f"made-{held.job_id}"
    path.write_text(f"cards from {held.spec['first']} on")
    kept = hash_file(path)
    blobs.put(station.db, station.store, DEFAULT_TENANT, kept, path)
    result = ShardResult(
        first=held.spec["first"], cards=held.spec["count"], steps=STEPS, seconds=1.0, processor="a core"
    )
    product = Product("cards.npy", "application/octet-stream", kept)
    with station.db.write() as session:
        assert outcomes.succeed(session, held, result.model_dump(mode="json"), [product])


def test_one_that_has_not_begun_may_be_split_as_far_as_asked(station, capture, tmp_path):
    assert stage(station, capture(shards=5), tmp_path) == {"shards": 5}
    assert stage(station, capture(), tmp_path) == {"shards": 1}  # this is the only worker


def test_parts_come_in_the_order_of_their_cards(station, claim, split, tmp_path):
    one, other = claim(), claim()
    finish(station, other, tmp_path)
    finish(station, one, tmp_path)
    staged = stage(station, claim(split.job_id), tmp_path)
    assert (staged["threads"], staged["parts"].recipe) == (7, RECIPE)
    assert [Path(path).read_text() for path in staged["parts"].paths] == ["cards from 0 on", "cards from 128 on"]
    assert [result.first for result in staged["parts"].results] == [0, 128]
    assert staged["parts"].seconds > 0


def test_the_reason_of_the_shard_that_failed_is_that_of_the_capture(station, claim, split, tmp_path):
    one, other = claim(), claim()
    with station.db.write() as session:
        lifecycle.settle(session, other, "failed", error={"type": "diverged", "title": "Away", "detail": "Take less."})
    with station.db.write() as session:
        lifecycle.settle(session, one, "cancelled")
    with pytest.raises(CannotBegin) as caught:
        stage(station, claim(split.job_id), tmp_path)
    assert (caught.value.type, caught.value.title) == ("diverged", "Away")
    assert caught.value.detail == f"Take less. ({other.job_id}, the shard of cards 128 to 199)"


def test_parts_that_are_gone_are_missed(station, claim, split, tmp_path):
    for held in (claim(), claim()):
        finish(station, held, tmp_path)
    with station.db.write() as session:
        for child in parents.children(session, split.job_id):
            artifacts.forget_products(session, child.id)
    with pytest.raises(FileNotFoundError):
        stage(station, claim(split.job_id), tmp_path)
