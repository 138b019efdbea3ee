"""A very small form of `make bench-continual`, on digits that come with scikit-learn."""

import json
from pathlib import Path

import pytest

from benchmarks import continual
from benchmarks.estimates import tracking
from benchmarks.lab import Made
from benchmarks.records import Records
from benchmarks.sequences import Learnt
from flashcards.contract.strategies import strategy_spec

SMALL = "--images 60 --tests 20 --epochs 2 --side 8 --architecture blk_1_fil_4 --cards 40 --seeds 0 --threads 1"


def chain(*matrix):
    rows = [[{"mae": mae, "estimated_mae": mae} for mae in row] for row in matrix]
    return [Learnt(("a", "b"), [Made(Path(), {"measures": row}) for row in rows])]


GOOD, WORSE = chain([0.05], [0.051, 0.05]), chain([0.05], [0.20, 0.04])


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    """What one test does serves the next."""
    return tmp_path_factory.mktemp("steps")


@pytest.fixture
def bench(steps, digit_sets, monkeypatch, capsys):
    monkeypatch.setenv("FLASHCARDS_DATA", str(digit_sets))

    def go(words):
        code = continual.main([*SMALL.split(), "--folder", str(steps), *words.split()])
        return code, " ".join(capsys.readouterr().out.split())

    return go


def test_strategies_get_their_figures_and_the_gates_decide(bench):
    code, told = bench("--datasets mnist,fashion_mnist --strategies flashcards,naive,joint")
    assert "100.0 %" in told
    assert all(f" {name} 0." in told for name in ("flashcards", "naive", "joint"))
    assert told.count("gate:") == told.count("target:") == 2
    assert code == (1 if "FAILS" in told.partition("target:")[0] else 0)


def test_every_strategy_can_be_asked_for():
    found = continual.methods(3000, 5000)
    assert {*continual.GATES, "flashcards", "joint", continual.AT_PAR, "coreset"} == set(found)
    asked = {name: strategy_spec.validate_python(method.at(3)) for name, method in found.items()}
    assert asked["mazes"].r == 10
    assert asked["coreset"].size == 3 * 300
    assert asked[continual.AT_PAR].size == 3 * 3000


@pytest.mark.slow
def test_what_was_tried_can_be_tried_again(bench):
    code, told = bench("--bar plasticity --datasets mnist,fashion_mnist")
    assert code == 0
    assert all(f" {name} 0." in told for name in continual.tried(40))


@pytest.mark.slow
def test_every_trial_changes_something(steps):
    last = [json.loads(path.read_text()) for path in steps.rglob("fashion_mnist+*/result.json")]
    trials = [each for each in last if each["strategy"]["kind"] == "flashcards" and len(each["measures"]) == 2]
    errors = [each["measures"][0]["mae"] for each in trials]
    assert len(set(errors)) == len(errors) >= len(continual.tried(40))


def test_a_gate_that_does_not_hold_fails_the_bench():
    assert all(holds for _, holds in continual.gates({"flashcards": GOOD, "naive": WORSE}))
    assert not any(holds for _, holds in continual.gates({"flashcards": WORSE, "naive": GOOD}))
    planned = [Learnt(("a", "b"))]
    assert not any(holds for _, holds in continual.gates({"flashcards": planned, "naive": GOOD}))


def test_targets_are_told_with_their_figures():
    told = continual.targets({"flashcards": WORSE, "joint": GOOD})
    assert told == [("AvgMAE 2.376 of that of joint, at most 1.06", False), ("BWT -0.1500, at least -0.003", False)]


def test_ten_tasks_are_held_against_joint(bench, monkeypatch):
    assert len(set(continual.TEN)) == 10
    monkeypatch.setattr(continual, "TEN", ("mnist", "fashion_mnist"))
    _, told = bench("--bar ten")
    assert "AvgMAE after ten tasks" in told
    assert "MB, at most 2: holds" in told


def gave(kind, *measures):
    rows = [{"task": str(place), "mae": mae, "estimated_mae": guess} for place, (mae, guess) in enumerate(measures)]
    return {"strategy": {"kind": kind}, "measures": rows}


def test_estimates_are_held_against_the_truth(tmp_path, capsys):
    records = Records(tmp_path / "steps")
    for seed, (true, guess) in enumerate([(0.15, 0.14), (0.12, 0.13), (0.11, 0.11), (0.20, 0.12)]):
        first = f"learn/seed-{seed}/a"
        records.add("size", first, gave("naive", (0.1, 0.1)))
        records.add("size", f"{first}/cards", gave("flashcards", (true, guess), (0.1, 0.1)))
        records.add("size", f"{first}/naive", gave("naive", (0.9, 0.0), (0.1, 0.1)))
    found = tracking(records.every())
    assert [(pair.true, pair.estimated) for pair in found.pairs[:1]] == [pytest.approx((0.05, 0.04))]
    assert len(found.pairs) == len(found.runs) == 4
    assert found.over_pairs == pytest.approx(0.4)  # ranks 3 2 1 4 and 4 3 1 2
    assert continual.main(["--bar", "estimates", "--folder", str(tmp_path)]) == 1
    assert "0.400 over 4 pairs" in capsys.readouterr().out
