"""`make reproduce-classification`: the half of the paper on classes, as docs/reproduction-classification.md.

The same protocol at the size that two cores can do. Every step that is done is kept: stopped, it goes on where it was,
and the figures of all steps are in docs/reproduction/steps. `--only tasks,downstream` does some sections, `--kept`
none: the report has all of them in any case, from what is kept, and says where something was not run.
"""

import argparse
import shlex
from pathlib import Path

from benchmarks.class_report import SECTIONS, Report
from benchmarks.class_sequences import ClassCourse
from benchmarks.classification import SESSION_IMAGES
from benchmarks.downstream import Downstream
from benchmarks.kept import Size
from benchmarks.real import data_folder
from benchmarks.records import add_places, records_of
from benchmarks.reports import Lines, commits, words_of, write_report

ROOT = Path(__file__).parents[1]


def write(report: Report, asked: str = "") -> Path:
    """Of what is kept: nothing is done for it."""
    for course in report.courses:
        course.kept_only = True
        course.used.clear()
    sections = [(title, tell(report)) for title, tell in SECTIONS.values()]
    return write_report(report.docs / "reproduction-classification.md", _head(report, asked), sections)


def _head(report: Report, asked: str) -> Lines:
    size, courses = report.course.size, report.courses
    command = f'make reproduce-classification REPRODUCE="{asked}"' if asked else "make reproduce-classification"
    used = [made for course in courses for made in course.used.values()]
    minutes = sum(made.seconds for made in used) / 60
    threads = sorted({made.result["threads"] for made in used if "threads" in made.result}) or [size.threads]
    steps = dict.fromkeys(course.records.link(course.size.name, report.docs) for course in courses if course.used)
    return [
        "# The paper, reproduced: classes",
        "",
        f"Made by `{command}` from real data, with the jobs of this tree;",
        "what says *not run* is not among the kept steps, and is done by the same command without `--kept` or",
        f"`--only`. Mean and deviation over {len(size.seeds)} seed(s), or over as many as a cell says. The paper has",
        "50,000 images a task, 5,000 steps of 256 images a network and task, a whole ResNet18, and 5 runs; the numbers",
        "of its softer sessions are in a work that it cites, and those here are ours.",
        f"{report.cards} cards, draws or images kept, in all. {minutes:.0f} minutes of work, each step on",
        f"{' or '.join(map(str, threads))} of two cores. Figures of every step: {', '.join(steps) or 'none yet'},",
        f"by the code of {commits(*courses)}.",
    ]


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reproduce_classification", description=__doc__)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--only", default=",".join(SECTIONS), help="sections to do, as in tasks,downstream")
    what.add_argument("--kept", action="store_true", help="do nothing: write the report of what is kept")
    parser.add_argument("--architecture", default="tasknet")
    parser.add_argument("--session-architecture", default="resnet18_width_16")
    parser.add_argument("--session-autoencoder", default="blk_4_fil_32")
    parser.add_argument("--side", type=int, default=32)
    parser.add_argument("--images", type=int, default=3000)
    parser.add_argument("--session-images", type=int, default=SESSION_IMAGES)
    parser.add_argument("--tests", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--autoencoder-epochs", type=int, help="of what makes cards; default: half as many")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--cards", type=int, default=1000)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--threads", type=int, default=Size.threads)
    add_places(parser)
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="where the report goes")
    asked = parser.parse_args(words)
    seeds = tuple(map(int, asked.seeds.split(",")))

    def size(images: int, rate: float) -> Size:
        numbers = (images, asked.tests, asked.epochs, seeds, asked.side, asked.threads)
        return Size(*numbers, patience=asked.epochs, batch=asked.batch, learning_rate=rate)

    data = Path() if asked.kept else data_folder()
    report = Report(
        ClassCourse(asked.folder, data, size(asked.images, 1e-3), records=records_of(asked)),
        ClassCourse(asked.folder, data, size(asked.session_images, 1e-2), records=records_of(asked)),
        Downstream(asked.folder, data, size(asked.images, 1e-3), records=records_of(asked)),
        asked.docs,
        asked.architecture,
        asked.session_architecture,
        asked.session_autoencoder,
        asked.cards,
        asked.autoencoder_epochs,
    )
    names = [] if asked.kept else asked.only.split(",")
    for planning in (True, False):
        for course in report.courses:
            course.planning = planning
        for name in names:
            SECTIONS[name][1](report)
    report.course.console.print(f"wrote {write(report, shlex.join(words_of(words)))}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
