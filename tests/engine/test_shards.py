"""Cards that several workers made are the cards of one, to the byte, and so is what is said of them."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine import device, splitting
from engine.errors import CardsUnfit, Diverged, OtherMake, Stopped
from engine.files import digest_of
from engine.passes import choose, onnx_passes
from engine.run import run
from engine.splitting import cut
from engine.standing import Steps
from engine.work import PartsInput, Work
from flashcards.contract.shards import Split
from flashcards.contract.specs import ShardSpec

TIMES = {"seconds", "cards_per_second", "shards"}


@pytest.fixture
def sharded(folder, new_report, never):
    """A capture that was split, every shard made on its own, the last one first."""

    def shard_work(work: Work, split: Split, number: int) -> Work:
        shard = split.shards[number]
        spec = ShardSpec(kind="shard", model=work.spec.model, recipe=split.recipe, first=shard.first, count=shard.count)
        return replace(work, spec=spec, out=folder(), shards=1)

    def make(work: Work) -> tuple[Work, PartsInput]:
        split = run(work, new_report(), never).result
        assert isinstance(split, Split)
        works = [shard_work(work, split, number) for number in range(len(split.shards))]
        made = [run(each, new_report(), never) for each in reversed(works)][::-1]
        assert all([product.name for product in outcome.products] == ["cards.npy"] for outcome in made)
        paths = [each.out / "cards.npy" for each in works]
        parts = PartsInput(recipe=split.recipe, paths=paths, results=[outcome.result for outcome in made], seconds=2.0)
        return replace(work, out=folder(), parts=parts), parts

    make.shard_work = shard_work
    return make


def splitting_in(ways: int, work: Work) -> Work:
    return replace(work, shards=ways)


@pytest.mark.parametrize("count", [65, 128, 200, 257])
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_the_set_and_what_is_said_of_it_are_those_of_one_piece(
    capture_work, with_capsule, sharded, new_report, never, count, dtype
):
    asked = {"model": with_capsule, "count": count, "r": 4, "dtype": dtype}
    whole = capture_work(**asked)
    alone = run(whole, new_report(), never)
    joining, _ = sharded(splitting_in(3, capture_work(**asked, shards=3)))
    joined = run(joining, new_report(), never)
    assert digest_of(joining.out / "cards.npy") == digest_of(whole.out / "cards.npy") == joined.result.cards_digest
    for name in ("sheet.png", "source.png"):
        assert (joining.out / name).read_bytes() == (whole.out / name).read_bytes()
    assert joined.result.model_dump(exclude=TIMES) == alone.result.model_dump(exclude=TIMES)
    assert joined.products == alone.products
    assert joined.result.shards == min(3, -(-count // 64))
    assert joined.result.cards_per_second == count / 2.0


@pytest.mark.parametrize("source", ["auto", "capsule", "latent", "geometric"])
def test_what_is_left_open_is_decided_once(capture_work, with_capsule, sharded, new_report, never, source):
    asked = {"model": with_capsule, "count": 150, "r": "auto", "source": source}
    whole = capture_work(**asked)
    alone = run(whole, new_report(), never).result
    joining, parts = sharded(splitting_in(2, capture_work(**asked, shards=2)))
    joined = run(joining, new_report(), never).result
    assert parts.recipe == joined.recipe == alone.recipe
    assert joined.cards_digest == alone.cards_digest


def test_the_backend_is_the_one_of_the_first_step(capture_work, sharded, new_report, never, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(choose, "START_SECONDS", 0.0)
        patch.setattr(choose, "fastest", lambda by_torch, by_onnx, _: by_onnx)
        whole = capture_work(count=130)
        alone = run(whole, new_report(), never).result
        split = run(splitting_in(2, capture_work(count=130, shards=2)), new_report(), never).result
    assert split.recipe == alone.recipe
    assert split.recipe.backend == onnx_passes.name()
    work = sharded.shard_work(whole, split, 1)
    run(work, new_report(), never)
    assert np.array_equal(np.load(work.out / "cards.npy"), np.load(whole.out / "cards.npy")[64:])


def test_shards_begin_with_a_chunk_and_are_even():
    shards = cut(1000, 64, 3)
    assert [(shard.first, shard.count) for shard in shards] == [(0, 320), (320, 320), (640, 360)]
    assert [shard.count for shard in cut(65, 64, 9)] == [64, 1]
    assert [shard.count for shard in cut(5, 64, 2)] == [5]


@given(st.integers(1, 10**6), st.sampled_from([1, 8, 64]), st.integers(1, 64))
def test_every_card_is_in_one_shard(count, chunk, ways):
    shards = cut(count, chunk, ways)
    assert [shard.first for shard in shards] == [0, *np.cumsum([shard.count for shard in shards])[:-1]]
    assert sum(shard.count for shard in shards) == count
    assert all(shard.first % chunk == 0 for shard in shards)
    assert len(shards) == min(ways, -(-count // chunk))


class TestAuto:
    def test_a_small_capture_stays_in_one_piece(self, capture_work, report, never):
        work = splitting_in(4, capture_work(count=64 * splitting.LEAST_CHUNKS - 64, r=1))
        assert run(work, report, never).result.shards == 1

    def test_so_does_one_that_is_done_soon(self, capture_work, report, never):
        work = splitting_in(4, capture_work(count=64 * splitting.LEAST_CHUNKS, r=1))
        assert run(work, report, never).result.shards == 1

    def test_a_long_one_is_split_as_far_as_each_has_enough_to_do(self, capture_work, report, never, monkeypatch):
        work = splitting_in(4, capture_work(count=64 * splitting.LEAST_CHUNKS, r=1))
        monkeypatch.setattr(splitting, "LEAST_SECONDS", 1e-6)
        assert len(run(work, report, never).result.shards) == 4

    def test_one_that_has_begun_goes_on(self, capture_work, new_report, never):
        first, recorder, asked = capture_work(count=200), new_report(), iter(range(10**6))
        with pytest.raises(Stopped):
            run(replace(first, resume_seconds=0), recorder, lambda: next(asked) >= 7)
        again = replace(capture_work(count=200, shards=2), resume=recorder.points[-1], shards=2)
        assert run(again, new_report(), never).result.shards == 1


def test_a_stopped_shard_goes_on_where_it_was(capture_work, sharded, new_report, never):
    work = splitting_in(2, capture_work(count=400, shards=2))
    split = run(work, new_report(), never).result
    whole = sharded.shard_work(work, split, 1)
    run(whole, new_report(), never)
    recorder, asked = new_report(), iter(range(10**6))
    stopped = replace(sharded.shard_work(work, split, 1), resume_seconds=0)
    with pytest.raises(Stopped, match="128 of 208"):
        run(stopped, recorder, lambda: next(asked) >= 7)
    again = replace(sharded.shard_work(work, split, 1), resume=recorder.points[-1])
    report = new_report()
    run(again, report, never)
    assert report.told[0].step == 192
    assert digest_of(again.out / "cards.npy") == digest_of(whole.out / "cards.npy")


@pytest.mark.parametrize(
    "changed", [{"backend": "torch-1.0-cpu"}, {"source_version": 99}, {"chunk": 32}, {"capsule_digest": "other"}]
)
def test_cards_that_would_not_go_with_the_others_are_not_made(capture_work, sharded, new_report, never, changed):
    work = splitting_in(2, capture_work(count=130, shards=2))
    split = run(work, new_report(), never).result
    other = split.model_copy(update={"recipe": split.recipe.model_copy(update=changed)})
    with pytest.raises(OtherMake, match=r"begins .* anew"):
        run(sharded.shard_work(work, other, 0), new_report(), never)


def test_processors_of_two_types_are_told(capture_work, sharded, report, never, monkeypatch):
    joining, parts = sharded(splitting_in(2, capture_work(count=130, shards=2)))
    one = parts.results[0].model_copy(update={"processor": "an older one"})
    run(replace(joining, parts=replace(parts, results=[one, *parts.results[1:]])), report, never)
    assert f"made on {device.processor(torch.device('cpu'))} and on an older one" in report.notes[0]


def test_parts_that_do_not_belong_together_make_no_set(capture_work, sharded, new_report, never):
    joining, parts = sharded(splitting_in(2, capture_work(count=130, shards=2)))
    shutil.copy(parts.paths[0], parts.paths[1])
    with pytest.raises(CardsUnfit, match="hold 128 cards, and 130"):
        run(joining, new_report(), never)
    joining, parts = sharded(splitting_in(2, capture_work(count=130, shards=2)))
    np.save(parts.paths[1], np.zeros((66, 4, 4, 1), np.float32))
    with pytest.raises(CardsUnfit, match="no part of this set"):
        run(joining, new_report(), never)


def test_joined_parts_leave_the_disk(capture_work, sharded, report, never):
    joining, parts = sharded(splitting_in(2, capture_work(count=130, shards=2)))
    run(joining, report, never)
    assert not any(path.exists() for path in parts.paths)


def test_joining_heeds_a_stop(capture_work, sharded, report):
    joining, _ = sharded(splitting_in(2, capture_work(count=130, shards=2)))
    with pytest.raises(Stopped):
        run(joining, report, lambda: True)


def test_a_shard_that_diverges_says_which_card(capture_work, new_model, sharded, new_report, never):
    def spoil(network):
        network.encoder.stem.bias.fill_(float("nan"))

    work = splitting_in(2, capture_work(model=new_model(spoil=spoil), count=130, shards=2))
    split = run(work, new_report(), never).result
    with pytest.raises(Diverged, match="card 64"):
        run(sharded.shard_work(work, split, 1), new_report(), never)


@given(st.lists(st.floats(0, 1e6, width=32), min_size=2, max_size=40), st.integers(1, 39), st.randoms())
def test_a_mean_does_not_depend_on_who_added_what(values, cut_at, chance):
    def added(some):
        steps = Steps.begin(1)
        for value in some:
            steps.add(np.array([[value]], np.float32))
        return steps

    mixed = chance.sample(values, len(values))
    one, other = added(mixed[:cut_at]), added(mixed[cut_at:])
    one.join(other.gamma1, other.gamma2, other.sums)
    whole = added(values)
    assert one.mean(len(values)) == whole.mean(len(values))
    assert (one.gamma1, one.gamma2) == (whole.gamma1, whole.gamma2)
