import contextlib
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from engine.data import hold_out, load_images
from engine.errors import Collapsed, DatasetUnfit, Diverged, Stopped
from engine.run import run
from engine.weights import load_network
from engine.work import ModelInput
from flashcards.contract.image import ImageShape

# Five batches and one chunk of held-out images an epoch: `stop` is asked six times in each.
ASKED_AN_EPOCH = 6


class Killed(BaseException):
    pass


class StopAt:
    """True from the nth time it is asked."""

    def __init__(self, nth: int, kill: bool = False) -> None:
        self.left, self.kill = nth, kill

    def __call__(self) -> bool:
        self.left -= 1
        if self.left <= 0 and self.kill:
            raise Killed
        return self.left <= 0


def weights_of(work) -> dict[str, torch.Tensor]:
    return load_file(work.out / "model.safetensors")


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def told(outcome) -> dict:
    return outcome.result.model_dump(exclude={"seconds", "images_per_second"})


def test_it_learns_digits(train_work, report, never, digits, as_dataset):
    work = train_work(dataset=as_dataset(x_train=digits["x_train"][:400]), epochs=8, learning_rate=0.01)
    outcome = run(work, report, never)
    result = outcome.result
    assert result.validation_mae < 0.7 * result.constant_mae
    assert [product.name for product in outcome.products] == [
        "model.safetensors",
        "reconstructions.png",
        "capsule.safetensors",
    ]
    assert (result.epochs, result.steps, result.images, result.stopped_early) == (8, 8 * 36, 360, False)
    assert result.parameters == work.spec.architecture.parameters(ImageShape(8, 8, 1))
    with Image.open(work.out / "reconstructions.png") as picture:
        assert picture.size == (10 * 66 + 2, 2 * 66 + 2)

    assert [step for step, _ in report.metrics] == [36 * epoch for epoch in range(1, 9)]
    best = min(report.metrics, key=lambda metric: metric[1]["validation_mae"])
    assert best[0] == 36 * result.best_epoch
    assert best[1] == {"train_mae": result.train_mae, "validation_mae": result.validation_mae}


def test_the_saved_weights_are_those_of_the_best_epoch(train_work, report, never):
    work = train_work(architecture="blk_1_fil_4", epochs=12, learning_rate=0.03, decay=0)
    result = run(work, report, never).result
    assert result.best_epoch < 12
    model = ModelInput(
        path=work.out / "model.safetensors",
        digest="m",
        architecture=work.spec.architecture,
        input=ImageShape(8, 8, 1),
        range=(0.0, 1.0),
    )
    images = load_images(work.dataset.path, "train", (0.0, 1.0))
    _, held = hold_out(50, 0.1, 0)
    x_BCHW = images.batch(held, torch.device("cpu"))
    network = load_network(model, torch.device("cpu"))
    assert (network(x_BCHW) - x_BCHW).abs().mean().item() == pytest.approx(result.validation_mae, rel=1e-5)


def test_progress_is_told_from_the_first_step(train_work, report, never):
    run(train_work(), report, never)
    first, last = report.told[0], report.told[-1]
    assert len(report.told) == 20
    assert (first.step, first.steps, first.epoch, first.unit) == (1, 20, 1, "images")
    assert first.fraction == pytest.approx(1 / 20)
    assert first.loss > 0
    assert first.rate > 0
    assert first.eta_seconds == pytest.approx((4 * 45 - 10) / first.rate)
    assert (last.fraction, last.eta_seconds) == (1.0, 0.0)


@pytest.fixture
def early(train_work, new_report, never):
    """An unbroken run in which two epochs without a better error end it: the bookkeeping of an early stop is in it."""

    def make(**fields):
        return train_work(architecture="blk_1_fil_4", epochs=40, learning_rate=0.03, patience=2, **fields)

    work, report = make(), new_report()
    outcome = run(work, report, never)
    assert outcome.result.stopped_early
    assert outcome.result.epochs == outcome.result.best_epoch + 2
    return make, outcome, weights_of(work), report.metrics


def edges(epochs: int) -> list[int]:
    """When to stop: first step, mid-epoch, last step of an epoch, while validating, one step on, and near the end."""
    last = epochs * ASKED_AN_EPOCH
    return [1, 3, 5, 6, 7, 15, last - ASKED_AN_EPOCH - 3, last - ASKED_AN_EPOCH, last - 4, last - 1, last]


