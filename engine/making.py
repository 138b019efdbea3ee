"""Cards, chunk by chunk: F_0 ~ P(M),  F_k = f(F_{k-1}),  k = 1 .. r.

Output becomes input, and the pattern takes on the textures that the network knows. Of each pass three numbers are kept,
over all cards: with d_i = mean |F_k,i - F_{k-1},i|, gamma1 = min d_i, gamma2 = max d_i (the bounds of the paper's
equation 3; property P1 compares gamma2 at pass r with the smallest error on real data), and their mean.

Chunks are of one fixed size, the last one filled up with further cards that are dropped. The kernels then see the same
shapes whatever the count is: card i is the same to the bit in any set with this seed.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch

from engine import pictures, standing
from engine.cards import CARDS, CardFile
from engine.errors import Diverged, Stopped
from engine.files import write_whole
from engine.passes import Passes
from engine.sources import Source
from engine.standing import Steps
from engine.work import Product, Report, Work
from flashcards.contract.resources import Progress

SHEET = Product("sheet.png", "image/png")
SOURCE = Product("source.png", "image/png")


def make_cards(
    work: Work,
    passes: Passes,
    source: Source,
    r: int,
    chunk: int,
    report: Report,
    stop: Callable[[], bool],
    show: Callable[[int], list[Product]],
    first: int = 0,
) -> tuple[Steps, float]:
    """Into cards.npy, from card number `first` on; and the seconds it took. Raises Stopped with what there is.

    `show` is told how many there are, and makes the pictures of them.
    """
    spec, model = work.spec, work.model
    card_bytes = model.input.pixels * (4 if spec.dtype == "float32" else 1)
    build = f"{source.name}-{source.version}-{r}-{passes.name}-{work.threads}-{chunk}"
    with CardFile(work.out / CARDS.name, model.input, spec.dtype, model.range) as cards:
        steps = _take_up(work, cards, build, r, report)
        pace = Pace(report, spec.count, r, chunk, cards.count, steps.seconds)
        written, clock = cards.count, Clock(work.resume_seconds)

        def keep() -> None:
            nonlocal written
            if cards.count < spec.count and standing.is_worth_it(cards.count, written, card_bytes):
                with clock.writing():
                    steps.seconds = pace.seconds()
                    report.resume_point(standing.write(work.out / "resume", cards, steps, build), cards.count)
                written = cards.count

        for place in range(cards.count, spec.count, chunk):
            real = min(chunk, spec.count - place)
            made = iterate(passes, source.start(first + place, chunk), r, pace.after_pass, stop)
            if made is None:
                keep()
                break
            x_BCHW, step_RB = made
            step_RB = step_RB[:, :real].cpu().numpy()
            cards_NHWC = x_BCHW[:real].permute(0, 2, 3, 1).cpu().numpy()
            _refuse_infinite(step_RB, cards_NHWC, first + place, r)
            cards.append(cards_NHWC)

            steps.add(step_RB)
            pace.after_chunk(cards.count)
            if clock.is_time():
                keep()

    products = [CARDS, *show(cards.count)] if cards.count else []
    if cards.count < spec.count:
        raise Stopped(f"stopped after {cards.count} of {spec.count} cards", products)
    return steps, pace.seconds()


def _take_up(work: Work, cards: CardFile, build: str, r: int, report: Report) -> Steps:
    steps = None if work.resume is None else standing.take_up(work.resume, cards, build)
    if steps is None and work.resume is not None:
        report.note("an earlier attempt ran on another build: the cards are made anew, so that all are of one")
    return steps or Steps.begin(r)


def save_pictures(work: Work, source: Source, chunk: int, count: int) -> list[Product]:
    """A chunk at a time: as floats, sixty-four large images would not fit."""
    spec, model = work.spec, work.model
    cards_NHWC = np.load(work.out / CARDS.name, mmap_mode="r")
    shown: dict[Product, list[np.ndarray]] = {SOURCE: [], SHEET: []}
    for first in range(0, min(count, pictures.SHEET_CARDS), chunk):
        some_NHWC = np.array(cards_NHWC[first : min(first + chunk, pictures.SHEET_CARDS)])
        source_NHWC = source.start(first, chunk)[: len(some_NHWC)].permute(0, 2, 3, 1).cpu().numpy()
        shown[SOURCE].append(pictures.to_pixels(source_NHWC, model.range))
        shown[SHEET].append(pictures.to_pixels(some_NHWC, (0, 255) if spec.dtype == "uint8" else model.range))
    for product, parts in shown.items():
        write_whole(work.out / product.name, pictures.sheet(np.concatenate(parts)))
    return [SHEET, SOURCE]


@torch.inference_mode()
def iterate(
    passes: Passes,
    x_BCHW: torch.Tensor,
    r: int,
    after_pass: Callable[[int], None],
    stop: Callable[[], bool],
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """F_r and the step of every card at every pass; None if it was told to stop on the way."""
    if r == 0 and stop():
        return None
    steps = []
    for number in range(1, r + 1):
        if stop():
            return None
        y_BCHW = passes(x_BCHW)
        steps.append((y_BCHW - x_BCHW).abs().mean((1, 2, 3)))
        x_BCHW = y_BCHW
        after_pass(number)
    return x_BCHW, torch.stack(steps) if steps else x_BCHW.new_empty(0, len(x_BCHW))


class Clock:
    """When the next resume point is due: `seconds` after the last, and later where writing it took long.

    Writing then has at most a fiftieth of the time, however large the set and slow the disk; what a kill costs is that
    many seconds of work more. 0 seconds: always.
    """

    SHARE = 1 / 50

    def __init__(self, seconds: float) -> None:
        self.seconds = self.wait = seconds
        self.written_at = time.monotonic()

    def is_time(self) -> bool:
        return time.monotonic() - self.written_at >= self.wait

    @contextmanager
    def writing(self) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.written_at = time.monotonic()
        if self.seconds:
            self.wait = max(self.seconds, (self.written_at - began) / self.SHARE)


class Pace:
    """Tells how far it is: at the first pass, so that a user sees life, and then after every chunk."""

    def __init__(self, report: Report, count: int, r: int, chunk: int, made: int, seconds: float) -> None:
        self.report, self.count = report, count
        self.passes = -(-count // chunk) * r
        self.made = self.made_before = made
        self.earlier_seconds = seconds
        self.began = time.monotonic()

    def seconds(self) -> float:
        """Over all attempts."""
        return self.earlier_seconds + time.monotonic() - self.began

    def after_pass(self, number: int) -> None:
        if self.made == self.made_before == 0 and number == 1:
            eta_seconds = (self.passes - 1) * self.seconds()
            self.report.progress(self._progress(fraction=1 / self.passes, eta_seconds=eta_seconds))

    def after_chunk(self, made: int) -> None:
        self.made = made
        rate = (made - self.made_before) / max(time.monotonic() - self.began, 1e-9)
        fraction = made / self.count
        self.report.progress(self._progress(fraction=fraction, rate=rate, eta_seconds=(self.count - made) / rate))

    def _progress(self, **told: float) -> Progress:
        return Progress(step=self.made, steps=self.count, unit="cards", **told)


def _refuse_infinite(step_RB: np.ndarray, cards_NHWC: np.ndarray, first: int, r: int) -> None:
    """The mean step of a card is finite only while all of its pixels are; without a pass the pixels are looked at."""
    finite_RB = np.isfinite(step_RB) if r else np.isfinite(cards_NHWC).all((1, 2, 3))[None]
    if finite_RB.all():
        return
    place = int(np.argmin(finite_RB.all(1)))
    card, number = first + int(np.argmin(finite_RB[place])), place + 1 if r else 0
    remedy = (
        "the network does not give finite numbers at all: look at its weights"
        if number <= 1
        else f"this network drives patterns away when it is iterated: take r below {number}"
    )
    raise Diverged(f"card {card} left the finite numbers at pass {number} of {r}; {remedy}")
