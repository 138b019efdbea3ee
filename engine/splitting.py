"""When a capture is split, and where: shards begin with a chunk, so every card comes out as it would in one piece."""

import time
from collections.abc import Callable
from itertools import pairwise

from engine.making import iterate
from engine.passes import Passes
from engine.sources import Source
from engine.work import Work
from flashcards.contract.shards import Shard

LEAST_CHUNKS = 64  # to look at two of them costs little beside the rest
LEAST_SECONDS = 30.0  # of a shard: to stage it, and to join what it made, takes about one


def shards_of(work: Work, passes: Passes, source: Source, r: int, chunk: int, stop: Callable[[], bool]) -> list[Shard]:
    """One of them: it is not split. Nor is what an earlier attempt has begun in one piece."""
    spec = work.spec
    ways = 1 if work.resume is not None else work.shards
    if ways > 1 and spec.shards == "auto":
        ways = min(ways, int(_seconds(spec.count, passes, source, r, chunk, stop) / LEAST_SECONDS))
    return cut(spec.count, chunk, ways)


def cut(count: int, chunk: int, ways: int) -> list[Shard]:
    """As even as whole chunks allow."""
    chunks = -(-count // chunk)
    ways = max(1, min(ways, chunks))
    edges = [chunks * number // ways * chunk for number in range(ways)] + [count]
    return [Shard(first=first, count=last - first) for first, last in pairwise(edges)]


def _seconds(count: int, passes: Passes, source: Source, r: int, chunk: int, stop: Callable[[], bool]) -> float:
    """That one worker would take, from the second chunk: the first also pays for what is done once."""
    chunks = -(-count // chunk)
    if chunks < LEAST_CHUNKS:
        return 0.0
    for number in range(2):
        began = time.perf_counter()
        iterate(passes, source.start(number * chunk, chunk), r, lambda _: None, stop)
    return chunks * (time.perf_counter() - began)
