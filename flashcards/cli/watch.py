"""A job from the user's chair: its bar while it runs, its outcome in words when it has ended."""

from typing import TYPE_CHECKING

import typer

from flashcards.cli.bars import JobBar, job_bars
from flashcards.cli.output import print_facts, print_json, say
from flashcards.contract.resources import Failure, Job
from flashcards.contract.results import CaptureResult, EvaluateResult, NoopResult, TrainResult

if TYPE_CHECKING:
    from flashcards.client import Client

Facts = list[tuple[str, object]]
INTERRUPTED = 130  # as shells count a Ctrl-C


def watch(client: "Client", job: Job, quiet: bool) -> Job:
    """Until it has ended. Ctrl-C ends the watching, never the job."""
    try:
        if quiet:
            return client.jobs.wait(job.id)
        with job_bars() as bars:
            return client.jobs.wait(job.id, on_event=JobBar(bars, job.kind).show)
    except KeyboardInterrupt:
        say(f"{job.id} goes on without you. To watch it again: flashcards jobs watch {job.id}")
        raise typer.Exit(INTERRUPTED) from None


def print_outcome(job: Job, as_json: bool) -> None:
    """What came of it; exit code 1 unless it is what was asked for."""
    if as_json:
        print_json(job)
    elif job.result is not None:
        print_facts([("job", job.id), *result_facts(job)])
    if job.state == "succeeded":
        return
    if not as_json:
        say(f"flashcards: {job.id} {_end(job.state, job.error)}")
    raise typer.Exit(1)


def result_facts(job: Job) -> Facts:
    match job.result:
        case TrainResult() as trained:
            return _trained(trained)
        case CaptureResult() as captured:
            return _captured(captured)
        case EvaluateResult() as evaluated:
            return _evaluated(evaluated)
        case NoopResult() | None:
            return []


def _trained(result: TrainResult) -> Facts:
    early = ", stopped early" if result.stopped_early else ""
    return [
        ("model", result.model),
        ("validation MAE", f"{result.validation_mae:.4f}   (a constant image: {result.constant_mae:.4f})"),
        ("epochs", f"{result.epochs}, the best was {result.best_epoch}{early}"),
        ("speed", f"{result.images_per_second:,.0f} images/s"),
    ]


def _captured(result: CaptureResult) -> Facts:
    return [
        ("flashcards", result.flashcards),
        ("cards", f"{result.recipe.count:,}"),
        ("r", result.recipe.r),
        ("gamma2", f"{result.gamma2[0]:.4g} -> {result.gamma2[-1]:.4g}   (first to last pass)"),
        ("speed", f"{result.cards_per_second:,.0f} cards/s"),
        ("contact sheet", f"flashcards cards sheet {result.flashcards}"),
    ]


def _evaluated(result: EvaluateResult) -> Facts:
    return [
        ("images", f"{result.images:,} of {result.split}"),
        ("MAE", f"{result.mae:.4f}   (a constant image: {result.constant_mae:.4f})"),
        ("PSNR", f"{result.psnr:.2f} dB"),
        ("SSIM", f"{result.ssim:.4f}"),
    ]


def _end(state: str, error: Failure | None) -> str:
    return f"{state}\n  {error.title}\n  {error.detail}" if error else state
