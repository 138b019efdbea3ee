import csv
from dataclasses import replace

import numpy as np
import pytest

from engine import class_desk
from engine.class_data import load_class_task
from engine.data import Images
from engine.errors import DatasetUnfit, ForgotTooMuch, Stopped
from engine.jitter import jittered
from engine.run import run
from flashcards.contract import capsule
from flashcards.contract.specs import Jitter

LESSON = {"epochs": 10, "autoencoder_epochs": 14, "batch_size": 12, "learning_rate": 0.004}
CARDS = {"kind": "flashcards", "count": 120}
NAIVE = {"kind": "naive"}
TABLES = ("measures", "per_class", "confusion")


@pytest.fixture(scope="module")
def first(new_class_learner):
    return new_class_learner().learn("low", strategy=CARDS, **LESSON)


@pytest.fixture(scope="module")
def kept(first):
    return first.learn("high", strategy=CARDS, **LESSON)


@pytest.fixture(scope="module")
def lost(first):
    return first.learn("high", strategy=NAIVE, **LESSON)


def read(learner, number):
    return capsule.read((learner.work.out / f"capsule-{number}.safetensors").read_bytes())


def test_a_task_is_learnt_by_two_networks(first):
    result = first.result
    assert result.measures[0].accuracy > 0.9
    assert (result.classes, result.architecture.heads, result.before) == (2, (2,), None)
    assert result.autoencoder.shares_encoder
    assert result.autoencoder.validation_error < result.autoencoder.constant_error
    assert result.steps == 90 + result.autoencoder.steps
    assert {"model.safetensors", "autoencoder.safetensors", "capsule-1.safetensors", "confusion.png"} <= first.names


def test_cards_keep_what_plain_training_forgets(kept, lost):
    told, untold = ([measure.accuracy_without_task_id for measure in each.result.measures] for each in (kept, lost))
    assert np.mean(told) > np.mean(untold) + 0.05
    assert kept.result.measures[1].accuracy > 0.8
    assert kept.result.architecture.heads == (2, 2)


def test_figures_of_all_tasks_are_kept_as_numbers_and_as_tables(kept):
    result, out = kept.result, kept.work.out
    assert np.array(result.confusion).shape == (4, 4)
    assert np.trace(result.confusion) / np.sum(result.confusion) == pytest.approx(
        np.average(
            [measure.accuracy_without_task_id for measure in result.measures],
            weights=[sum(each.images for each in measure.per_class) for measure in result.measures],
        )
    )
    rows = {name: list(csv.DictReader((out / f"{name}.csv").read_text().splitlines())) for name in TABLES}
    assert [float(row["ece"]) for row in rows["measures"]] == [measure.ece for measure in result.measures]
    assert [row["task"] for row in rows["measures"]] == ["low", "high"]
    told = [(measure.task, str(each.label)) for measure in result.measures for each in measure.per_class]
    assert [(row["task"], row["label"]) for row in rows["per_class"]] == told
    assert [[int(row[str(label)]) for label in range(4)] for row in rows["confusion"]] == result.confusion
    assert {f"{name}.csv" for name in TABLES} <= kept.names


def test_a_capsule_knows_its_classes_and_is_refreshed_with_them(first, kept):
    before, after = read(first, 1), read(kept, 1)
    assert before.by_class.known == after.by_class.known == [0, 1]
    np.testing.assert_array_equal(before.by_class.count_C, after.by_class.count_C)
    assert before.by_class.count_C.sum() == 120
    assert not np.allclose(before.by_class.mean_CD, after.by_class.mean_CD)
    assert (after.facts.measured_on, after.facts.count) == ("cards", 120)
    # Classes lie where their moments say: apart from each other.
    apart = np.linalg.norm(np.diff(before.by_class.mean_CD, axis=0))
    assert apart > np.sqrt(before.by_class.diagonal_CD.mean())


def test_other_strategies_hand_the_autoencoder_on_as_it_was(first, lost):
    assert (lost.work.out / "autoencoder.safetensors").read_bytes() == first.autoencoder.path.read_bytes()
    assert (lost.work.out / "capsule-1.safetensors").read_bytes() == (
        first.work.out / "capsule-1.safetensors"
    ).read_bytes()
    assert not (lost.work.out / "capsule-2.safetensors").exists()
    assert lost.result.autoencoder is None


def test_where_images_are_gone_cards_say_what_was_forgotten(first, lost):
    tasks = [replace(task, test=None) for task in first.input.tasks]
    blind = replace(first, input=replace(first.input, tasks=tasks)).learn("high", strategy=NAIVE, **LESSON)
    assert blind.result.measures[0].accuracy is None
    assert blind.result.forgetting_on == "cards"
    assert blind.result.measures[0].estimated_accuracy == lost.result.measures[0].estimated_accuracy


def test_a_budget_counts_wrong_answers(first, new_report, never):
    work = first.task("high", strategy=NAIVE, max_forgetting={"absolute": 0.001}, **LESSON)
    with pytest.raises(ForgotTooMuch, match=r"task low, .* rose by"):
        run(work, new_report(), never)


