"""`make bench-capture`: every bar of capture in one run, each as a ratio.

fidelity    how well a network that learnt from cards alone does on real images (benchmarks.fidelity)
counts      parameters and latents of the paper's six architectures
speed       passes and training steps against the plain loops (benchmarks.capture_speed)
cost        a capture through the API against the engine alone (benchmarks.capture_cost)

`--bar speed,cost` does some of them. Other options are those of fidelity, whose done cells are kept: stopped, it goes
on where it was. Speed and cost want a machine that does nothing else, two to five minutes each.
"""

import argparse
import math
import sys
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from benchmarks import capture_cost, capture_speed, fidelity, paper
from flashcards.contract.architecture import architecture_spec
from flashcards.contract.image import ImageShape

IMAGE = ImageShape(32, 32, 3)

console = Console()


def count() -> int:
    table = Table("architecture", "parameters; latent", "the paper")
    wrong = 0
    for name, (parameters, *_) in paper.ARCHITECTURES.items():
        architecture = architecture_spec.validate_python(name)
        ours = architecture.parameters(IMAGE), math.prod(architecture.latent_shape(IMAGE))
        theirs = parameters, paper.LATENTS[name]
        wrong += ours != theirs
        table.add_row(name, *("{:,}; {:,}".format(*each) for each in (ours, theirs)))
    console.print(table)
    console.print(f"gate, parameters and latents as in the paper: {'FAILS' if wrong else 'holds'}")
    return 1 if wrong else 0


BARS: dict[str, Callable[[list[str]], int]] = {
    "fidelity": fidelity.main,
    "counts": lambda _: count(),
    "speed": lambda _: capture_speed.main([]),
    "cost": lambda _: capture_cost.main([]),
}


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.capture", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bar", default=",".join(BARS), help="some of them, as in speed,cost")
    asked, others = parser.parse_known_args(sys.argv[1:] if words is None else words)
    missed = []
    for name in asked.bar.split(","):
        if name not in BARS:
            parser.error(f"there is no bar {name!r}: {', '.join(BARS)}")
        console.rule(name)
        if BARS[name](others):
            missed.append(name)
    console.print(f"gates missed: {', '.join(missed)}" if missed else "every gate holds")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
