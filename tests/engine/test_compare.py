import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from engine.compare import spread
from engine.compare_class_plots import by_session, last_rows
from engine.compare_plots import rise
from engine.errors import NothingLearnt
from engine.run import run
from engine.work import UnitInput, Work
from flashcards.contract.learners import Matrix
from flashcards.contract.results import Memory, Spread
from flashcards.contract.specs import job_spec

LEARNER = "learner_" + "0" * 32
DATASETS = [f"dataset_{number:032x}" for number in (1, 2)]


def unit(strategy: int, seed: int, first: float, forgot: float, **more) -> UnitInput:
    """Two tasks: `first` when it was learnt, worse by `forgot` after the second, whose error is 0.1."""
    last = [first + forgot, 0.1]
    matrix = Matrix(
        learner=LEARNER,
        version=2,
        tasks=["digits", "letters"],
        versions=[1, 2],
        matrix=[[first, None], last],
        estimated=[[None, None]] * 2,
        psnr=[[None, None]] * 2,
        ssim=[[None, None]] * 2,
        average=sum(last) / 2,
        bwt=-forgot,
        fwt=0.3,
        random=[0.5, 0.5],
        before=[None, 0.2],
        memory=Memory(network=1000, capsules=200, images=30, state=4),
        seconds=10.0 + seed,
    )
    return UnitInput(strategy=strategy, seed=seed, matrix=matrix, **more)


@pytest.fixture
def work(folder):
    def work(*units: UnitInput, **fields) -> Work:
        body = {"kind": "compare", "datasets": DATASETS, "strategies": [{"kind": "naive"}, {"kind": "joint"}]}
        return Work(spec=job_spec.validate_python({**body, "seeds": [0, 1], **fields}), out=folder(), units=units)

    return work


def test_the_table_has_mean_and_deviation_over_seeds(work, report, never):
    units = [unit(0, 0, 0.1, 0.2), unit(0, 1, 0.1, 0.4), *(unit(1, seed, 0.1, 0.0, keeps_data=True) for seed in (0, 1))]
    asked = work(*units)
    result = run(asked, report, never).result
    naive, joint = result.table
    assert (naive.kind, naive.seeds, naive.memory, naive.keeps_data) == ("naive", [0, 1], 234, False)
    assert naive.average.mean == pytest.approx(np.mean([0.2, 0.3]))
    assert naive.average.deviation == pytest.approx(np.std([0.2, 0.3], ddof=1))
    assert naive.bwt.mean == pytest.approx(-0.3)
    assert naive.fwt == Spread(mean=0.3, deviation=0.0)
    assert naive.seconds == 10.5
    assert joint.average.mean == pytest.approx(0.1)
    assert joint.keeps_data
    assert (result.tasks, result.seconds) == (["digits", "letters"], 42.0)


def test_files_say_the_same(work, report, never):
    asked = work(unit(0, 0, 0.1, 0.2), unit(1, 0, 0.1, 0.0), seeds=[0])
    outcome = run(asked, report, never)
    assert sorted(product.name for product in outcome.products) == [
        "comparison.png",
        "matrices.png",
        "table.csv",
        "table.json",
    ]
    told = json.loads((asked.out / "table.json").read_text())
    assert told["table"][0]["average"] == {"mean": pytest.approx(0.2), "deviation": None}
    assert told["learners"][0]["matrix"] == [[0.1, None], [pytest.approx(0.3), 0.1]]
    rows = list(csv.DictReader((asked.out / "table.csv").read_text().splitlines()))
    assert [row["strategy"] for row in rows] == ["naive", "joint"]
    assert float(rows[0]["bwt_mean"]) == pytest.approx(-0.2)
    assert rows[0]["bwt_deviation"] == ""
    for name in ("comparison.png", "matrices.png"):
        pixels = np.asarray(Image.open(asked.out / name).convert("L"))
        assert min(pixels.shape) > 200
        assert pixels.std() > 5, "an empty page"


def of_classes(each: UnitInput, without=None) -> UnitInput:
    """The same numbers, as accuracies."""
    told = {"metric": "accuracy", "matrix_without_task_id": without, "ece": [[None, None]] * 2}
    return replace(each, matrix=each.matrix.model_copy(update=told))


