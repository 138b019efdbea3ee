"""`joint` and `coreset`, the strategies that keep images."""

from dataclasses import replace

import numpy as np
import pytest

from engine.strategies import open_strategy
from engine.work import TaskInput


@pytest.fixture
def kept_after(new_learner, setting_of, folder):
    """The images kept after so many tasks; nothing is trained, since what is kept does not depend on it."""

    def make(strategy, tasks=("low", "high", "last"), **fields):
        learner, kept = new_learner(), []
        for name in tasks:
            work = learner.task(name, strategy=strategy, **fields)
            setting = setting_of(work)
            kept.append(open_strategy(setting).end(None).images)
            path = folder() / "images.npz"
            np.savez(path, **kept[-1])
            tasks = [*learner.input.tasks, TaskInput(name=name)]
            learner = replace(learner, input=replace(learner.input, images=path, tasks=tasks))
        return kept

    return make


def sizes(kept) -> list[int]:
    return [len(array) for name, array in sorted(kept.items()) if name.startswith("x_")]


def test_joint_keeps_everything(kept_after):
    assert [sizes(kept) for kept in kept_after({"kind": "joint"})] == [[120], [120, 120], [120, 120, 120]]


def test_joint_learns_from_all_of_it(new_learner, setting_of, folder):
    path = folder() / "images.npz"
    old = np.random.default_rng(0).random((40, 8, 8, 1), dtype=np.float32)
    np.savez(path, x_1=old)
    learner = new_learner()
    learner = replace(learner, input=replace(learner.input, images=path, tasks=[TaskInput(name="low")]))
    setting = setting_of(learner.task("high", strategy={"kind": "joint"}))
    material = open_strategy(setting).material()
    assert (len(material.images), len(material.train_rows), len(material.validation_rows)) == (160, 108 + 36, 12 + 4)
    assert not set(material.train_rows) & set(material.validation_rows)
    assert np.array_equal(material.images.x_NHWC[120:], old)
    assert material.images.x_NHWC[:120].max() == 1


def test_a_coreset_keeps_its_size_in_equal_shares(kept_after):
    kept = kept_after({"kind": "coreset", "size": 40})
    assert [sizes(each) for each in kept] == [[40], [20, 20], [14, 13, 13]]
    assert kept[0]["x_1"].dtype == np.uint8
    assert np.array_equal(kept[1]["x_1"], kept[0]["x_1"][:20])


def test_in_a_reservoir_every_image_has_the_same_chance(kept_after):
    strategy = {"kind": "coreset", "size": 60, "choice": "reservoir"}
    runs = [sizes(kept_after(strategy, seed=seed)[-1]) for seed in range(12)]
    assert all(sum(run) == 60 for run in runs)
    assert np.mean(runs, axis=0) == pytest.approx([20, 20, 20], abs=3)
    assert len({tuple(run) for run in runs}) > 1


def test_a_reservoir_with_room_keeps_all(kept_after):
    kept = kept_after({"kind": "coreset", "size": 500, "choice": "reservoir"})
    assert sizes(kept[-1]) == [120, 120, 120]
    assert kept[-1]["seen"].tolist() == [120, 120, 120]


def test_tasks_that_nothing_was_kept_of_are_named(new_learner, setting_of, report):
    learner = new_learner()
    learner = replace(learner, input=replace(learner.input, tasks=[TaskInput(name="lowly")]))
    assert open_strategy(setting_of(learner.task("high", strategy={"kind": "coreset"}))).replay is None
    assert any("lowly" in note for note in report.notes)
