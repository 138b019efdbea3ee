import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from engine.errors import Diverged, Stopped
from engine.making import Clock
from engine.passes import choose, onnx_passes
from engine.run import run
from engine.sources.maze import mazes
from engine.standing import is_worth_it
from engine.weights import load_network
from flashcards.contract.image import ImageShape


def cards_of(work) -> np.ndarray:
    return np.load(work.out / "cards.npy", allow_pickle=False)


def test_a_card_is_a_maze_passed_r_times_through_the_network(capture_work, report, never):
    work = capture_work(count=3, r=4, seed=5)
    result = run(work, report, never).result
    x = torch.from_numpy(mazes(5, 0, 64, ImageShape(8, 8, 1), (0.0, 1.0))).permute(0, 3, 1, 2)
    network = load_network(work.model, torch.device("cpu"))
    gamma1, gamma2, mean = [], [], []
    with torch.inference_mode():
        for _ in range(4):
            y = network(x)
            step = (y - x).abs().mean((1, 2, 3))[:3]
            gamma1.append(step.min().item())
            gamma2.append(step.max().item())
            mean.append(step.mean().item())
            x = y
    assert np.array_equal(cards_of(work), x[:3].clamp(0, 1).permute(0, 2, 3, 1).numpy())
    assert result.gamma1 == pytest.approx(gamma1)
    assert result.gamma2 == pytest.approx(gamma2)
    assert result.mean_step == pytest.approx(mean)


def test_the_same_recipe_gives_the_same_file(capture_work, new_report, never):
    one, other = capture_work(), capture_work()
    run(one, new_report(), never)
    run(other, new_report(), never)
    digests = {hashlib.sha256((work.out / "cards.npy").read_bytes()).hexdigest() for work in (one, other)}
    assert len(digests) == 1


def test_a_card_is_the_same_in_a_set_of_any_size(capture_work, new_report, never):
    made = {}
    for count in (1, 63, 64, 65, 150):
        work = capture_work(count=count)
        run(work, new_report(), never)
        made[count] = cards_of(work)
        assert made[count].shape == (count, 8, 8, 1)
    assert all(np.array_equal(cards, made[150][:count]) for count, cards in made.items())


def test_the_recipe_tells_all(capture_work, report, never):
    outcome = run(capture_work(seed=9, dtype="uint8"), report, never)
    recipe = outcome.result.recipe
    assert (recipe.source, recipe.seed, recipe.r, recipe.count, recipe.dtype) == ("maze", 9, 3, 70, "uint8")
    assert (recipe.model_digest, recipe.chunk, recipe.threads, recipe.source_version) == ("m", 64, 1, 1)
    assert recipe.backend == f"torch-{torch.__version__}-cpu"
    assert [product.name for product in outcome.products] == ["cards.npy", "sheet.png", "source.png"]