def test_the_network_that_makes_cards_counts_as_memory(work, report, never):
    beside = Memory(network=1000, autoencoder=700, capsules=200)
    cards = unit(0, 0, 0.1, 0.0)
    cards = replace(cards, matrix=cards.matrix.model_copy(update={"memory": beside}))
    assert run(work(cards, unit(1, 0, 0.1, 0.0), seeds=[0]), report, never).result.table[0].memory == 900


@pytest.mark.parametrize("without", [None, [[0.4, None], [0.1, 0.3]]])
def test_accuracies_are_drawn_by_task_or_by_session(work, report, never, without):
    units = [of_classes(unit(0, seed, 0.5, -0.2), without) for seed in (0, 1)]
    asked = work(*units, of_classes(unit(1, 0, 0.5, 0.1), without), unit(1, 1, 0.5, 0.0, failed="gone"))
    outcome = run(asked, report, never)
    assert "accuracies.png" in [product.name for product in outcome.products]
    pixels = np.asarray(Image.open(asked.out / "accuracies.png").convert("L"))
    assert pixels.std() > 5, "an empty page"
    np.testing.assert_allclose(last_rows(units, "matrix"), [[30.0, 10.0]] * 2)
    np.testing.assert_allclose(by_session(units), [[50.0, 10.0]] * 2)
    if without:
        np.testing.assert_allclose(last_rows(units[:1], "matrix_without_task_id"), [[10.0, 30.0]])


def test_a_failed_unit_is_shown_and_does_not_count(work, report, never):
    units = [unit(0, 0, 0.1, 0.2), unit(0, 1, 0.9, 0.9, failed="task 2 failed: no memory"), unit(1, 0, 0.1, 0.0)]
    result = run(work(*units, unit(1, 1, 0.1, 0.0)), report, never).result
    row = result.table[0]
    assert (row.seeds, row.average.mean, row.average.deviation) == ([0], pytest.approx(0.2), None)
    assert [(each.seed, each.reason) for each in row.failed] == [(1, "task 2 failed: no memory")]
    assert "naive (seed 1)" in result.notes[-1]


def test_a_strategy_that_failed_altogether_keeps_its_row(work, report, never):
    units = [unit(0, 0, 0.1, 0.2, failed="gone"), unit(1, 0, 0.1, 0.0)]
    row = run(work(*units, seeds=[0]), report, never).result.table[0]
    assert (row.seeds, row.average, row.memory, len(row.failed)) == ([], None, None, 1)


def test_where_all_failed_the_job_says_why(work, report, never):
    with pytest.raises(NothingLearnt, match=r"none of 2 learners .* task 1 failed: no memory"):
        run(work(*(unit(0, seed, 0.1, 0.1, failed="task 1 failed: no memory") for seed in (0, 1))), report, never)


def test_it_says_that_cl_vae_ran_on_another_network(work, report, never):
    strategies = [{"kind": "cl_vae", "count": 50}, {"kind": "naive"}]
    asked = work(unit(0, 0, 0.1, 0.2), unit(1, 0, 0.1, 0.2), seeds=[0], strategies=strategies)
    result = run(asked, report, never).result
    assert [row.architecture for row in result.table] == ["vae_4_fil_32", "blk_4_fil_32"]
    assert result.table[0].label == "cl_vae count=50"
    assert "cl_vae count=50 ran on vae_4_fil_32" in report.notes[0]


def test_what_a_task_no_longer_says_is_left_open():
    assert spread([0.1, None]) is None
    assert spread([]) is None
    assert spread([0.25]) == Spread(mean=0.25)


def test_the_curve_of_forgetting_ends_at_minus_bwt():
    matrix_TT = np.array([[0.1, np.nan, np.nan], [0.3, 0.2, np.nan], [0.5, 0.3, 0.1]])
    bwt = np.mean([0.1 - 0.5, 0.2 - 0.3])
    np.testing.assert_allclose(rise(matrix_TT[None])[0], [0, 0.2, -bwt])
