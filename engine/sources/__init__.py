"""P(M): where cards start. A source is a function of (seed, card number) and of nothing else."""

from engine.sources.maze import mazes

SOURCES = {"maze": mazes}
AUTO = "maze"  # the paper's choice: it did better there than noise and than geometric patterns


def resolve(source: str) -> str:
    return AUTO if source == "auto" else source