def test_cards_are_made_again_by_the_backend_that_their_recipe_names(capture_work, new_report, never, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(choose, "START_SECONDS", 0.0)
        patch.setattr(choose, "fastest", lambda by_torch, by_onnx, _: by_onnx)
        first = capture_work()
        recipe = run(first, new_report(), never).result.recipe
    assert recipe.backend == onnx_passes.name()
    again, report = capture_work(backend=recipe.backend), new_report()
    assert run(again, report, never).result.recipe == recipe
    assert report.notes == []
    assert np.array_equal(cards_of(again), cards_of(first))


@pytest.mark.parametrize("named", ["torch-1.0-cpu", "onnxruntime-0.1-cpu", "torch-2.13.0+cu130-cuda"])
def test_a_backend_that_is_not_here_is_told(capture_work, report, never, named):
    backend = run(capture_work(backend=named), report, never).result.recipe.backend
    assert backend in (f"torch-{torch.__version__}-cpu", onnx_passes.name())
    assert f"{named} cannot run here: {backend} makes these cards" in report.notes[-1]


@pytest.mark.parametrize("ends", [(0.0, 1.0), (-1.0, 1.0)])
def test_bytes_are_the_rounded_and_clipped_floats(capture_work, new_model, new_report, never, ends):
    model = new_model(range=ends, image=(8, 8, 3))
    floats, bytes_ = capture_work(model=model), capture_work(model=model, dtype="uint8")
    run(floats, new_report(), never)
    run(bytes_, new_report(), never)
    low, high = ends
    wanted = np.clip(np.round((cards_of(floats).astype(np.float64) - low) / (high - low) * 255), 0, 255)
    assert cards_of(bytes_).dtype == np.uint8
    assert np.abs(cards_of(bytes_) - wanted).max() <= 1
    assert (cards_of(bytes_) == wanted).mean() > 0.999


def test_life_is_seen_after_the_first_pass(capture_work, report, never):
    run(capture_work(count=130, r=3), report, never)
    first, *chunks = report.told
    assert (first.step, first.steps, first.unit) == (0, 130, "cards")
    assert first.fraction == pytest.approx(1 / 9)
    assert first.eta_seconds > 0
    assert [told.step for told in chunks] == [64, 128, 130]
    assert chunks[-1].fraction == 1
    assert chunks[0].rate > 0


def test_a_stopped_capture_leaves_what_it_made(capture_work, new_report, never):
    whole, work, asked = capture_work(count=500), capture_work(count=500), iter(range(10**6))
    with pytest.raises(Stopped, match="128 of 500") as stopped:
        run(work, new_report(), lambda: next(asked) >= 7)  # asked before each of three passes a chunk
    run(whole, new_report(), never)
    assert [product.name for product in stopped.value.products] == ["cards.npy", "sheet.png", "source.png"]
    assert np.array_equal(cards_of(work), cards_of(whole)[:128])
    assert (work.out / "sheet.png").read_bytes() == (whole.out / "sheet.png").read_bytes()


def test_stopped_before_the_first_card_it_leaves_nothing_to_keep(capture_work, report):
    with pytest.raises(Stopped, match="0 of 70") as stopped:
        run(capture_work(), report, lambda: True)
    assert stopped.value.products == []


def test_sheets_show_the_cards_and_the_mazes_they_were(capture_work, new_model, report, never):
    work = capture_work(model=new_model(image=(32, 32, 3)), count=70)
    run(work, report, never)
    for name in ("sheet.png", "source.png"):
        with Image.open(work.out / name) as picture:
            assert (picture.size, picture.mode) == ((8 * 66 + 2, 8 * 66 + 2), "RGB")
            pixels = np.asarray(picture)
    maze = np.rint(mazes(0, 0, 1, ImageShape(32, 32, 3), (0.0, 1.0))[0] * 255).astype(np.uint8)
    assert np.array_equal(pixels[2:66:2, 2:66:2], maze)


def test_a_network_that_drives_patterns_away_is_told_by_its_pass(capture_work, new_model, report, never):
    def spoil(network):
        # tanh keeps hidden layers small; the head alone decides: y = 3e38 * tanh(..) overflows at the second step.
        network.decoder.head.weight.fill_(3e38)

    with pytest.raises(Diverged, match=r"card \d+ left the finite numbers at pass \d of 3"):
        run(capture_work(model=new_model(spoil=spoil)), report, never)


def test_weights_that_are_not_finite_are_told_at_the_first_pass(capture_work, new_model, report, never):
    def spoil(network):
        network.encoder.stem.bias.fill_(float("nan"))

    with pytest.raises(Diverged, match=r"card 0 left the finite numbers at pass 1 of 3; .* weights"):
        run(capture_work(model=new_model(spoil=spoil)), report, never)


def test_memory_does_not_grow_with_the_count(capture_work, new_model, new_report, never):
    """30 chunks of 32 x 32 x 3 floats are 23 MB of cards; what the process holds must not follow them."""

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    class Weighing(new_report):
        def progress(self, progress):
            weights.append(resident())

    weights: list[int] = []
    work = capture_work(model=new_model(filters=2, image=(32, 32, 3)), count=30 * 64, r=1)
    run(work, Weighing(), never)
    assert (work.out / "cards.npy").stat().st_size > 23e6
    assert weights[-1] - weights[5] < 6e6


class TestTheTimeThatResumePointsTake:
    @pytest.fixture
    def at(self, monkeypatch):
        now = [100.0]
        monkeypatch.setattr("engine.making.time.monotonic", lambda: now[0])
        return now

    @pytest.mark.parametrize(("seconds", "took", "due"), [(10, 0.1, 10), (10, 1.0, 50), (0, 1.0, 0)])
    def test_a_slow_one_is_followed_by_more_work(self, at, seconds, took, due):
        clock = Clock(seconds)
        with clock.writing():
            at[0] += took
        at[0] += max(due - 0.01, 0)
        assert clock.is_time() == (seconds == 0)
        at[0] += 0.02
        assert clock.is_time()


class TestGoingOn:
    """A capture that was broken off goes on behind its last whole chunk."""

    def broken_off(self, capture_work, new_report, after: int, **spec):
        work, report, asked = capture_work(**spec), new_report(), []
        object.__setattr__(work, "resume_seconds", 0.0)

        def stop() -> bool:
            asked.append(1)
            return len(asked) > after

        with pytest.raises(Stopped):
            run(work, report, stop)
        return sorted((work.out / "resume").glob("*.cards"))

    @pytest.mark.parametrize("dtype", ["float32", "uint8"])
    def test_it_ends_with_the_same_set(self, capture_work, new_report, never, dtype):
        spec = {"count": 200, "r": 3, "seed": 4, "dtype": dtype}
        whole = capture_work(**spec)
        unbroken = run(whole, new_report(), never)
        point = self.broken_off(capture_work, new_report, 7, **spec)[-1]
        assert point.name == "00000128.cards"
        work = capture_work(**spec)
        object.__setattr__(work, "resume", point)
        resumed = run(work, new_report(), never)
        for name in ("cards.npy", "sheet.png", "source.png"):
            assert (work.out / name).read_bytes() == (whole.out / name).read_bytes()
        for measure in ("gamma1", "gamma2", "mean_step", "recipe"):
            assert getattr(resumed.result, measure) == getattr(unbroken.result, measure)

    def test_cards_of_another_build_are_made_anew(self, capture_work, new_report, never):
        spec = {"count": 200, "r": 2}
        point = self.broken_off(capture_work, new_report, 5, **spec)[-1]
        head, cards = point.read_bytes().split(b"\n", 1)
        point.write_bytes(head.replace(b"torch-", b"torsh-") + b"\n" + cards[: len(cards) // 2])
        work, report = capture_work(**spec), new_report()
        object.__setattr__(work, "resume", point)
        run(work, report, never)
        assert len(cards_of(work)) == 200
        assert any("made anew" in text for text in report.notes)

    def test_it_goes_on_with_the_backend_it_began_with(self, capture_work, new_report, never, monkeypatch):
        spec = {"count": 200, "r": 2}
        with monkeypatch.context() as patch:
            patch.setattr(choose, "START_SECONDS", 0.0)
            patch.setattr(choose, "fastest", lambda by_torch, by_onnx, _: by_onnx)
            whole = capture_work(**spec)
            unbroken = run(whole, new_report(), never)
            point = self.broken_off(capture_work, new_report, 5, **spec)[-1]
        work, report = capture_work(**spec), new_report()
        object.__setattr__(work, "resume", point)
        resumed = run(work, report, never)
        assert report.notes == []
        assert resumed.result.recipe == unbroken.result.recipe
        assert resumed.result.recipe.backend == onnx_passes.name()
        assert np.array_equal(cards_of(work), cards_of(whole))

    def test_only_the_last_two_points_are_kept(self, capture_work, new_report):
        left = self.broken_off(capture_work, new_report, 9, count=500, r=2)
        assert [path.name for path in left] == ["00000192.cards", "00000256.cards"]


@pytest.mark.parametrize(
    ("count", "kept", "card_bytes", "worth"),
    [
        (64, 0, 12, True),
        (64, 64, 12, False),
        (128, 64, 12, True),
        (1100, 1000, 2**20, False),
        (1500, 1000, 2**20, True),
    ],
)
def test_large_sets_are_written_down_less_often(count, kept, card_bytes, worth):
    assert is_worth_it(count, kept, card_bytes) == worth
