"""How well a network that learnt from cards alone does on real images, as a ratio to its parent: the first bar of
`make bench-capture`.

Cards as many as training images; the same budget for parent and child. Sources: the capsule (the checkpoint and 66 KB
kept from the data), latents (the checkpoint alone), mazes with r = 10 (the paper's way). Every cell that is done is
kept, so the command can be stopped and goes on where it was; its figures are in docs/reproduction/steps.
"""

import argparse
import statistics
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.lab import Lab, Made, Size, spread
from benchmarks.real import data_folder
from benchmarks.records import add_places, records_of

ROOT = Path(__file__).parents[1]
ARCHITECTURE = "blk_4_fil_32"
DATASETS = {"mnist": (1.20, 1.30, 2.67), "fashion_mnist": (1.15, 1.25, 1.70), "cifar10": (1.12, 1.12, 1.22)}
SOURCES = {"capsule": "auto", "latent": "auto", "maze": 10}


def ratios(lab: Lab, dataset: str, source: str, architecture: str = ARCHITECTURE) -> list[float]:
    """child / parent on the test images, one a seed."""
    return [
        child(lab, dataset, source, seed, architecture).test_mae / parent(lab, dataset, seed, architecture).test_mae
        for seed in lab.size.seeds
    ]


def parent(lab: Lab, dataset: str, seed: int, architecture: str = ARCHITECTURE) -> Made:
    return lab.train(dataset, architecture, seed)


def child(lab: Lab, dataset: str, source: str, seed: int, architecture: str = ARCHITECTURE) -> Made:
    taught = parent(lab, dataset, seed, architecture)
    cards = lab.capture(taught, source, seed, SOURCES.get(source, 10))
    return lab.distill(cards, taught, dataset, architecture, seed + 100)


def experiment(
    lab: Lab, datasets: list[str], sources: list[str], architecture: str
) -> dict[str, dict[str, list[float]]]:
    return {dataset: {source: ratios(lab, dataset, source, architecture) for source in sources} for dataset in datasets}


def show(console: Console, lab: Lab, datasets: list[str], sources: list[str], architecture: str) -> bool:
    table = Table("dataset", "parent's MAE", *sources, "targets: capsule, latent; the paper's mazes")
    beaten = True
    for dataset, found in experiment(lab, datasets, sources, architecture).items():
        capsule, latent, paper = DATASETS.get(dataset, (float("nan"),) * 3)
        own = [parent(lab, dataset, seed, architecture).test_mae for seed in lab.size.seeds]
        table.add_row(
            dataset,
            spread(own),
            *(spread(found[source]) for source in sources),
            f"{capsule:.2f}, {latent:.2f}; {paper:.2f}",
        )
        # By default cards start from the capsule where there is one, and from latents where there is none.
        ours = [statistics.mean(found[source]) for source in sources if source != "maze"]
        if ours and "maze" in sources:
            beaten = beaten and max(ours) < statistics.mean(found["maze"])
    console.print(table)
    console.print(
        f"{architecture}, {lab.size.images} images, {lab.size.epochs} epochs, seeds {lab.size.seeds}; "
        "gate, the default source below mazes on every set, with a capsule and without one: "
        f"{'holds' if beaten else 'FAILS'}"
    )
    return beaten


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity", description=__doc__)
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--sources", default=",".join(SOURCES))
    parser.add_argument("--architecture", default=ARCHITECTURE)
    parser.add_argument("--images", type=int, default=Size.images)
    parser.add_argument("--tests", type=int, default=Size.tests)
    parser.add_argument("--epochs", type=int, default=Size.epochs)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--side", type=int, default=Size.side)
    parser.add_argument("--threads", type=int, default=Size.threads)
    add_places(parser)
    asked = parser.parse_args(words)
    seeds = tuple(map(int, asked.seeds.split(",")))
    size = Size(asked.images, asked.tests, asked.epochs, seeds, asked.side, asked.threads)
    datasets, sources = asked.datasets.split(","), asked.sources.split(",")
    lab = Lab(asked.folder, data_folder(), size, records=records_of(asked))
    lab.walk(lambda lab: experiment(lab, datasets, sources, asked.architecture) and None)
    return 0 if show(lab.console, lab, datasets, sources, asked.architecture) else 1


if __name__ == "__main__":
    raise SystemExit(main())