@pytest.mark.slow
def test_stopped_anywhere_it_ends_with_the_same_bits(early, new_report, never):
    make, unbroken, weights, metrics = early
    for nth in edges(unbroken.result.epochs):
        report = new_report()
        with pytest.raises(Stopped):
            run(make(), report, StopAt(nth))
        work, resumed = make(resume=report.points[-1]), new_report()
        outcome = run(work, resumed, never)
        assert same(weights_of(work), weights), f"stopped when asked for the {nth}th time"
        assert told(outcome) == told(unbroken)
        assert report.metrics + resumed.metrics == metrics


@pytest.mark.slow
def test_killed_anywhere_it_ends_with_the_same_bits(early, new_report, never):
    make, unbroken, weights, _ = early
    for nth in edges(unbroken.result.epochs)[1:]:
        report = new_report()
        with pytest.raises(Killed):
            run(make(resume_seconds=0), report, StopAt(nth, kill=True))
        work = make(resume=report.points[-1])
        outcome = run(work, new_report(), never)
        assert same(weights_of(work), weights), f"killed when asked for the {nth}th time"
        assert told(outcome) == told(unbroken)


def test_interrupted_again_and_again_it_ends_with_the_same_bits(early, new_report):
    make, unbroken, weights, metrics = early
    point, attempts, found = None, 0, []
    while True:
        work, report = make(resume=point, resume_seconds=0 if attempts % 2 else 1e9), new_report()
        try:
            outcome = run(work, report, StopAt(4))
            break
        except Stopped:
            point, attempts = report.points[-1], attempts + 1
        finally:
            found += report.metrics
    assert attempts >= unbroken.result.epochs
    assert found == metrics
    assert same(weights_of(work), weights)
    assert told(outcome) == told(unbroken)


def test_two_threads_and_colour_end_with_the_same_bits(train_work, new_report, never, as_dataset):
    x = np.random.default_rng(0).random((12, 8, 8, 3), dtype=np.float32)
    fields = {"dataset": as_dataset(x=x), "batch_size": 4, "epochs": 2, "threads": 2}
    unbroken, broken, report = train_work(**fields), train_work(**fields), new_report()
    with pytest.raises(Collapsed):  # noise has nothing to learn: the weights are there all the same
        run(unbroken, new_report(), never)
    with pytest.raises(Stopped):
        run(broken, report, StopAt(2))
    resumed = train_work(resume=report.points[-1], **fields)
    with pytest.raises(Collapsed):
        run(resumed, new_report(), never)
    assert same(weights_of(unbroken), weights_of(resumed))


def test_only_two_resume_points_are_kept(train_work, report, never):
    work = train_work(resume_seconds=0)
    with pytest.raises(Stopped):
        run(work, report, StopAt(5))
    assert [path.name for path in report.points] == [f"{step:08d}.safetensors" for step in range(1, 6)]
    assert sorted((work.out / "resume").iterdir()) == report.points[-2:]


def test_a_stop_hands_over_the_best_weights_once_an_epoch_is_done(train_work, new_report):
    early, late = train_work(), train_work()
    with pytest.raises(Stopped) as stopped:
        run(early, new_report(), StopAt(5))
    assert stopped.value.products == []
    with pytest.raises(Stopped, match="epoch 2 of 4, after 6 steps") as stopped:
        run(late, new_report(), StopAt(7))
    assert [product.name for product in stopped.value.products] == ["model.safetensors"]
    assert len(weights_of(late)) == len(late.spec.architecture.tensors(ImageShape(8, 8, 1)))


def test_another_build_is_said(train_work, new_report, never):
    report = new_report()
    with pytest.raises(Stopped):
        run(train_work(threads=2), report, StopAt(1))
    resumed = new_report()
    run(train_work(resume=report.points[-1]), resumed, never)
    assert "2 threads" in resumed.notes[0]
    assert "1 threads" in resumed.notes[0]


def test_collapse_is_a_failure_with_both_numbers_and_readable_weights(train_work, report, never, new_model):
    """A step of 10 drives every tanh to its flat end: one answer for all images."""
    work = train_work(learning_rate=10, epochs=4)
    with pytest.raises(Collapsed) as collapsed:
        run(work, report, never)
    best = min(values["validation_mae"] for _, values in report.metrics)
    assert f"{best:.6g}" in collapsed.value.detail
    assert "median" in collapsed.value.detail
    assert [product.name for product in collapsed.value.products] == ["model.safetensors", "reconstructions.png"]
    assert all(tensor.isfinite().all() for tensor in weights_of(work).values())


