"""`make reproduce-continual`: the half of the paper on learning task after task, as docs/reproduction-continual.md.

The same protocol at the size that two cores can do. Every task that is done is kept: stopped, it goes on where it was,
and the figures of all tasks are in docs/reproduction/steps. `--only table3,noise` does some sections; those that are
not done are not in the report.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import continual, paper
from benchmarks.estimates import Tracking, tracking
from benchmarks.lab import Lab, Size, spread, write_report
from benchmarks.real import data_folder
from benchmarks.records import add_places, records_of
from benchmarks.sequences import RECONSTRUCTION, SEQUENCE5, TEN, Course, Learnt, Method, Scenario
from engine.plots import BLUE, DOTS, GREY, STYLE, as_png, drawing

ROOT = Path(__file__).parents[1]
NOISES = (0.1, 0.15, 0.2, 0.25, 0.3)
NAMES = {
    "flashcards": "flashcards from capsules",
    "mazes": "flashcards from mazes, r = 10 (the paper's)",
    "naive": "naive (SFT)",
    "vae_replay": "vae_replay (AE + VAE)",
}
Lines = list[str]


def methods(images: int, cards: int) -> dict[str, Method]:
    """The paper keeps 500 and 5000 images in all, of 50,000 or so a task: the same shares here."""
    ours = continual.methods(images, cards)
    del ours["coreset"]
    others = [
        *(Method(f"coreset {part} %", {"kind": "coreset", "size": max(1, images * part // 100)}) for part in (1, 10)),
        Method("ewc", {"kind": "ewc"}),
        Method("si", {"kind": "si"}),
        Method("cl_vae", {"kind": "cl_vae", "count": cards}),
    ]
    return ours | {method.name: method for method in others}


@dataclass
class Report:
    """The sections, each a few lines of Markdown. Pictures go beside the report."""

    course: Course
    architecture: str
    docs: Path
    cards: int = 5000

    @property
    def methods(self) -> dict[str, Method]:
        return methods(self.course.size.images, self.cards)

    def chains(self, name: str, tasks: tuple[str, ...], scenario: Scenario = RECONSTRUCTION) -> list[Learnt]:
        """One a seed."""
        learn, method = self.course.learn, self.methods[name]
        return [learn(tasks, method, seed, self.architecture, scenario) for seed in self.course.size.seeds]

    def table3(self) -> Lines:
        head = ("strategy", "MB", "reconstruction: MAE", "BWT", "the paper", "denoising: MAE", "BWT", "the paper")
        lines = [
            f"{' -> '.join(SEQUENCE5)}. MB: kept beside the network after the last task (capsules, images, state).",
            "",
            *_head(*head),
        ]
        for name in self.methods:
            theirs = paper.TABLE3.get(name, (None,) * 4)
            plain = self.chains(name, SEQUENCE5)
            noisy = self.chains(name, SEQUENCE5, Scenario("denoising"))
            cells = (_mean(plain, "memory"), *_figures(plain), _pair(*theirs[:2]), *_figures(noisy), _pair(*theirs[2:]))
            lines.append(_row(NAMES.get(name, name), *cells))
        return [*lines, "", *self._curves()]

    def _curves(self) -> Lines:
        shown = {name: self.chains(name, SEQUENCE5)[0] for name in ("flashcards", "mazes", "naive")}
        pictures = [self._picture(chain, "forgetting.png", f"{name}-forgetting.png") for name, chain in shown.items()]
        cards = [self._picture(shown[name], "cards.png", f"{name}-cards.png") for name in ("flashcards", "mazes")]
        return [
            "The error on every task as the learner goes on, and the cards of the last task, first seed.",
            "",
            *_head(*(NAMES[name] for name in shown)),
            _row(*pictures),
            _row(*cards, ""),
        ]

    def sequence3(self) -> Lines:
        lines: Lines = []
        for tasks, theirs in paper.SEQUENCE3.items():
            lines += _head("strategy", *tasks, "average", "BWT", "the paper", "its average")
            for name in ("joint", "naive", "coreset 10 %", "mazes", "flashcards"):
                found = self.chains(name, tasks)
                each = [spread([chain.last[place] for chain in found]) for place in range(len(tasks))]
                told = theirs.get(name)
                beside = (_listed(told), f"{np.mean(told):.4f}") if told else ("-", "-")
                lines.append(_row(NAMES.get(name, name), *each, *_figures(found), *beside))
            lines.append("")
        return [*lines, "The paper prints one joint row under all three orders; it is permuted here with its columns."]

    def noise(self) -> Lines:
        lines = _head("noise", "MAE", "BWT", *SEQUENCE5)
        shown = []
        for noise in NOISES:
            found = self.chains("flashcards", SEQUENCE5, Scenario("denoising", noise))
            each = [spread([chain.last[place] for chain in found]) for place in range(len(SEQUENCE5))]
            lines.append(_row(f"{noise:g}", *_figures(found), *each))
            if noise in (NOISES[0], NOISES[-1]):
                shown.append(self._seen(found[0], noise))
        return [*lines, "", *(line for group in shown for line in group)]

    def _seen(self, chain: Learnt, noise: float) -> Lines:
        first, last = (
            self._picture(chain, f"reconstructions-{number}.png", f"noise-{noise:g}-{task}.png")
            for number, task in ((1, SEQUENCE5[0]), (len(SEQUENCE5), SEQUENCE5[-1]))
        )
        return [*_head(f"{SEQUENCE5[0]} after all tasks, noise {noise:g}", SEQUENCE5[-1]), _row(first, last), ""]

    def ten(self) -> Lines:
        lines = _head("strategy", "MAE", "BWT", "MB", "times joint")
        joint = np.mean([chain.average for chain in self.chains("joint", TEN)])
        for name in ("joint", "flashcards", "naive"):
            found = self.chains(name, TEN)
            times = np.mean([chain.average for chain in found]) / joint
            lines.append(_row(NAMES.get(name, name), *_figures(found), _mean(found, "memory"), f"{times:.2f}"))
        picture = self._picture(self.chains("flashcards", TEN)[0], "forgetting.png", "ten-forgetting.png")
        return [
            "Each dataset in two: by class, the lower labels first; Omniglot, with its many, by place.",
            "",
            *lines,
            "",
            picture,
        ]

    def estimates(self) -> Lines:
        """Of all that is kept, so after the others."""
        for name in ("flashcards", "mazes"):
            self.chains(name, SEQUENCE5)
        if self.course.planning:
            return []
        found, picture = tracking(self.course.records.every()), self._pictures / "estimates.png"
        picture.parent.mkdir(parents=True, exist_ok=True)
        picture.write_bytes(scatter(found))
        return [
            "What a learner says of its own forgetting without an image, against what test images say: M[i][j] -",
            "M[j][j], over all runs with cards that are kept.",
            "",
            *(f"- {line}" for line in found.told()),
            "",
            _shown(picture, self.docs),
        ]

    def naive(self) -> Lines:
        lines = [
            "The paper's SFT row, 0.552, is at the level of networks that collapsed. Here every run says on which",
            "tasks it told images apart no better than one constant image: where there is none, it merely forgot.",
            "",
            *_head("seed", "collapsed on", "MAE", "BWT", "when learnt", "after the last task"),
        ]
        for seed, chain in zip(self.course.size.seeds, self.chains("naive", SEQUENCE5), strict=True):
            learnt = [row[-1] for row in chain.matrix()]
            cells = (*_figures([chain]), _listed(learnt), _listed(chain.last))
            lines.append(_row(str(seed), ", ".join(chain.collapsed) or "none", *cells))
        return lines

    @property
    def _pictures(self) -> Path:
        return self.docs / "reproduction" / "continual"

    def _picture(self, chain: Learnt, made: str, name: str) -> str:
        """Of the last step; a chain that diverged has none."""
        target = self._pictures / name
        kept = self.course.keep_picture(chain.steps[-1], made, target)
        return _shown(target, self.docs) if kept else "-"


SECTIONS: dict[str, tuple[str, Callable[[Report], Lines]]] = {
    "table3": ("Reconstruction and denoising of five datasets (Table 3)", Report.table3),
    "naive": ("Learning without any memory", Report.naive),
    "sequence3": ("Three datasets in three orders", Report.sequence3),
    "noise": ("More noise", Report.noise),
    "ten": ("Ten tasks", Report.ten),
    "estimates": ("Forgetting, estimated without data", Report.estimates),
}


def scatter(found: Tracking) -> bytes:
    mpl = drawing()
    with mpl.rc_context(STYLE):
        figure = mpl.Figure(figsize=(6, 5.2), dpi=DOTS, layout="constrained")
        axes = figure.subplots()
        true, estimated = ([getattr(pair, side) for pair in found.pairs] for side in ("true", "estimated"))
        axes.scatter(true, estimated, s=18, color=BLUE, alpha=0.6, linewidths=0)
        ends = [min([*true, *estimated, 0]), max([*true, *estimated, 0])]
        axes.plot(ends, ends, color=GREY, linewidth=1, linestyle="--")
        axes.set_xlabel("forgetting on test images, MAE")
        axes.set_ylabel("estimated from cards")
        axes.set_title(f"{len(found.pairs)} pairs, rank correlation {found.over_pairs:.2f}")
        return as_png(mpl, figure)


def _head(*columns: str) -> Lines:
    return [_row(*columns), _row(*["---"] * len(columns))]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _figures(found: list[Learnt]) -> tuple[str, str]:
    if any(chain.diverged for chain in found):
        return "diverged", "-"
    return spread([chain.average for chain in found]), spread([chain.bwt for chain in found], "+")


def _mean(found: list[Learnt], figure: str) -> str:
    return f"{np.mean([getattr(chain, figure) for chain in found]):.2f}"


def _pair(mae: float | None, bwt: float | None) -> str:
    return "-" if mae is None else f"{mae:.3f}" if bwt is None else f"{mae:.3f}, {bwt:+.2f}"


def _listed(values: list[float] | tuple[float, ...]) -> str:
    return ", ".join(f"{value:.4f}" for value in values)


def _shown(picture: Path, docs: Path) -> str:
    return f"![{picture.stem}]({picture.relative_to(docs).as_posix()})"


def write(report: Report, names: list[str]) -> Path:
    size = report.course.size
    steps = report.course.records.link(size.name, report.docs)
    head = [
        "# The paper, reproduced: learning task after task",
        "",
        "Made by `make reproduce-continual` from real data, with the learn jobs of this tree. Test MAE after the last",
        f"task, mean and deviation over {len(size.seeds)} seed(s); {report.architecture}, {size.image}, {size.images}",
        f"training and {size.tests} test images a dataset, {size.epochs} epochs a task without early stop,",
        f"{report.cards} cards or draws in all. The paper has blk_4_fil_64, 50,000 to 60,000 images, 100 epochs and 5",
        f"runs. Figures of every step, and the commit that made it: {steps}.",
        "The other half, on capture, is in [reproduction.md](reproduction.md), made by `make reproduce-capture`.",
    ]
    sections = [(SECTIONS[name][0], SECTIONS[name][1](report)) for name in names]
    return write_report(report.docs / "reproduction-continual.md", head, sections)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reproduce_continual", description=__doc__)
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, as in table3,noise")
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
    report = Report(
        Course(asked.folder, data_folder(), size, records=records_of(asked)), architecture, asked.docs, asked.cards
    )
    names = asked.only.split(",")

    def experiment(_: Lab) -> None:
        for name in names:
            SECTIONS[name][1](report)

    report.course.walk(experiment)
    report.course.console.print(f"wrote {write(report, names)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
