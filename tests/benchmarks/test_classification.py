"""Very small forms of `make bench-classification` and `make reproduce-classification`, on digits of scikit-learn."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import class_speed, classification, reproduce_classification
from benchmarks.class_sequences import HARD, SOFT, ClassLearnt, parts
from benchmarks.classification import (
    WITH,
    WITHOUT,
    cheap,
    methods,
    sessions_of,
    task_gates,
    task_targets,
    tasks_of,
    weighed,
)
from benchmarks.downstream import Downstream
from benchmarks.lab import Made
from flashcards.contract.image import ImageShape
from flashcards.contract.strategies import strategy_spec

NET, AE = "tasknet_width_2_hidden_16_latent_8", "tasknet_ae_width_2_hidden_16_latent_8"
SMALL = "--tests 40 --epochs 2 --side 8 --cards 40 --seeds 0 --threads 1 --batch 16"


def chain(told, untold, seconds=1.0, beside=0.0) -> list[ClassLearnt]:
    """After the last of two tasks."""
    rows = [[{WITH: told[0], WITHOUT: told[0]}], [{WITH: a, WITHOUT: b} for a, b in zip(told, untold, strict=True)]]
    sessions = tasks_of(NET, AE)
    sessions = type(sessions)(**{**vars(sessions), "tasks": ("a", "b")})
    times = {"seconds": seconds, "step_seconds": seconds + beside}
    return [ClassLearnt(sessions, [Made(Path(), {"measures": row, **times}) for row in rows])]


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    """What one test does serves the next."""
    return tmp_path_factory.mktemp("steps")


@pytest.fixture(scope="module")
def sets(digits, tmp_path_factory):
    """Three datasets, with enough images of each class for five sessions."""
    folder = tmp_path_factory.mktemp("sets")
    looks = {"mnist": lambda x: x, "fashion_mnist": lambda x: 255 - x, "cifar10": lambda x: np.stack([x, x // 2, x], 3)}
    for name, look in looks.items():
        arrays = {f"x_{split}": look(digits[f"x_{split}"][:500]) for split in ("train", "test")}
        arrays |= {f"y_{split}": digits[f"y_{split}"][:500] for split in ("train", "test")}
        np.savez(folder / f"{name}.npz", **arrays)
    return folder


@pytest.fixture
def bench(steps, sets, monkeypatch, capsys):
    monkeypatch.setenv("FLASHCARDS_DATA", str(sets))

    def go(main, words):
        code = main([*SMALL.split(), "--folder", str(steps), *words.split()])
        return code, " ".join(capsys.readouterr().out.split())

    return go


@pytest.mark.slow
def test_tasks_get_their_figures_and_the_gates_decide(bench):
    words = f"--images 100 --architecture {NET} --autoencoder {AE} --strategies flashcards,naive"
    code, told = bench(classification.main, words)
    assert "100.0 %" in told
    assert told.count("gate:") == 1
    assert told.count("target:") == 1 + 1
    assert code == (1 if "FAILS" in told.partition("target:")[0] else 0)
    again = bench(classification.main, words)[1]
    assert "100.0 %" not in again  # what is done is kept
    assert again.split("strategy", 1)[1] == told.split("strategy", 1)[1]


def test_sessions_are_parts_of_one_dataset(bench):
    words = f"--bar sessions --images 90 --architecture {NET} --autoencoder blk_1_fil_4 --strategies naive"
    code, told = bench(classification.main, words)
    assert "cifar10@1 -> cifar10@2" in told
    assert code == 0


def test_gates_and_targets_by_hand():
    found = {"flashcards": chain((0.8, 0.9), (0.7, 0.8), 3.9), "naive": chain((0.5, 0.9), (0.1, 0.9))}
    assert [holds for _, holds in task_gates(found)] == [True]
    assert cheap(found)[0] == ("training of flashcards costs 3.90 of naive's, its jobs 3.90", True)
    (naive, best) = task_targets(found)
    assert naive == ("without task id +25.0 points to naive, at least +10", True)
    assert best[1]
    dear = found | {"flashcards": chain((0.8, 0.9), (0.4, 0.6), 4.1)}
    assert [holds for _, holds in task_gates(dear)] == [False]
    assert [holds for _, holds in cheap(dear)] == [False, True]
    slow = found | {"flashcards": chain((0.8, 0.9), (0.7, 0.8), 3.9, beside=0.2)}
    assert [holds for _, holds in cheap(slow)] == [False, True]


def test_costs_are_measured_in_one_run_of_which_nothing_is_kept(bench, steps):
    before = sorted(steps.rglob("*"))
    code, told = bench(
        classification.main,
        f"--bar cost --images 60 --tests 20 --architecture {NET} --autoencoder {AE} --strategies naive,lwf",
    )
    assert told.count("gate:") == 2
    assert code == (1 if "FAILS" in told else 0)
    assert sorted(steps.rglob("*")) == before


def test_every_strategy_of_the_issue_can_be_asked_for():
    found = {name: strategy_spec.validate_python(method.config) for name, method in methods(1000, 7500).items()}
    kinds = {"flashcards", "naive", "joint", "coreset", "ewc", "si", "lwf", "vae_replay", "imm", "eeil", "agem"}
    assert {strategy.kind for strategy in found.values()} == kinds
    assert {method.config["kind"] for method in weighed().values()} == {"ewc", "si", "lwf"}
    assert {method.config["kind"] for method in weighed("sessions").values()} == {"ewc", "si"}
    assert methods(1000, 7500)["ewc"].config != methods(1000, 7500, "sessions")["ewc"].config
    one, other = weighed()["si-1"], weighed()["si-1000"]
    assert (one.at(1), other.at(1), other.at(2)["weight"]) == ({"kind": "si"}, {"kind": "si"}, 1000)
    assert found["flashcards"] == strategy_spec.validate_python({"kind": "flashcards", "count": 1000})  # the default
    assert (found["paper"].by_class, found["by_class"].by_class) == (False, True)
    assert (found["paper"].loss, found["local_distill"].loss) == ("soft_labels", "local_distill")
    assert (found["coreset 10 %"].size, found["coreset 1 %"].size) == (750, 75)
    assert tasks_of(NET, AE).key.startswith("task_incremental-44136f/")  # steps that are done go by this name
    assert tasks_of(NET, AE, maker_epochs=3).key != tasks_of(NET, AE).key
    assert len(sessions_of("resnet18", "blk_4_fil_64", HARD).tasks) == len(SOFT) == len(parts("cifar10", 5))


@pytest.mark.slow
def test_weights_of_baselines_are_tried_beside_each_other(bench):
    words = f"--bar weights --images 100 --architecture {NET} --autoencoder {AE} --strategies si-1,si-1000"
    code, told = bench(classification.main, words)
    assert (code, "gate" in told) == (0, False)
    assert told.count("task 1:") == 1  # the weight counts from the second task on
    assert "si-1000" in told.split("strategy", 1)[1]


@pytest.mark.slow
def test_what_was_tried_can_be_tried_again(bench):
    """Two tasks after the first: what a trial keeps of one is there for the next."""
    words = f"--bar losses --images 100 --architecture {NET} --autoencoder {AE} --strategies "
    told = bench(classification.main, words + "flashcards,veiled,held,evenly,sharpened,remembered")[1]
    assert told.count("task 1:") <= 2  # one for all, and that of the trial that has to keep something of it
    assert "remembered" in told.split("strategy", 1)[1]


def test_the_loop_and_the_one_by_hand_take_turns():
    rows, _ = class_speed.bench(NET, ImageShape(8, 8, 3), batch=16, batches=3, epochs=1, rounds=1, threads=1)
    assert [what for what, _, _ in rows][1:3] == ["learn job", "learn job by the loop by hand"]
    assert all(float(figure.split()[0].rstrip("x")) > 0 for _, figure, _ in rows[:3])
    assert float(rows[3][1].rstrip(" %")) < 1  # both learn the same


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_report_has_a_table_of_each(bench, tmp_path):
    words = f"--images 100 --session-images 90 --architecture {NET} --session-architecture {NET} "
    words += f"--session-autoencoder blk_1_fil_4 --docs {tmp_path} --only tasks,hard,hard100"
    assert bench(reproduce_classification.main, words)[0] == 0
    report = (tmp_path / "reproduction-classification.md").read_text()
    assert "| flashcards, as in the paper |" in report
    assert "- 1 seed(s): without task id flashcards" in report
    assert "| mnist | not run | not run | not run | 0.9940" in report
    assert {picture.stem for picture in tmp_path.rglob("*.png")} == {"tasks", "hard"}
    assert "| naive (SFT) | not run: no data |" in report
    assert "67.9, 68.0, 68.1, 65.6, 65.8" in report


@pytest.mark.slow
def test_classifiers_learn_from_what_autoencoders_make_of_images(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(Downstream, "classifier", NET.replace("tasknet", "tasknet_10"))
    monkeypatch.setattr(Downstream, "autoencoder", "blk_1_fil_4")
    code, told = bench(reproduce_classification.main, f"--images 400 --docs {tmp_path} --epochs 12 --only downstream")
    assert code == 0
    assert told.count("downstream/") == 3 * 3
    report = (tmp_path / "reproduction-classification.md").read_text()
    [figures] = [line.split("|")[2:5] for line in report.splitlines() if line.startswith("| mnist |")]
    assert all(figure.strip() == "collapsed" or 0.1 < float(figure) <= 1 for figure in figures)
    assert "collapsed" not in figures[0]


def test_a_report_of_what_is_kept_does_nothing(bench, tmp_path, monkeypatch):
    monkeypatch.delenv("FLASHCARDS_DATA")
    assert bench(reproduce_classification.main, f"--kept --images 101 --docs {tmp_path}")[0] == 0
    report = (tmp_path / "reproduction-classification.md").read_text()
    assert "| agem | not run | not run | not run |" in report
    assert "| flashcards, as in the paper | not run | not run | not run | not run | not run | - | 67.9, 71.4" in report
    assert "| naive (SFT) | not run: no data |" in report
    assert not list(tmp_path.rglob("*.png"))
