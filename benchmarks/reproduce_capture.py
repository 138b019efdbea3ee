"""`make reproduce-capture`: the single-task half of the paper, beside ours, as docs/reproduction.md and its pictures.

The same protocol at the size that two cores can do. Every step that is done is kept: stopped, it goes on where it was,
and the figures of all steps are in docs/reproduction/steps. `--only table1,passes` does some sections; those that are
not done are not in the report. Table 1 is over all seeds, the rest over the first few: they show directions, and cost
the most.
"""

import argparse
import shlex
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import paper
from benchmarks.lab import Lab, Made, Size, spread
from benchmarks.real import data_folder
from benchmarks.records import add_places, records_of
from benchmarks.reports import Lines, commits, header, row, words_of, write_report
from engine.models.blk import multiplications
from flashcards.contract.architecture import architecture_spec

ROOT = Path(__file__).parents[1]
TABLE1 = ("mnist", "fashion_mnist", "cifar10")
SOURCES: dict[str, int | str] = {"maze": 10, "latent": "auto", "capsule": "auto"}
OTHERS: dict[str, int | str] = {"geometric": 10, "noise": 10}
COUNTS = (250, 500, 1000, 2000)
RETRAINED = [1, 2, 5, 10, 20, 50]

Seeds = tuple[int, ...]


