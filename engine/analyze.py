"""The analyze job: what each further pass does to cards, how many of them to take, and pictures of both.

Figures 2 and 4 of the paper: cards over the passes, the size of each step, the Frechet distance of their latents from
the data's, t-SNE of both; and, where asked, the test error of networks that learnt from the cards of each r alone.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch

from engine import capsule, plots, reference
from engine.advice import Advice, advise
from engine.cards import within
from engine.choice import Bench, choose_source
from engine.data import Images
from engine.errors import Diverged, Stopped
from engine.evaluate import METRICS
from engine.files import write_whole
from engine.measures import mean_error
from engine.models import chunk_size
from engine.pictures import to_pixels
from engine.probe import forward_unverified
from engine.reference import Data, Reference
from engine.retrain import retrain
from engine.sources import Source, latent_shape
from engine.sweep import Sweep, cards_at, sweep
from engine.weights import load_network
from engine.work import Outcome, Product, Report, Work
from flashcards.contract.resources import Progress
from flashcards.contract.results import AnalyzeResult
from flashcards.contract.specs import AnalyzeSpec, LearningSpec

STRIP_CARDS = 6
TSNE_POINTS = 400  # of each group
TSNE_FEWEST = 128  # of the reference, however few the cards are
CARD_BYTES = 2**29  # of all cards, which are in memory together
LATENT_NUMBERS = 2**24  # of all cards: the distance of more takes minutes a pass
FEWEST = 16  # of less nothing can be said
BACKWARD = 3  # a batch that is learnt costs as much as three that are looked at
RETRAINING = {"batch_size": 16, "learning_rate": 2e-3}  # cards are few here: they want many small steps


@dataclass
class Pace:
    """Tells how far it is, counted in chunks through the network, and stops when told to."""

    report: Report
    stop: Callable[[], bool]
    total: int
    told: Progress
    done: int = 0
    products: list[Product] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def after_chunk(self, chunks: int = 1) -> None:
        self.done += chunks
        fraction = min(1.0, self.done / self.total)
        eta_seconds = (time.monotonic() - self.began) * (1 / fraction - 1)
        self.report.progress(self.told.model_copy(update={"fraction": fraction, "eta_seconds": eta_seconds}))
        self.stop_if_asked()

    def stop_if_asked(self) -> None:
        if self.stop():
            told = self.told
            raise Stopped(f"stopped after {told.step} of {told.steps} {told.unit}", self.products)


@dataclass(frozen=True)
class Desk:
    """What every step of an analysis needs."""

    work: Work
    network: torch.nn.Module
    device: torch.device
    chunk: int
    count: int
    report: Report
    pace: Pace

    @property
    def title(self) -> str:
        return f"{self.work.model.architecture.name}, {self.work.model.input}"


def analyze(work: Work, report: Report, stop: Callable[[], bool]) -> Outcome:
    began = time.monotonic()
    spec: AnalyzeSpec = work.spec
    model, device = work.model, torch.device(work.device)
    network = load_network(model, device)
    unverified = forward_unverified(network, model, device)
    kept = capsule.load(model)
    latent_size = int(np.prod(latent_shape(network, model, device)))
    data = None if work.dataset is None else reference.load_data(work, latent_size, report)
    desk = _set_up(work, network, data, latent_size, report, stop)

    bench = Bench(network, model, kept, device, desk.chunk, desk.pace.stop_if_asked)
    source = choose_source(bench, spec.source, spec.seed, report)
    against = _reference(desk, data, kept)
    seen = _follow(desk, source, against)
    advice = advise(
        seen.gamma2, seen.flsd, against and against.eps1, against and against.against, source.starts_as_image
    )
    if len(seen.step_RN) < spec.max_r:
        advice = _with_words(advice, len(seen.step_RN), report)

    title = f"{desk.title}, source {source.name}, {desk.count:,} cards"
    products = desk.pace.products
    products += _show_cards(desk, source, seen, against, advice.recommended_r, title)
    reference_mae = None if data is None else _test_mae(desk, network, data)
    if reference_mae is not None and not np.isfinite(reference_mae):
        raise Diverged("the network gives no finite answer to test images of the dataset: look at its weights")
    retrained = _retrain(desk, source, data, len(seen.step_RN)) if spec.retrain else None
    result = AnalyzeResult(
        forward_unverified=unverified,
        source=source.name,
        count=desk.count,
        against=against and against.against,
        gamma1=seen.gamma1,
        gamma2=seen.gamma2,
        mean_step=seen.mean_step,
        flsd=seen.flsd,
        diversity=against and [value / max(1e-12, against.spread) for value in seen.spread],
        eps1=against and against.eps1,
        p1_from=advice.p1_from,
        p2_at=advice.p2_at,
        recommended_r=advice.recommended_r,
        reason=advice.reason,
        reference_mae=reference_mae,
        retrained=retrained,
        seconds=time.monotonic() - began,
    )
    measured = result.model_dump(exclude={"model", "dataset"})
    products += plots.save_curves(work.out, measured, title)
    write_whole(work.out / METRICS.name, json.dumps(measured, indent=2).encode())
    return Outcome(result, [*products, METRICS])


def _set_up(
    work: Work,
    network: torch.nn.Module,
    data: Data | None,
    latent_size: int,
    report: Report,
    stop: Callable[[], bool],
) -> Desk:
    spec, model = work.spec, work.model
    chunk = chunk_size(model.architecture, model.input)
    affordable = min(CARD_BYTES // (4 * model.input.pixels), LATENT_NUMBERS // latent_size)
    count = min(spec.count, max(FEWEST, affordable))
    if count < spec.count:
        report.note(f"looked at {count:,} cards in place of {spec.count:,}: more of this size take too much memory")
    a_pass = -(-count // chunk)
    total = spec.max_r * (a_pass - (-min(count, TSNE_POINTS) // chunk))
    if data is not None:
        tests = 1 + len(set(spec.retrain))
        total += -(-len(data.train_rows) // chunk) - (-len(data.test_rows) // chunk) * tests
    if spec.retrain:
        batches = -(-count // RETRAINING["batch_size"])
        total += max(spec.retrain) * a_pass + BACKWARD * len(set(spec.retrain)) * spec.retrain_epochs * batches
    pace = Pace(report, stop, total, Progress(step=0, steps=spec.max_r, unit="passes"))
    return Desk(work, network, torch.device(work.device), chunk, count, report, pace)


def _reference(desk: Desk, data: Data | None, kept: capsule.Capsule | None) -> Reference | None:
    if data is not None:
        return reference.of_images(desk.network, data, desk.chunk, desk.device, desk.pace.after_chunk)
    return None if kept is None else reference.of_capsule(kept, desk.work.spec.seed)


def _follow(desk: Desk, source: Source, against: Reference | None) -> Sweep:
    """Pass after pass, as far as the cards stay finite."""
    spec, pace = desk.work.spec, desk.pace

    def after_pass(number: int, parts: list[torch.Tensor]) -> None:
        pace.told = Progress(step=number, steps=spec.max_r, unit="passes")

    around = None if against is None else against.around
    seen = sweep(desk.network, source, desk.count, spec.max_r, desk.chunk, around, after_pass, between=pace.after_chunk)
    finite = [
        bool(np.isfinite(step_N).all() and np.isfinite(spreads).all())
        for step_N, *spreads in zip(seen.step_RN, seen.spread, seen.spread[1:], strict=False)
    ]
    last = len(finite) if all(finite) else finite.index(False)
    if last == 0:
        card = int(np.argmin(np.isfinite(seen.step_RN[0])))
        raise Diverged(
            f"card {card} left the finite numbers at pass 1 of {spec.max_r}; the network does not give finite numbers "
            "at all: look at its weights"
        )
    counted = Sweep(seen.step_RN[:last], None if seen.flsd is None else seen.flsd[: last + 1], seen.spread[: last + 1])
    for number in range(1, last + 1):
        told = {"mean_step": counted.mean_step[number - 1], "gamma2": counted.gamma2[number - 1]}
        if counted.flsd is not None:
            told["flsd"] = counted.flsd[number]
        desk.report.metric(number, told)
    return counted


def _with_words(advice: Advice, last: int, report: Report) -> Advice:
    words = (
        f"cards left the finite numbers at pass {last + 1}: this network drives patterns away when it is iterated, so "
        f"only the {last} before it count{'s' if last == 1 else ''}"
    )
    report.note(words)
    return Advice(advice.recommended_r, f"{advice.reason}; {words}", advice.p1_from, advice.p2_at)


def _show_cards(
    desk: Desk, source: Source, seen: Sweep, against: Reference | None, recommended_r: int, title: str
) -> list[Product]:
    """The strip, and the latents beside those of the reference."""
    last = len(seen.step_RN)
    in_strip = sorted({*_columns(last), recommended_r})
    in_latents = {0, recommended_r, last}
    pixels, latents = {}, {}
    few = min(desk.count, TSNE_POINTS)
    for r, parts in cards_at(desk.network, source, few, [*in_strip, last], desk.chunk, between=desk.pace.after_chunk):
        if r in in_strip:
            first_NHWC = torch.cat(parts[:STRIP_CARDS])[:STRIP_CARDS].permute(0, 2, 3, 1).cpu().numpy()
            pixels[r] = to_pixels(first_NHWC, desk.work.model.range)
        if r in in_latents:
            latents[f"cards, r = {r}"] = _latents(desk.network, parts)
    step_CN = [None if r == 0 else seen.step_RN[r - 1][:STRIP_CARDS].tolist() for r in in_strip]
    products = plots.save_strip(desk.work.out, pixels, step_CN, recommended_r, title)
    if against is None:
        desk.report.note("no picture of latents: there is neither a dataset nor a capsule to show them beside")
        return products
    beside = "images of the dataset" if against.against == "dataset" else "draws from the capsule"
    groups = {beside: against.some(max(few, TSNE_FEWEST)), **latents}
    made = plots.save_latents(desk.work.out, groups, desk.work.threads, title)
    if made is None:
        desk.report.note("no picture of latents: the encoder gives one and the same latent for everything")
    return products + (made or [])


def _columns(last: int) -> list[int]:
    """0, and 1, 2, 5 of every power of ten."""
    return [0, *(r for power in (1, 10, 100, 1000) for r in (power, 2 * power, 5 * power) if r <= last)]


@torch.inference_mode()
def _latents(network: torch.nn.Module, parts: list[torch.Tensor]) -> np.ndarray:
    return np.concatenate([network.encoder(x_BCHW).flatten(1).cpu().numpy() for x_BCHW in parts])


def _test_mae(desk: Desk, network: torch.nn.Module, data: Data) -> float:
    return mean_error(network, data.test, data.test_rows, desk.chunk, desk.device, desk.pace.after_chunk)


def _retrain(desk: Desk, source: Source, data: Data, last: int) -> dict[int, float]:
    """r -> test error of a network of the same architecture that saw nothing but the cards of that r."""
    spec, model, pace, report = desk.work.spec, desk.work.model, desk.pace, desk.report
    asked = sorted(set(spec.retrain))
    if asked[-1] > last:
        report.note(f"no network was taught by cards of r beyond {last}: they are not finite")
        asked = [r for r in asked if r <= last]
    learning = LearningSpec(architecture=model.architecture, epochs=spec.retrain_epochs, seed=spec.seed, **RETRAINING)
    errors: dict[int, float] = {}
    for r, parts in cards_at(desk.network, source, desk.count, asked, desk.chunk, between=pace.after_chunk):
        before = asked.index(r) * spec.retrain_epochs

        def after_batch(epoch: int, before: int = before) -> None:
            steps = len(asked) * spec.retrain_epochs
            pace.told = Progress(step=before + epoch - 1, steps=steps, epoch=epoch, unit="epochs")
            pace.after_chunk(BACKWARD)

        cards_NHWC = np.concatenate([x_BCHW.permute(0, 2, 3, 1).cpu().numpy() for x_BCHW in parts])
        cards = Images(within(cards_NHWC, model.range), model.range)
        error = _test_mae(desk, retrain(learning, cards, desk.device, after_batch), data)
        if np.isfinite(error):
            errors[r] = error
        else:
            report.note(f"the network taught by cards of r = {r} gives no finite error: it is left out")
    return errors
