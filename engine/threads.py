"""How many threads a training is worth.

Threads meet after every layer. Where a layer takes less than a tenth of a millisecond, the meeting costs more than it
saves, and on a machine that has other work each waits for the one that the system has put aside: measured with two busy
cores, blk_2_fil_16 on 16x16 images learns 1,390 images a second with one thread and 760 with two.

Told by the work alone, never by the load: the same job ends with the same bits on the next attempt.
"""

from engine.models.blk import multiplications
from engine.work import Work

A_THREAD = 2**28  # multiplications of one step, forward and back, that keep one thread busy for about ten milliseconds
BACK_AND_FORTH = 3  # a pass backward is twice one forward


def worth(work: Work) -> int:
    """At most as many as there are. All of them where the size of a step is not known."""
    step = _step(work)
    return work.threads if step is None else max(1, min(work.threads, step // A_THREAD))


def _step(work: Work) -> int | None:
    if work.spec.kind not in ("train", "distill", "learn"):
        return None
    architecture = work.learner.architecture if work.learner else work.spec.architecture
    image = (work.dataset and work.dataset.input) or (work.model and work.model.input)
    if image is None or architecture.family != "blk":
        return None
    return BACK_AND_FORTH * work.spec.batch_size * multiplications(architecture, image)