def test_an_experiment_may_go_on_with_a_collapsed_network(train_work, report, never):
    work = replace(train_work(learning_rate=10, epochs=4), refuse_collapse=False)
    result = run(work, report, never).result
    assert result.validation_mae >= result.constant_mae


def test_the_sigmoid_trap(train_work, report, never, as_dataset):
    """Mostly black images: under L1 the black image is where a saturated sigmoid ends, and it is the median too."""
    x = np.zeros((60, 8, 8), np.uint8)
    x[np.arange(60), np.random.default_rng(0).integers(0, 8, 60), np.random.default_rng(1).integers(0, 8, 60)] = 255
    work = train_work(
        dataset=as_dataset(x=x),
        architecture={"blocks": 2, "filters": 4, "head": "sigmoid"},
        learning_rate=0.1,
        epochs=5,
    )
    with pytest.raises(Collapsed, match=r"has 0\.015625"):
        run(work, report, never)


def test_one_picture_many_times_is_learnt_and_said(train_work, report, never, as_dataset, digits):
    x = np.repeat(digits["x_train"][:1], 40, axis=0)
    result = run(train_work(dataset=as_dataset(x=x), epochs=100, learning_rate=0.003), report, never).result
    assert result.constant_mae == 0
    assert 0 < result.validation_mae < 0.01
    assert "same one" in report.notes[0]


def test_one_picture_many_times_and_not_learnt_is_a_collapse(train_work, report, never, as_dataset, digits):
    x = np.repeat(digits["x_train"][:1], 40, axis=0)
    with pytest.raises(Collapsed, match="hundredth"):
        run(train_work(dataset=as_dataset(x=x), epochs=1), report, never)


def test_a_loss_that_is_not_finite(train_work, report, never, as_dataset):
    x = np.full((10, 8, 8), 3e38, np.float32)
    with pytest.raises(Diverged, match="learning_rate") as diverged:
        run(train_work(dataset=as_dataset(x=x)), report, never)
    assert diverged.value.products == []
    assert "3e+38" in report.notes[0]


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_too_few_images(train_work, report, never, as_dataset, count, dtype):
    with pytest.raises(DatasetUnfit, match="at least 2"):
        run(train_work(dataset=as_dataset(x=np.zeros((count, 8, 8), dtype))), report, never)


def test_the_largest_seed_is_a_seed(train_work, new_report, never):
    weights = []
    for seed in (2**63 - 1, 2**63 - 2):
        work = train_work(seed=seed, epochs=6)
        run(work, new_report(), never)
        weights.append(weights_of(work))
    assert not same(*weights)


def test_two_images_are_enough(train_work, report, never, as_dataset):
    x = np.stack([np.zeros((8, 8)), np.ones((8, 8))]).astype(np.float32)
    work = train_work(dataset=as_dataset(x=x), epochs=2)
    with contextlib.suppress(Collapsed):  # the one held out is the other one: nothing to learn it from
        run(work, report, never)
    assert len(report.metrics) == 2


def test_images_that_the_network_cannot_halve(train_work, report, never):
    with pytest.raises(DatasetUnfit, match="must divide by 16, and those of 8x8x1 do not"):
        run(train_work(architecture="blk_4_fil_4"), report, never)


def test_a_dataset_without_training_images(train_work, report, never, as_dataset):
    with pytest.raises(DatasetUnfit, match="x_train or x"):
        run(train_work(dataset=as_dataset(x_test=np.zeros((5, 8, 8), np.uint8))), report, never)


def test_the_last_batch_counts_by_its_images(train_work, report, never):
    """45 images in batches of 10: a mean over batches would give the last five the weight of ten."""
    results = []
    for batch_size in (10, 45):
        report.metrics.clear()
        with pytest.raises(Collapsed):
            run(train_work(batch_size=batch_size, learning_rate=1e-12, epochs=1), report, never)
        results.append(report.metrics[0][1]["train_mae"])
    assert math.isclose(*results, rel_tol=1e-6)
