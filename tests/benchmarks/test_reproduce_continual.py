"""A very small form of `make reproduce-continual`, on digits that come with scikit-learn."""

from dataclasses import replace

import pytest

from benchmarks import reproduce_continual
from benchmarks.lab import Size
from benchmarks.reproduce_continual import SECTIONS, Report, methods, write
from benchmarks.sequences import Course

SMALL = Size(images=40, tests=10, epochs=1, seeds=(0,), side=8, threads=1, learning_rate=0.01)
TASKS = ("mnist", "svhn")
FEW = ("flashcards", "mazes", "naive", "joint", "coreset 10 %")


@pytest.fixture
def report(tmp_path, digit_sets, monkeypatch):
    monkeypatch.setattr(reproduce_continual, "SEQUENCE5", TASKS)
    monkeypatch.setattr(reproduce_continual, "TEN", TASKS)
    monkeypatch.setattr(reproduce_continual, "NOISES", (0.1,))
    monkeypatch.setattr(reproduce_continual.paper, "SEQUENCE3", {TASKS: {"joint": (0.25, 0.75)}})
    some = {name: method for name, method in methods(40, 20).items() if name in FEW}
    monkeypatch.setattr(reproduce_continual, "methods", lambda images, cards: some)
    return Report(Course(tmp_path / "steps", digit_sets, SMALL), "blk_1_fil_4", tmp_path / "docs", cards=20)


def do_all(report):
    for name in SECTIONS:
        SECTIONS[name][1](report)


def test_every_section_can_be_planned_for_several_seeds(report):
    report.course.size, report.course.planning = replace(SMALL, seeds=(0, 1, 2)), True
    do_all(report)
    whole = len(report.course.planned)
    assert whole == 3 * 16
    assert not report.course.folder.exists()


@pytest.mark.slow
def test_every_section_is_written_and_its_pictures_are_there(report):
    report.course.walk(lambda _: do_all(report))
    text = write(report, list(SECTIONS)).read_text()
    assert all(title in text for title, _ in SECTIONS.values())
    assert "0.053, -0.03" in text  # the paper's own beside ours
    assert "0.2500, 0.7500 | 0.5000" in text
    assert "nan" not in text.replace("correlation nan over", "")
    named = [part.split(")")[0] for part in text.split("](reproduction/")[1:]]
    assert len(named) >= 8
    assert all((report.docs / "reproduction" / name).exists() for name in named)


def test_every_row_of_the_paper_has_a_strategy():
    assert set(reproduce_continual.paper.TABLE3) <= set(methods(3000, 5000))
    assert methods(3000, 5000)["coreset 1 %"].config["size"] == 30


def test_each_order_of_three_averages_as_the_paper_prints_it():
    printed = {"mazes": [0.0409, 0.0381, 0.0411], "naive": [0.0482, 0.1317, 0.0689], "joint": [0.0342] * 3}
    for name, averages in printed.items():
        rows = [found[name] for found in reproduce_continual.paper.SEQUENCE3.values()]
        assert [sum(row) / 3 for row in rows] == pytest.approx(averages, abs=1e-4)  # rounded there, or cut
