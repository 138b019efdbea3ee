"""`make reproduce-continual`: the half of the paper on learning task after task, as docs/reproduction-continual.md.

The same protocol at the size that two cores can do. Every task that is done is kept: stopped, it goes on where it was,
and the figures of all tasks are in docs/reproduction/steps. `--only table3,noise` does some sections, `--kept` none:
the report has all of them in any case, from what is kept, and says where something was not run.
"""

import argparse
import shlex
from pathlib import Path

from benchmarks import continual
from benchmarks.continual_report import SECTIONS, Report
from benchmarks.lab import Lab, Size
from benchmarks.real import data_folder
from benchmarks.records import add_places, records_of
from benchmarks.reports import Lines, commits, words_of, write_report
from benchmarks.sequences import Course

ROOT = Path(__file__).parents[1]


def write(report: Report, asked: str = "") -> Path:
    """Of what is kept: nothing is done for it."""
    course = report.course
    course.kept_only = True
    course.used.clear()
    sections = [(title, tell(report)) for title, tell in SECTIONS.values()]
    return write_report(report.docs / "reproduction-continual.md", _head(report, asked), sections)


def _head(report: Report, asked: str) -> Lines:
    course, size = report.course, report.course.size
    command = f'make reproduce-continual REPRODUCE="{asked}"' if asked else "make reproduce-continual"
    minutes = sum(made.seconds for made in course.used.values()) / 60
    return [
        "# The paper, reproduced: learning task after task",
        "",
        f"Made by `{command}` from real data, with the learn jobs of this tree;",
        "what says *not run* is not among the kept steps, and is done by the same command without `--kept` or",
        "`--only`. Test MAE after the last task, mean and deviation over",
        f"{len(size.seeds)} seed(s) ({', '.join(map(str, size.seeds))}), or over as many as a cell says;",
        f"{report.architecture}, {size.image}, {size.images} training and {size.tests} test images a dataset,",
        f"{size.epochs} epochs a task in batches of {size.batch} at {size.learning_rate:g}, without early stop,",
        f"{report.cards} cards or draws in all. The paper has blk_4_fil_64, 50,000 to 60,000 images, 100 epochs and 5",
        f"runs. {len(course.used)} tasks learnt in {minutes:.0f} minutes of work, by the code of {commits(course)}.",
        f"Figures of every step: {course.records.link(size.name, report.docs)}.",
    ]


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reproduce_continual", description=__doc__)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--only", default=",".join(SECTIONS), help="sections to do, as in table3,noise")
    what.add_argument("--kept", action="store_true", help="do nothing: write the report of what is kept")
    parser.add_argument("--architecture", help="default: blk_3_fil_32 for 16 pixels, blk_4_fil_32 for 32")
    parser.add_argument("--images", type=int, default=Size.images)
    parser.add_argument("--tests", type=int, default=Size.tests)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--side", type=int, default=16)
    parser.add_argument("--cards", type=int, default=5000)
    parser.add_argument("--threads", type=int, default=Size.threads)
    add_places(parser)
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="where the report goes")
    asked = parser.parse_args(words)
    seeds = tuple(map(int, asked.seeds.split(",")))
    size = Size(asked.images, asked.tests, asked.epochs, seeds, asked.side, asked.threads)
    architecture = asked.architecture or continual.ARCHITECTURES.get(asked.side, continual.ARCHITECTURES[32])
    data = Path() if asked.kept else data_folder()
    course = Course(asked.folder, data, size, records=records_of(asked))
    report = Report(course, architecture, asked.docs, asked.cards)
    names = [] if asked.kept else asked.only.split(",")

    def experiment(_: Lab) -> None:
        for name in names:
            SECTIONS[name][1](report)

    course.walk(experiment)
    course.console.print(f"wrote {write(report, shlex.join(words_of(words)))}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
