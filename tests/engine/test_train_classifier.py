import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from engine.data import hold_out_of_each, load_images, load_labels
from engine.errors import Collapsed, DatasetUnfit, Stopped
from engine.run import run
from engine.train_classifier import passed_through
from engine.weights import load_network
from engine.work import ModelInput
from flashcards.contract.image import ImageShape

TINY = "tasknet_10_width_4_hidden_32_latent_8"
CPU = torch.device("cpu")


@pytest.fixture
def labelled(digits, as_dataset):
    def make(count=60, **changes):
        arrays = {"x_train": digits["x_train"][:count], "y_train": digits["y_train"][:count]} | changes
        return as_dataset(**{name: array for name, array in arrays.items() if array is not None})

    return make


@pytest.fixture
def classifier_work(train_work, labelled):
    def make(dataset=None, **fields):
        asked = {"architecture": TINY, "epochs": 6, "batch_size": 10, "learning_rate": 0.003} | fields
        return train_work(dataset=dataset or labelled(), **asked)

    return make


def told(outcome) -> dict:
    return outcome.result.model_dump(exclude={"seconds", "images_per_second"})


@pytest.fixture
def trained(classifier_work, labelled, digits, report, never):
    dataset = labelled(300, x_test=digits["x_test"], y_test=digits["y_test"])
    work = classifier_work(replace(dataset, labels=[f"digit {label}" for label in range(10)]))
    return work, run(work, report, never)


def test_it_learns_the_labels_of_digits(trained, report, digits):
    work, outcome = trained
    result = outcome.result
    pictures = ["confusion.png", "confusion.json", "confusion.csv"]
    assert [product.name for product in outcome.products] == ["model.safetensors", *pictures]
    assert not any(product.shows_data for product in outcome.products)
    assert result.validation_accuracy > 0.7 > 0.3 > result.constant_accuracy
    assert result.validation_log_loss < result.constant_log_loss
    assert (result.classes, result.images, result.epochs) == (10, 270, 6)
    assert result.parameters == work.spec.architecture.parameters(ImageShape(8, 8, 1))
    assert set(report.metrics[0][1]) == {"train_log_loss", "validation_log_loss", "validation_accuracy"}

    model = ModelInput(
        path=work.out / "model.safetensors",
        digest="m",
        architecture=work.spec.architecture,
        input=ImageShape(8, 8, 1),
        range=(0.0, 1.0),
    )
    network = load_network(model, CPU)
    tests = load_images(work.dataset.path, "test", (0.0, 1.0)).batch(np.arange(200), CPU)
    right = (network(tests).argmax(1).numpy() == digits["y_test"]).mean()
    assert result.test_accuracy == pytest.approx(right)


def test_what_it_mistakes_for_what_is_told_by_class(trained):
    work, outcome = trained
    told = json.loads((work.out / "confusion.json").read_text())
    matrix = np.array(told["confusion"])
    classes = outcome.result.per_class
    assert matrix.sum() == 30
    assert [each.images for each in classes] == matrix.sum(1).tolist()
    assert [each.accuracy for each in classes] == pytest.approx(np.diag(matrix) / matrix.sum(1))
    assert classes[3].name == told["names"][3] == "digit 3"
    assert matrix.trace() / 30 == pytest.approx(outcome.result.validation_accuracy)
    with Image.open(work.out / "confusion.png") as picture:
        assert min(picture.size) > 400


class StopAt:
    def __init__(self, nth: int) -> None:
        self.left = nth

    def __call__(self) -> bool:
        self.left -= 1
        return self.left <= 0


