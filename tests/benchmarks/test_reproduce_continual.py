"""A very small form of `make reproduce-continual`, on digits that come with scikit-learn."""

import shutil
from dataclasses import replace

import pytest

from benchmarks import continual, continual_report, reproduce_continual
from benchmarks.continual_report import SECTIONS, Report, methods
from benchmarks.lab import Size
from benchmarks.reports import NOT_RUN
from benchmarks.reproduce_continual import write
from benchmarks.sequences import Course

SMALL = Size(images=40, tests=10, epochs=1, seeds=(0,), side=8, threads=1, learning_rate=0.01)
TASKS = ("mnist", "svhn")
FEW = ("flashcards", continual.EQUAL, "mazes", "naive", "joint", continual.AT_PAR, "coreset 10 %")


@pytest.fixture
def report(tmp_path, digit_sets, monkeypatch):
    monkeypatch.setattr(continual_report, "SEQUENCE5", TASKS)
    monkeypatch.setattr(continual_report, "TEN", TASKS)
    monkeypatch.setattr(continual_report, "NOISES", (0.1,))
    monkeypatch.setattr(continual_report.paper, "SEQUENCE3", {TASKS: {"joint": (0.25, 0.75)}})
    some = {name: method for name, method in methods(40, 20).items() if name in FEW}
    tried = {name: method for name, method in continual.tried(20).items() if name in (continual.EQUAL, "weight 2")}
    monkeypatch.setattr(continual_report, "methods", lambda images, cards: some)
    monkeypatch.setattr(continual, "tried", lambda cards: tried)
    return Report(Course(tmp_path / "steps", digit_sets, SMALL), "blk_1_fil_4", tmp_path / "docs", cards=20)


def do(report, *names):
    report.course.kept_only = False
    report.course.walk(lambda _: [SECTIONS[name][1](report) for name in names] and None)


def test_every_section_can_be_planned_for_several_seeds(report):
    report.course.size, report.course.planning = replace(SMALL, seeds=(0, 1, 2)), True
    for _, tell in SECTIONS.values():
        tell(report)
    whole = len(report.course.planned)
    assert whole == 3 * (22 + 1)
    assert not report.course.folder.exists()


@pytest.mark.slow
def test_every_section_is_written_and_its_pictures_are_there(report):
    do(report, *SECTIONS)
    text = write(report).read_text()
    assert all(title in text for title, _ in SECTIONS.values())
    assert "0.053, -0.03" in text  # the paper's own beside ours
    assert "0.2500, 0.7500 | 0.5000" in text
    assert "Better on both, in the mean of 1 seed(s)" in text
    assert text.count(": holds") + text.count(": missed") >= 8
    assert "nan" not in text.replace("correlation nan over", "")
    assert NOT_RUN not in text.partition("*not run*")[2]
    named = [part.split(")")[0] for part in text.split("](reproduction/")[1:]]
    assert len(named) >= 8
    assert all((report.docs / "reproduction" / name).exists() for name in named)


def test_what_is_not_kept_is_not_run_and_nothing_is_done_for_the_report(report):
    report.course.data = report.course.folder / "no data"
    text = write(report).read_text()
    nothing = " | ".join([NOT_RUN] * 5)
    assert f"| naive (SFT) | {nothing} | 0.552, -0.64 | not run | not run | 0.547, -0.63 |" in text
    assert all(NOT_RUN in section for section in text.split("\n## ")[1:])
    assert "0 tasks learnt in 0 minutes of work, by the code of none yet" in text
    assert "nan" not in text
    assert not (report.course.folder / SMALL.name).exists()


def test_a_part_of_it_says_how_large_a_part_it_is(report):
    do(report, "naive")
    report.course.size = replace(SMALL, seeds=(0, 1))
    text = write(report, "--only naive --seeds 0,1").read_text()
    (naive,) = [line for line in text.splitlines() if line.startswith("| naive (SFT) |") and "0.552" in line]
    assert "(1 of 2 seeds)" in naive
    assert "| 1 | not run | not run | not run | not run | not run |" in text
    assert "2 tasks learnt" in text
    assert f"by the code of `{report.course.records.commits(SMALL.name, report.course.used)[0]}`" in text
    assert "1 epochs a task in batches of 16" in text
    assert 'REPRODUCE="--only naive --seeds 0,1"' in text
    assert "naive-forgetting.png" in text


def test_pictures_that_were_taken_stay_when_the_files_of_their_steps_are_gone(report):
    do(report, "naive")
    first = write(report).read_text()
    assert "naive-forgetting.png" in first
    shutil.rmtree(report.course.folder / SMALL.name)
    assert write(report).read_text() == first
    assert not (report.course.folder / SMALL.name).exists()


def test_a_report_can_be_written_where_there_is_no_data(tmp_path, monkeypatch):
    monkeypatch.delenv("FLASHCARDS_DATA", raising=False)
    places = ["--folder", str(tmp_path / "steps"), "--docs", str(tmp_path / "docs")]
    assert reproduce_continual.main(["--kept", "--epochs", "5", *places]) == 0
    text = (tmp_path / "docs" / "reproduction-continual.md").read_text()
    assert 'make reproduce-continual REPRODUCE="--kept --epochs 5"' in text
    assert "3000 training and 1000 test images a dataset" in text


def test_every_row_of_the_paper_has_a_strategy():
    assert set(continual_report.paper.TABLE3) <= set(methods(3000, 5000))
    assert methods(3000, 5000)["coreset 1 %"].config["size"] == 30


def test_each_order_of_three_averages_as_the_paper_prints_it():
    printed = {"mazes": [0.0409, 0.0381, 0.0411], "naive": [0.0482, 0.1317, 0.0689], "joint": [0.0342] * 3}
    for name, averages in printed.items():
        rows = [found[name] for found in continual_report.paper.SEQUENCE3.values()]
        assert [sum(row) / 3 for row in rows] == pytest.approx(averages, abs=1e-4)  # rounded there, or cut
