import csv
import json

import numpy as np
import pytest
import torch
from PIL import Image

from engine.data import hold_out_of_each
from engine.errors import DatasetUnfit
from engine.run import run
from flashcards.contract.architecture import architecture_spec

TWO_HEADS = architecture_spec.validate_python("tasknet_2_2_width_1_hidden_2_latent_2")


@pytest.fixture
def bright_or_dark(new_model):
    """Of two heads: the first says 1 to images that are bright, and is much the louder one."""

    def spoil(network):
        for parameter in network.parameters():
            parameter.zero_()
        for stage in network.encoder.stages:
            stage.conv.weight[0, 0, 1, 1] = 1
            stage.norm.weight.fill_((1 + stage.norm.eps) ** 0.5)
        network.encoder.hidden.weight[0, 0] = 1
        network.encoder.latent.weight[0, 0] = 1
        network.heads[0].weight[1, 0] = 8.0
        network.heads[0].bias.copy_(torch.tensor([4.0, 0.0]))
        network.heads[1].bias.copy_(torch.tensor([1.0, 0.0]))

    return new_model(architecture=TWO_HEADS, spoil=spoil, image=(4, 4, 1))


def plain(values) -> np.ndarray:
    return np.array(values, np.uint8)[:, None, None].repeat(4, 1).repeat(4, 2)


@pytest.fixture
def outcome(evaluate_work, bright_or_dark, as_dataset, report, never):
    dataset = as_dataset(x_train=plain([0]), x_test=plain([0, 255, 255, 0, 0]), y_test=np.array([0, 1, 0, 2, 3]))
    work = evaluate_work(dataset, bright_or_dark)
    return work, run(work, report, never)


def test_what_can_be_counted_by_hand(outcome):
    _, done = outcome
    result = done.result
    assert result.confusion == [[1, 1, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]
    assert result.accuracy == pytest.approx(2 / 5)
    assert result.accuracy_given_head == pytest.approx(3 / 5)
    assert result.constant_accuracy == pytest.approx(2 / 5)
    assert [(each.label, each.images, each.accuracy) for each in result.per_class] == [
        (0, 2, 0.5),
        (1, 1, 1.0),
        (2, 1, 0.0),
        (3, 1, 0.0),
    ]
    dark, bright = (np.exp(y) / np.exp(y).sum() for y in (np.array([4.0, 0, 1, 0]), np.array([4.0, 8, 1, 0])))
    p = [dark[0], bright[1], bright[0], dark[2], dark[3]]
    assert result.log_loss == pytest.approx(-np.log(p).mean(), rel=1e-5)
    # Both kinds of answers fall into bins of their own: three dark ones, one of them right, two bright ones, one right.
    ece = 3 / 5 * abs(1 / 3 - dark[0]) + 2 / 5 * abs(1 / 2 - bright[1])
    assert dark[0] < 14 / 15 < bright[1]
    assert result.ece == pytest.approx(ece, rel=1e-5)


def test_its_figures_and_the_numbers_beside_them(outcome):
    work, done = outcome
    assert [product.name for product in done.products] == [
        "metrics.json",
        "metrics.csv",
        "per_class.csv",
        "confusion.png",
        "confusion.json",
        "confusion.csv",
        "calibration.png",
        "calibration.json",
    ]
    assert json.loads((work.out / "metrics.json").read_text())["accuracy"] == done.result.accuracy
    assert json.loads((work.out / "confusion.json").read_text())["confusion"] == done.result.confusion
    assert sum(each["images"] for each in json.loads((work.out / "calibration.json").read_text())["bins"]) == 5
    for name in ("confusion.png", "calibration.png"):
        with Image.open(work.out / name) as picture:
            assert min(picture.size) > 300


def test_tables_say_the_same(outcome):
    work, done = outcome

    def rows(name):
        return list(csv.DictReader((work.out / name).read_text().splitlines()))

    (metrics,) = rows("metrics.csv")
    assert [float(metrics[name]) for name in ("accuracy", "accuracy_given_head", "ece")] == [
        done.result.accuracy,
        done.result.accuracy_given_head,
        done.result.ece,
    ]
    assert [(row["label"], row["name"], row["images"], row["accuracy"]) for row in rows("per_class.csv")] == [
        ("0", "", "2", "0.5"),
        ("1", "", "1", "1.0"),
        ("2", "", "1", "0.0"),
        ("3", "", "1", "0.0"),
    ]
    assert rows("confusion.csv")[0] == {"class": "0", "0": "1", "1": "1", "2": "0", "3": "0"}


def test_without_a_test_split_what_a_training_holds_out(evaluate_work, bright_or_dark, as_dataset, report, never):
    labels = np.arange(40) % 4
    result = run(evaluate_work(as_dataset(x=plain([9] * 40), y=labels), bright_or_dark), report, never).result
    _, held = hold_out_of_each(labels, 0.1, 0)
    assert (result.split, result.images) == ("held_out", len(held))
    assert [each.label for each in result.per_class] == sorted(labels[held])
    assert any("no test split" in note for note in report.notes)


@pytest.mark.parametrize(("labels", "words"), [(None, "no labels"), ([4], "labels from 4 to 4"), ([-1], "from -1")])
def test_labels_that_do_not_go_with_its_classes(
    evaluate_work, bright_or_dark, as_dataset, report, never, labels, words
):
    arrays = {"x_train": plain([0]), "x_test": plain([1])} | ({} if labels is None else {"y_test": np.array(labels)})
    with pytest.raises(DatasetUnfit, match=words):
        run(evaluate_work(as_dataset(**arrays), bright_or_dark), report, never)