@pytest.mark.slow
def test_stopped_anywhere_it_ends_with_the_same_bits(classifier_work, labelled, new_report, never):
    dataset = labelled()

    def make(**fields):
        return classifier_work(dataset, epochs=30, patience=2, decay=0, learning_rate=0.01, **fields)

    work = make()
    unbroken = run(work, new_report(), never)
    assert unbroken.result.stopped_early
    weights = load_file(work.out / "model.safetensors")
    for nth in (1, 4, 8, 15):
        report = new_report()
        with pytest.raises(Stopped):
            run(make(), report, StopAt(nth))
        again = make(resume=report.points[-1])
        assert told(run(again, new_report(), never)) == told(unbroken)
        kept = load_file(again.out / "model.safetensors")
        assert all(torch.equal(kept[name], tensor) for name, tensor in weights.items()), f"stopped at {nth}"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"y_train": None}, "have no labels"),
        ({"y_train": np.arange(60)}, "labels from 0 to 59, and the network's classes are 0 to 9"),
        ({"y_train": np.full(60, -1)}, "labels from -1 to -1"),
        ({"x_test": np.zeros((1, 8, 8), np.uint8), "y_test": np.array([10])}, "y_test has labels from 10 to 10"),
        ({"x_train": np.zeros((10, 8, 8), np.uint8), "y_train": np.arange(10)}, "every class has one image"),
    ],
)
def test_labels_that_cannot_be_learnt_from(classifier_work, labelled, report, never, changes, words):
    with pytest.raises(DatasetUnfit, match=words):
        run(classifier_work(labelled(**changes)), report, never)
    assert report.told == []


def test_a_class_with_one_image_is_learnt_from_and_noted(classifier_work, labelled, report, never, digits):
    labels = np.where(digits["y_train"][:60] > 4, 1, 0)
    labels[17] = 7
    outcome = run(classifier_work(labelled(y_train=labels)), report, never)
    assert {each.label for each in outcome.result.per_class} == {0, 1}
    assert any("class 7 has one image" in note for note in report.notes)


def test_labels_that_say_nothing_of_the_images_end_in_a_collapse(classifier_work, labelled, report, never):
    chance = np.random.default_rng(0)
    dataset = labelled(300, y_train=(chance.random(300) < 0.1).astype(int))
    with pytest.raises(Collapsed, match="always answers with the most frequent class") as caught:
        run(classifier_work(dataset, epochs=1, learning_rate=0.5), report, never)
    assert "model.safetensors" in {product.name for product in caught.value.products}


def test_of_each_class_a_share_is_held_out():
    labels = np.repeat([0, 1, 2, 3], [50, 30, 19, 1])
    train, held = hold_out_of_each(labels, 0.2, seed=3)
    assert sorted([*train, *held]) == list(range(100))
    assert np.bincount(labels[held], minlength=4).tolist() == [10, 6, 4, 0]
    again = hold_out_of_each(labels, 0.2, seed=3)
    assert (train == again[0]).all()
    assert set(held) != set(hold_out_of_each(labels, 0.2, seed=4)[1])
    assert list(held) != sorted(held)


def test_two_images_of_one_class_are_enough_to_hold_one_out():
    train, held = hold_out_of_each(np.array([0, 1, 1, 2]), 0.9, seed=0)
    assert (len(train), len(held)) == (3, 1)
    assert held[0] in (1, 2)


def test_through_an_autoencoder_it_learns_from_reconstructions(classifier_work, labelled, new_model, report, never):
    dataset = labelled(x_test=np.zeros((4, 8, 8), np.uint8), y_test=np.array([0, 1, 2, 3]))
    work = replace(classifier_work(dataset, through=f"model_{'0' * 32}", epochs=1), model=new_model())
    images = load_images(dataset.path, "train", (0.0, 1.0))
    seen = passed_through(work, images, CPU, report, never)
    assert seen.x_NHWC.dtype == np.uint8
    network = load_network(work.model, CPU)
    expected = network(images.batch(np.arange(60), CPU)).clamp(0, 1)
    assert (seen.batch(np.arange(60), CPU) - expected).abs().max() <= 0.5 / 255 + 1e-6
    result = run(replace(work, refuse_collapse=False), report, never).result
    assert result.test_accuracy is not None
    assert any("no probe" in note for note in report.notes)
    with pytest.raises(Stopped, match="gone through the autoencoder"):
        passed_through(work, images, CPU, report, lambda: True)


def test_an_autoencoder_for_other_images_is_refused(classifier_work, new_model, report, never):
    work = classifier_work(through=f"model_{'0' * 32}")
    with pytest.raises(DatasetUnfit, match="16x16x1"):
        run(replace(work, model=new_model(image=(16, 16, 1))), report, never)


def test_labels_of_a_split(labelled):
    assert load_labels(labelled().path, "train", 10).dtype == np.int64