@pytest.mark.slow
def test_the_first_network_stays_while_the_second_learns_and_both_resume(first, kept, new_report, never):
    """Stopped in each of the two trainings, the job ends with the bits of an unbroken one."""
    unbroken = {name: (kept.work.out / name).read_bytes() for name in ("model.safetensors", "autoencoder.safetensors")}
    for steps in (40, 90 + 40):
        work, report = first.task("high", strategy=CARDS, **LESSON), new_report()
        with pytest.raises(Stopped):
            run(work, report, lambda report=report, steps=steps: bool(report.told) and report.told[-1].step >= steps)
        point = report.points[-1]
        assert int(point.stem) == steps
        resumed = first.task("high", point, strategy=CARDS, **LESSON)
        outcome = run(resumed, new_report(), never)
        assert {name: (resumed.out / name).read_bytes() for name in unbroken} == unbroken
        assert outcome.result.measures == kept.result.measures
        assert outcome.result.steps == kept.result.steps
    assert work.resume is None


def test_progress_counts_both_trainings(first, new_report, never):
    work, report = first.task("high", strategy=CARDS, **LESSON), new_report()
    run(work, report, never)
    fractions = [told.fraction for told in report.told]
    assert fractions == sorted(fractions)
    assert fractions[89] == pytest.approx(90 / (90 + 9 * 14))


class TestSessions:
    def test_one_head_and_an_autoencoder_of_another_kind(self, new_class_learner):
        learner = new_class_learner("new_instance", autoencoder="blk_1_fil_4")
        once = learner.learn("low", strategy=CARDS, **LESSON)
        again = once.learn("low", strategy=CARDS, jitter={"brightness": -0.2}, **LESSON)
        assert again.result.architecture.heads == (2,)
        assert not again.result.autoencoder.shares_encoder
        assert again.result.measures[0].accuracy == again.result.measures[1].accuracy
        assert again.result.measures[0].accuracy_without_task_id is None
        assert again.result.before.accuracy == once.result.measures[0].accuracy

    def test_the_rate_of_sgd_is_the_classifier_s_alone(self, new_class_learner, monkeypatch):
        seen, teach = [], class_desk.teach
        monkeypatch.setattr(
            class_desk,
            "teach",
            lambda work, *rest: seen.append((work.spec.optimizer, work.spec.learning_rate)) or teach(work, *rest),
        )
        learner = new_class_learner("new_instance", autoencoder="blk_1_fil_4")
        learner.learn("low", strategy=CARDS, **LESSON | {"optimizer": "sgd", "learning_rate": 0.02})
        learner.learn("low", strategy=CARDS, **LESSON)
        assert seen == [("sgd", 0.02), ("adam", 0.001), ("adam", 0.004), ("adam", 0.004)]

    def test_light_changes_what_is_learnt_and_not_what_it_is_measured_on(self, new_class_learner, report):
        learner = new_class_learner("new_instance")
        plain = load_class_task(learner.task("low"), report)
        dark = load_class_task(learner.task("low", jitter={"brightness": -0.5}), report)
        darker = np.maximum(plain.task.images.x_NHWC.astype(float) - 127.5, 0)
        np.testing.assert_allclose(dark.task.images.x_NHWC, darker, atol=0.51)
        np.testing.assert_array_equal(dark.test.images.images.x_NHWC, plain.test.images.images.x_NHWC)


def test_light_by_hand():
    grey, red = [100, 100, 100], [200, 0, 0]
    images = Images(np.array([[[grey, red]]], np.uint8), (0.0, 1.0))
    brighter = jittered(images, Jitter(brightness=0.4))
    assert brighter.x_NHWC.tolist() == [[[[202, 202, 202], [255, 102, 102]]]]
    luma = 0.299 * 200
    pale = jittered(images, Jitter(saturation=-0.5))
    half = [round((200 + luma) / 2), round(luma / 2), round(luma / 2)]
    assert pale.x_NHWC.tolist() == [[[grey, half]]]
    floating = Images(np.full((1, 1, 1, 1), 0.5, np.float32), (-1.0, 1.0))
    assert jittered(floating, Jitter(brightness=-0.2)).x_NHWC.item() == pytest.approx(0.1)


class TestRefused:
    def words(self, learner, as_dataset, new_report, never, **arrays) -> str:
        with pytest.raises(DatasetUnfit) as error:
            run(replace(learner, datasets={"bad": as_dataset(**arrays)}).task("bad"), new_report(), never)
        return error.value.detail

    def test_labels_missing(self, first, as_dataset, new_report, never):
        assert "no labels" in self.words(first, as_dataset, new_report, never, x=np.zeros((9, 8, 8), np.uint8))

    def test_a_class_with_one_image(self, first, as_dataset, new_report, never):
        x, y = np.zeros((9, 8, 8), np.uint8), np.array([0, 0, 0, 0, 1, 1, 1, 1, 2])
        assert "class 2 has one image" in self.words(first, as_dataset, new_report, never, x=x, y=y)

    def test_labels_of_test_that_were_not_learnt(self, first, as_dataset, new_report, never):
        x, y = np.zeros((8, 8, 8), np.uint8), np.arange(8) % 2
        words = self.words(first, as_dataset, new_report, never, x_train=x, y_train=y, x_test=x, y_test=y + 2)
        assert "the labels of test go from 2 to 3, and the task has the classes 0 to 1" in words

    def test_more_classes_than_the_head(self, new_class_learner, as_dataset, new_report, never):
        learner = new_class_learner(architecture="tasknet_2_width_4_hidden_32_latent_8")
        x, y = np.zeros((9, 8, 8), np.uint8), np.arange(9) % 3
        words = self.words(learner, as_dataset, new_report, never, x=x, y=y)
        assert "are 3 classes, and head 1 of tasknet_2" in words
