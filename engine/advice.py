"""How many passes to take, and why, from what each pass did to the cards.

P1 of the paper: the largest step of any card is below the smallest error on real images, gamma2 < eps1. P2: the
distance of the latents from the data's, FLSD, is at its first minimum. P2 decides, because further passes keep P1 and
lose P2; whether P1 holds there as well is said.
"""

from dataclasses import dataclass

from engine.choice import PAPER_R
from engine.sweep import first_minimum


@dataclass(frozen=True)
class Advice:
    recommended_r: int
    reason: str
    p1_from: int | None = None
    p2_at: int | None = None


def advise(
    gamma2: list[float], flsd: list[float] | None, eps1: float | None, against: str | None, starts_as_image: bool
) -> Advice:
    if flsd is None:
        return _without_a_reference(len(gamma2), starts_as_image)
    r = first_minimum(flsd, start=1 if starts_as_image else 0)
    falling = r == len(flsd) - 1 and flsd[r] < flsd[r - 1]
    p1_from = next((number for number, step in enumerate(gamma2, 1) if step < eps1), None)
    distance = (
        f"FLSD against the {against} was still falling at the last pass looked at, {flsd[r]:.4g}: with a larger max_r "
        "it may fall further"
        if falling
        else f"the first minimum of FLSD against the {against}, {flsd[r]:.4g}, from {flsd[0]:.4g} before any pass"
    )
    words = f"r = {r}: {distance}; {_p1(r, gamma2, eps1, p1_from)}"
    return Advice(r, words, p1_from, None if falling else r)


def _p1(r: int, gamma2: list[float], eps1: float, p1_from: int | None) -> str:
    # Without a pass there is no last step: then the pass that was not taken counts.
    step = gamma2[max(r, 1) - 1]
    if step < eps1:
        return f"P1 holds there: the largest step, {step:.4g}, is below the smallest error on real images, {eps1:.4g}"
    later = (
        f"none of the {len(gamma2)} passes brings it below" if p1_from is None else f"it is below after pass {p1_from}"
    )
    return (
        f"P1 does not hold there: the largest step, {step:.4g}, is not below the smallest error on real images, "
        f"{eps1:.4g}; {later}"
    )


def _without_a_reference(passes: int, starts_as_image: bool) -> Advice:
    unknown = "there is neither a dataset nor a capsule to say how close cards have come"
    if not starts_as_image:
        return Advice(0, f"r = 0: decoded latents are cards before any pass, and {unknown}")
    if passes < PAPER_R:
        return Advice(passes, f"r = {passes}: the paper's {PAPER_R} lies beyond the passes that count, and {unknown}")
    return Advice(PAPER_R, f"r = {PAPER_R}, as in the paper: {unknown}")
