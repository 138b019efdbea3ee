"""Learners over a few digits: chains of tasks that are kept, shared and taken up."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from forgetting import forget

from benchmarks.lab import Size
from benchmarks.real import in_half
from benchmarks.records import Records
from benchmarks.sequences import Course, Method, Scenario

SMALL = Size(images=60, tests=20, epochs=2, seeds=(0,), side=8, threads=1, learning_rate=0.01)
CARDS = Method("flashcards", {"kind": "flashcards", "count": 40})
NAIVE = Method("naive", {"kind": "naive"})
TASKS = ("mnist", "fashion_mnist", "svhn")


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Steps of one test serve the next."""
    return tmp_path_factory.mktemp("steps")


@pytest.fixture
def course(kept, digit_sets):
    return Course(kept, digit_sets, SMALL)


@pytest.fixture
def learn(course):
    """Once planned, so that progress can be told, and once done."""

    def go(method, tasks=TASKS[:2], scenario=Scenario()):
        found = []

        def experiment(_):
            found[:] = [course.learn(tasks, method, 0, "blk_1_fil_4", scenario)]

        course.walk(experiment)
        return found[0]

    return go


def test_a_chain_knows_the_error_on_every_task_after_every_task(learn):
    chain = learn(CARDS, TASKS)
    matrix, estimated = chain.matrix(), chain.matrix("estimated_mae")
    assert [len(row) for row in matrix] == [len(row) for row in estimated] == [1, 2, 3]
    assert chain.average == pytest.approx(np.mean(matrix[-1]))
    assert chain.bwt == pytest.approx(np.mean([matrix[0][0] - matrix[2][0], matrix[1][1] - matrix[2][1]]))
    assert [each["source"] for each in chain.steps[-1]["recipes"]] == ["capsule", "capsule"]
    assert 0 < chain.memory < 0.1
    assert chain.seconds > 0


def test_a_chain_goes_on_at_the_task_where_it_stopped(course, learn, capsys):
    *done, last = [step.folder / "result.json" for step in learn(CARDS, TASKS).steps]
    stamps = [path.stat().st_mtime_ns for path in done]
    forget(course, last.parent)
    capsys.readouterr()
    assert learn(CARDS, TASKS).is_whole
    assert [path.stat().st_mtime_ns for path in done] == stamps
    told = " ".join(capsys.readouterr().out.split())
    assert told.count("min left") == 1
    assert "seed-0 task 3: svhn+flashcards" in told


def test_chains_share_how_they_began_and_nothing_else(course, tmp_path):
    course = replace(course, folder=tmp_path, planning=True, records=None)

    def planned(method, tasks=TASKS, scenario=Scenario()):
        course.learn(tasks, method, 0, "blk_1_fil_4", scenario)
        return len(course.planned)

    assert planned(CARDS) == 3
    assert planned(CARDS, TASKS[:2]) == 3
    assert planned(NAIVE) == 3 + 2
    assert planned(Method("heavier", CARDS.config | {"weight": 2.0})) == 5 + 2
    assert planned(NAIVE, TASKS[:1], Scenario("denoising")) == 7 + 1
    assert planned(NAIVE, TASKS[:1], Scenario("denoising", 0.2)) == 8 + 1


def test_a_coreset_of_a_share_of_each_task_grows_with_the_tasks(learn):
    chain = learn(Method("coreset", {"kind": "coreset"}, size_a_task=6))
    for number, step in enumerate(chain.steps, start=1):
        with np.load(step.folder / "images.npz") as arrays:
            assert [len(arrays[f"x_{task}"]) for task in range(1, number + 1)] == [6] * number


def test_a_network_that_collapsed_goes_on_and_is_told_of(course, learn, tmp_path):
    course.folder, course.records, course.size = tmp_path, Records(tmp_path), replace(SMALL, learning_rate=1e-9)
    chain = learn(NAIVE)
    assert chain.is_whole
    assert chain.collapsed == ["mnist", "fashion_mnist"]


def test_a_vae_learns_where_the_strategy_needs_one(learn):
    chain = learn(Method("cl_vae", {"kind": "cl_vae", "count": 40}), TASKS[:1])
    assert "vae_1_fil_4" in str(chain.steps[-1].folder)
    assert chain.average > 0


def test_halves_are_of_classes_and_of_rows_where_classes_are_many():
    few, many = np.array([0, 9, 4, 5]), np.array([900, 3, 1, 2])
    assert in_half(1, 4, few).tolist() == [True, False, True, False]
    assert in_half(1, 4, many).tolist() == in_half(1, 4, None).tolist() == [True, True, False, False]
    assert (in_half(1, 4, few) ^ in_half(2, 4, few)).all()


def test_halves_of_a_set_are_all_of_it(course):
    sizes = [len(np.load(course._dataset(name).path)["x_train"]) for name in ("mnist.1", "mnist.2")]
    assert sum(sizes) == SMALL.images
    assert min(sizes) > 20


def test_files_that_are_gone_are_made_again_where_they_are_needed(kept, course, learn, capsys):
    whole = learn(CARDS, TASKS[::-1][:2])
    shutil.rmtree(whole.steps[0].place)
    assert learn(CARDS, TASKS[::-1][:2]).matrix() == whole.matrix()
    assert not whole.steps[0].place.exists()  # figures alone want no files
    capsys.readouterr()
    longer = learn(CARDS, TASKS[::-1])
    assert longer.matrix()[:2] == whole.matrix()
    told = " ".join(capsys.readouterr().out.split())
    assert told.count("once more") == 2
    assert "in the record" not in told  # they came out as the first time