class Report:
    """The sections, each a few lines of Markdown. Pictures go beside the report."""

    def __init__(self, lab: Lab, architecture: str, docs: Path, seeds: Seeds, compared: list[str]) -> None:
        self.lab, self.architecture, self.docs = lab, architecture, docs
        self.pictures = docs / "reproduction"
        self.seeds, self.compared = seeds, compared
        self.again: dict[str, tuple[str, Made]] = {}  # what collapsed, by architecture, and from what it had learnt

    def parents(self, dataset: str, architecture: str | None = None) -> list[Made]:
        return [self._sound(dataset, architecture or self.architecture, seed) for seed in self.seeds]

    def _sound(self, dataset: str, architecture: str, seed: int) -> Made:
        """There is nothing to capture of a network that collapsed: it is trained again, more slowly."""
        return self.lab.train(dataset, architecture, seed, self._rate(dataset, architecture, seed))

    def _rate(self, dataset: str, architecture: str, seed: int) -> float | None:
        """Half of what others learn at, for an architecture that collapsed; None: as others."""
        made = self.lab.train(dataset, architecture, seed)
        if "collapsed" in made.result:
            self.again[architecture] = "on data", made
        return self.lab.size.learning_rate / 2 if architecture in self.again else None

    def _trained_again(self) -> Lines:
        """Which networks those were, and what they were like the first time."""
        size = self.lab.size
        return [
            f"{name} learnt nothing {where} at a learning rate of {size.learning_rate:g}: {made.test_mae:.4f}, and one "
            f"constant image scores {made['test_constant_mae']:.4f}. Shown are trainings at "
            f"{size.learning_rate / 2:g}, on data and on cards."
            for name, (where, made) in self.again.items()
        ]

    def children(
        self,
        dataset: str,
        source: str,
        architecture: str | None = None,
        count: int | None = None,
        ablation: str | None = None,
    ) -> list[Made]:
        """One a seed, from cards of the parent of that seed."""
        found = []
        for seed, parent in zip(self.seeds, self.parents(dataset), strict=True):
            cards = self.lab.capture(parent, source, seed, (SOURCES | OTHERS)[source], count, ablation)
            own = architecture or self.architecture
            rate = self._rate(dataset, own, seed)
            found.append(self.lab.distill(cards, parent, dataset, own, seed + 100, rate))
        return found

    def of_mazes_and_capsule(self, dataset: str, architecture: str | None = None) -> list[list[Made]]:
        return [self.children(dataset, source, architecture) for source in ("maze", "capsule")]

    def table1(self) -> Lines:
        lines = header("dataset", "original", "mazes, r = 10", "latents", "capsule", "times original", "the paper")
        for dataset in TABLE1:
            parents = self.parents(dataset)
            found = {source: self.children(dataset, source) for source in SOURCES}
            times = ", ".join(f"{_times(children, parents):.2f}" for children in found.values())
            original, cards = paper.TABLE1[dataset]
            theirs = f"{original:.4f}, {cards:.4f}: {cards / original:.2f}"
            lines.append(row(dataset, _told(parents), *map(_told, found.values()), times, theirs))
        return [*lines, "", *self._alphas()]

    def _alphas(self) -> Lines:
        """The other half of the table. An untrained network begins as the original of its seed did."""
        lines = [
            "Weighted alpha of the weights' spectra: close to one another for networks that learnt the same.",
            "",
            *header("dataset", "alpha on original", "alpha on mazes", "alpha on untrained", "the paper"),
        ]
        fresh = [self.lab.untrained_alpha(self.architecture, seed) for seed in self.seeds]
        for dataset in TABLE1:
            found = (
                [each.weighted_alpha for each in made]
                for made in (self.parents(dataset), self.children(dataset, "maze"))
            )
            theirs = ", ".join(f"{alpha:.4f}" for alpha in paper.ALPHA[dataset])
            lines.append(row(dataset, *map(spread, found), spread(fresh), theirs))
        return lines

    def architectures(self) -> Lines:
        lines = header("CIFAR-10", "original", "mazes, r = 10", "capsule", "the paper: original, mazes")
        collapsed: Lines = []
        for name, (_, original, cards) in paper.ARCHITECTURES.items():
            if name not in self.compared:
                lines.append(row(name, *["not run"] * 3, f"{original:.4f}, {cards:.4f}"))
                continue
            own = Report(self.lab, name, self.docs, self.seeds, self.compared)
            found = own.of_mazes_and_capsule("cifar10")
            if fallen := [child for child in found[1] if "collapsed" in child.result and name not in own.again]:
                own.again[name] = "from the capsule", fallen[0]  # its cards are as good as images: it is the rate
                found = own.of_mazes_and_capsule("cifar10")
            lines.append(row(name, _told(own.parents("cifar10")), *map(_told, found), f"{original:.4f}, {cards:.4f}"))
            self.again |= own.again
            collapsed += [
                f"{name} from {source} learnt nothing, though it did on data: such a figure says nothing of the cards."
                for source, children in zip(("mazes", "the capsule"), found, strict=True)
                if any("collapsed" in child.result for child in children)
            ]
        left_out = [name for name in paper.ARCHITECTURES if name not in self.compared]
        remarks = (*map(self._not_run, left_out), *self._trained_again(), *collapsed, *self._collapsed())
        return [*lines, "", *remarks]

    def _not_run(self, name: str) -> str:
        """Why: what it would take, by what the three networks of a row took with the report's own architecture."""
        more = _work(name, self.lab.size) / _work(self.architecture, self.lab.size)
        own = self.parents("cifar10") + self.children("cifar10", "maze") + self.children("cifar10", "capsule")
        minutes = sum(made.seconds for made in own) / 60
        return (
            f"{name} was not run: it is {more:.1f} times the work of {self.architecture}, whose three networks took "
            f"{minutes:.0f} minutes here, so about {more * minutes:.0f}."
        )

    def _collapsed(self) -> Lines:
        constant = statistics.mean(made["test_constant_mae"] for made in self.parents("cifar10"))
        return [
            f"The paper's {name} is a network that learnt nothing: {paper.ARCHITECTURES[name][1]:.4f} in all of its "
            f"five runs, to the fourth digit. The best constant image scores {constant:.4f} on our test images."
            for name in paper.COLLAPSED
        ]

    def distillation(self) -> Lines:
        lines = header("new network", "on data", "from mazes", "from the capsule", "the paper: data, mazes")
        for name, (original, cards) in paper.DISTILLED.items():
            found = self.of_mazes_and_capsule("cifar10", name)
            theirs = f"{original:.4f}, {cards:.4f}"
            lines.append(row(name, _told(self.parents("cifar10", name)), *map(_told, found), theirs))
        return [*lines, "", *self._trained_again()]

    def sources(self) -> Lines:
        lines = header("source", "MNIST", "CIFAR-10")
        for source, r in (SOURCES | OTHERS).items():
            lines.append(
                row(f"{source}, r = {r}", *(_told(self.children(name, source)) for name in ("mnist", "cifar10")))
            )
        return [
            *lines,
            "",
            "The paper: mazes are better than geometric patterns, and pixel noise is of no use.",
            *self._beside(),
        ]

    def _beside(self) -> Lines:
        """Whether that holds here."""
        return [
            f"Here, on {name}, geometric patterns give {_times(self.children(name, 'geometric'), mazes):.2f} and noise "
            f"{_times(self.children(name, 'noise'), mazes):.2f} times the error that mazes do."
            for name, mazes in ((name, self.children(name, "maze")) for name in ("mnist", "cifar10"))
        ]

    def parts(self) -> Lines:
        """What is done to a decoded latent before it is a card, one thing left out at a time."""
        lines = [
            "*step back*: c + (c - f(c)) in place of the decoded latent c. *tones*: pixel values brought to the",
            "distribution that the capsule keeps. *width*: latents drawn wider than the capsule's Gaussian, in all",
            "directions alike.",
            "Test MAE over that of the original.",
            "",
            *header("cards", *TABLE1),
        ]
        rows: list[tuple[str, str, str | None]] = [
            ("capsule: decoded latents", "capsule", "bare"),
            ("capsule, tones", "capsule", "decoded"),
            ("capsule, step back", "capsule", "toneless"),
            ("capsule, step back and tones", "capsule", "narrow"),
            ("capsule, step back, tones and width: the default", "capsule", None),
            ("random latents, decoded", "latent", "bare"),
            ("random latents, step back: the default", "latent", None),
        ]
        for words, source, ablation in rows:
            times = (_times(self.children(name, source, ablation=ablation), self.parents(name)) for name in TABLE1)
            lines.append(row(words, *(f"{each:.3f}" for each in times)))
        return lines

    def counts(self) -> Lines:
        lines = header("how many", *(f"{name}: {what}" for name in ("MNIST", "CIFAR-10") for what in _COUNTED))
        for count in COUNTS:
            cells = []
            for dataset in ("mnist", "cifar10"):
                cells += [self.children(dataset, source, count=count) for source in ("maze", "capsule")]
                cells.append([self.lab.coreset(dataset, self.architecture, count, seed) for seed in self.seeds])
            lines.append(row(str(count), *map(_told, cells)))
        return lines

    def passes(self) -> Lines:
        lines = []
        for dataset in ("svhn", "cifar10"):
            parent = self.lab.train(dataset, self.architecture, self.seeds[0])
            seen = self.lab.analyze(parent, dataset, max(RETRAINED), RETRAINED, self.seeds[0])
            for name in ("curves", "strip", "latents"):
                self._picture(seen, f"{name}.png", f"{dataset}-{name}.png")
            curve = ", ".join(f"{mae:.4f} at r = {r}" for r, mae in (seen.result.get("retrained") or {}).items())
            lines += [
                f"**{dataset}**: {seen['reason']}. P1 from r = {seen['p1_from']}, P2 at r = {seen['p2_at']}. "
                f"Test MAE of a network from cards of each r: {curve}; of the network itself "
                f"{seen['reference_mae']:.4f}.",
                "",
                f"![curves of {dataset}](reproduction/{dataset}-curves.png)",
                f"![cards of {dataset} over r](reproduction/{dataset}-strip.png)",
                "",
            ]
        return lines

    def same_mazes(self) -> Lines:
        for dataset in TABLE1:
            cards = self.lab.capture(self.parents(dataset)[0], "maze", self.seeds[0], 10)
            self._picture(cards, "sheet.png", f"cards-{dataset}.png")
            self._picture(cards, "source.png", "mazes.png")
        shown = (f"![{name}](reproduction/{name}.png)" for name in ("mazes", *(f"cards-{name}" for name in TABLE1)))
        return [*header("mazes", *TABLE1), row(*shown)]

    def _picture(self, made: Made, name: str, shown: str) -> None:
        self.lab.keep_picture(made, name, self.pictures / shown)


_COUNTED = ("mazes", "capsule", "real images")
SECTIONS: dict[str, tuple[str, Callable[[Report], Lines]]] = {
    "table1": ("A new network from cards alone (Table 1)", Report.table1),
    "same_mazes": ("The same mazes through three networks (Figure 3)", Report.same_mazes),
    "passes": ("How many passes (Figure 4)", Report.passes),
    "sources": ("Where cards start", Report.sources),
    "parts": ("What makes cards of latents good", Report.parts),
    "distillation": ("To a smaller and to a larger network", Report.distillation),
    "counts": ("How many cards, beside as many real images", Report.counts),
    "architectures": ("The six architectures", Report.architectures),
}


def _told(made: list[Made]) -> str:
    return spread([each.test_mae for each in made])


def _work(architecture: str, size: Size) -> int:
    return multiplications(architecture_spec.validate_python(architecture), size.image)


def _times(children: list[Made], parents: list[Made]) -> float:
    return statistics.mean(child.test_mae / own.test_mae for child, own in zip(children, parents, strict=True))


@dataclass(frozen=True)
class Edition:
    """What of the report is made, and over how many seeds."""

    names: list[str]
    report: Report
    few: Seeds
    asked: str = ""  # on the command line

    @property
    def command(self) -> str:
        return f'make reproduce-capture REPRODUCE="{self.asked}"' if self.asked else "make reproduce-capture"

    def sections(self) -> list[tuple[str, Lines]]:
        return [(SECTIONS[name][0], SECTIONS[name][1](self._over(name))) for name in self.names]

    def _over(self, name: str) -> Report:
        own = self.report
        seeds = own.seeds if name == "table1" else self.few
        return Report(own.lab, own.architecture, own.docs, seeds, own.compared)


def write(edition: Edition) -> Path:
    report, size = edition.report, edition.report.lab.size
    sections = edition.sections()
    seconds = sum(made.seconds for made in report.lab.used.values())
    head = [
        "# The paper, reproduced: capture",
        "",
        f"Made by `{edition.command}` from real data, with the",
        "jobs of this tree; sections that are missing were not asked for. Test MAE throughout, mean and",
        f"deviation over {len(report.seeds)} seed(s) in Table 1 and {len(edition.few)} elsewhere; where a table does",
        f"not say otherwise {report.architecture}, {size.image}, {size.images} training and {size.tests} test images,",
        f"{size.epochs} epochs in batches of {size.batch} for parent and child, as many cards as training images.",
        "The paper has 50,000 to 60,000 images, 100 epochs and 5 runs.",
        f"{seconds / 60:.0f} minutes of work, each step on {size.threads} of two cores, by the code of",
        f"{commits(report.lab)}. Figures of every step, and the commit that made it:",
        f"{report.lab.records.link(size.name, report.docs)}.",
        "",
        "*latents*: random latents, decoded, from the checkpoint alone. *capsule*: latents drawn around those of the",
        "capsule, which was kept from the data, and as much again wider. Both take one step back from the decoder's",
        "blur, and no pass (r = 0).",
    ]
    return write_report(report.docs / "reproduction.md", head, sections)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reproduce_capture", description=__doc__)
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, as in table1,sources")
    parser.add_argument("--architecture", default="blk_4_fil_32")
    parser.add_argument("--images", type=int, default=Size.images)
    parser.add_argument("--tests", type=int, default=Size.tests)
    parser.add_argument("--epochs", type=int, default=Size.epochs)
    parser.add_argument("--seeds", type=_seeds, default=(0, 1, 2))
    parser.add_argument("--few", type=_seeds, default=(0,), help="seeds of all but Table 1")
    parser.add_argument(
        "--compared", default=",".join(paper.ARCHITECTURES), help="rows of the architectures' table to run"
    )
    parser.add_argument("--threads", type=int, default=Size.threads)
    add_places(parser)
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="where the report goes")
    asked = parser.parse_args(words)
    size = Size(asked.images, asked.tests, asked.epochs, asked.seeds, threads=asked.threads)
    lab = Lab(asked.folder, data_folder(), size, records=records_of(asked))
    report = Report(lab, asked.architecture, asked.docs, asked.seeds, asked.compared.split(","))
    edition = Edition(asked.only.split(","), report, asked.few, shlex.join(words_of(words)))
    lab.walk(lambda _: edition.sections() and None)
    lab.console.print(f"wrote {write(edition)}")
    return 0


def _seeds(text: str) -> Seeds:
    return tuple(map(int, text.split(",")))


if __name__ == "__main__":
    raise SystemExit(main())
