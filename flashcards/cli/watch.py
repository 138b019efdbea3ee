"""A job from the user's chair: its bar while it runs, its outcome in words when it has ended."""

from typing import TYPE_CHECKING

import typer
from rich.filesize import decimal

from flashcards.cli import exits, interrupt
from flashcards.cli.bars import JobBar, job_bars
from flashcards.cli.output import print_facts, print_json, say
from flashcards.contract.class_results import (
    Classified,
    EvaluateClassifierResult,
    LearnClassesResult,
    PredictResult,
    TrainClassifierResult,
)
from flashcards.contract.resources import Failure, Job
from flashcards.contract.results import (
    AnalyzeResult,
    CaptureResult,
    ClassAccuracy,
    CompareResult,
    DistillResult,
    EvaluateCardsResult,
    EvaluateResult,
    ExportResult,
    LearnResult,
    NoopResult,
    Spread,
    StrategyRow,
    TaskMeasure,
    TrainingResult,
    TrainResult,
)
from flashcards.contract.shards import ShardResult

if TYPE_CHECKING:
    from flashcards.client import Client

Facts = list[tuple[str, object]]


def watch(client: "Client", job: Job, quiet: bool) -> Job:
    """Until it has ended. Ctrl-C ends the watching, and the job only where its user says so."""
    try:
        if quiet:
            return client.jobs.wait(job.id)
        with job_bars() as bars:
            return client.jobs.wait(job.id, on_event=JobBar(bars, job.kind).show)
    except KeyboardInterrupt:
        interrupt.leave(client, job.id)


def print_outcome(job: Job, as_json: bool) -> None:
    """What came of it; the exit code says whether it is what was asked for."""
    if as_json:
        print_json(job)
    elif job.result is not None:
        print_facts([("job", job.id), *result_facts(job)])
    if job.state == "succeeded":
        return
    if not as_json:
        say(f"flashcards: {job.id} {_end(job.state, job.error)}")
    raise typer.Exit(exits.OF_STATE[job.state])


def result_facts(job: Job) -> Facts:
    match job.result:
        case TrainResult() as trained:
            return _trained(trained)
        case TrainClassifierResult() as classifier:
            return _trained_classifier(classifier)
        case CaptureResult() as captured:
            return _captured(captured)
        case ShardResult() as shard:
            return [("cards", f"{shard.first:,} to {shard.first + shard.cards - 1:,}")]
        case AnalyzeResult() as analyzed:
            return _analyzed(analyzed)
        case DistillResult() as distilled:
            return _distilled(distilled)
        case LearnResult() as learnt:
            return _learnt(learnt)
        case LearnClassesResult() as told_apart:
            return _learnt_classes(told_apart)
        case EvaluateResult() as evaluated:
            return _evaluated(evaluated)
        case EvaluateClassifierResult() as evaluated_classifier:
            return _evaluated_classifier(evaluated_classifier)
        case PredictResult() as predicted:
            return _predicted(predicted)
        case ExportResult() as exported:
            return _exported(exported)
        case EvaluateCardsResult() as evaluated_cards:
            return _evaluated_cards(evaluated_cards)
        case CompareResult() as compared:
            return _compared(job.id, compared)
        case NoopResult() | None:
            return []


def _trained(result: TrainResult) -> Facts:
    return [
        ("model", result.model),
        ("validation MAE", f"{result.validation_mae:.4f}   (a constant image: {result.constant_mae:.4f})"),
        *_training(result),
    ]


def _trained_classifier(result: TrainClassifierResult) -> Facts:
    constant = f"(always the most frequent class: {result.constant_accuracy:.1%})"
    return [
        ("model", result.model),
        *([("through", result.through)] if result.through else []),
        ("validation accuracy", f"{result.validation_accuracy:.1%}   {constant}"),
        ("validation log loss", f"{result.validation_log_loss:.4f}"),
        *([] if result.test_accuracy is None else [("test accuracy", f"{result.test_accuracy:.1%}")]),
        *_worst(result.per_class),
        *_training(result),
    ]


def _training(result: TrainingResult) -> Facts:
    early = ", stopped early" if result.stopped_early else ""
    return [
        *_alpha(result),
        ("epochs", f"{result.epochs}, the best was {result.best_epoch}{early}"),
        ("speed", f"{result.images_per_second:,.0f} images/s"),
    ]


def _worst(classes: list[ClassAccuracy]) -> Facts:
    worst = min(classes, key=lambda each: each.accuracy)
    return [("worst class", f"{worst.name or worst.label}: {worst.accuracy:.1%} of {worst.images:,} images")]


def _alpha(result: TrainingResult) -> Facts:
    return [] if result.weighted_alpha is None else [("weighted alpha", f"{result.weighted_alpha:.3f}")]


def _captured(result: CaptureResult) -> Facts:
    return [
        ("flashcards", result.flashcards),
        ("cards", f"{result.recipe.count:,}"),
        ("source", result.recipe.source),
        ("r", result.recipe.r),
        *_steps(result),
        *_properties(result),
        *([("shards", result.shards)] if result.shards > 1 else []),
        ("speed", f"{result.cards_per_second:,.0f} cards/s"),
        ("contact sheet", f"flashcards cards sheet {result.flashcards}"),
    ]


def _steps(result: CaptureResult) -> Facts:
    if not result.gamma2:
        return []
    return [("gamma2", f"{result.gamma2[0]:.4g} -> {result.gamma2[-1]:.4g}   (first to last pass)")]


def _properties(result: CaptureResult) -> Facts:
    """What the capsule says of the cards."""
    seen = result.measures
    if seen is None or seen.flsd is None or seen.diversity is None:
        return [("capsule", "none: nothing to compare the cards with")]
    verdicts = {"P1": result.p1, "P2": result.p2}
    held = ", ".join(f"{name} {'holds' if holds else 'fails'}" for name, holds in verdicts.items())
    return [("FLSD", f"{seen.flsd:.4g}"), ("diversity", f"{seen.diversity:.2f} of the images'"), ("properties", held)]


def _analyzed(result: AnalyzeResult) -> Facts:
    return [
        ("recommended r", result.recommended_r),
        ("reason", result.reason),
        ("P1 from", "never" if result.p1_from is None else result.p1_from),
        ("P2 at", "unknown" if result.p2_at is None else result.p2_at),
        *((f"taught by r = {r}", f"test MAE {mae:.4f}") for r, mae in (result.retrained or {}).items()),
    ]


def _distilled(result: DistillResult) -> Facts:
    return [
        ("model", result.model),
        ("parameters", f"{result.parameters:,}   (its parent: {result.parent_parameters:,})"),
        *(
            (f"MAE on {each.on}", f"{each.child_mae:.4f}   (its parent: {each.parent_mae:.4f}, {each.ratio:.2f}x)")
            for each in result.compared
        ),
        *_alpha(result),
        ("epochs", f"{result.epochs}, the best was {result.best_epoch}"),
        ("speed", f"{result.images_per_second:,.0f} cards/s"),
    ]


def _learnt(result: LearnResult) -> Facts:
    forgot = result.forgetting
    return [
        ("learner", f"{result.learner}, now at version {result.version}"),
        *(
            (f"MAE on {each.task}", "no images to tell" if each.mae is None else f"{each.mae:.4f}")
            for each in result.measures
        ),
        *([] if forgot is None else [("forgetting", f"{forgot:+.4f} at worst, measured on {result.forgetting_on}")]),
        ("epochs", f"{result.epochs}, the best was {result.best_epoch}"),
        ("speed", f"{result.images_per_second:,.0f} images/s"),
        ("matrix", f"flashcards learners matrix {result.learner}"),
    ]


def _learnt_classes(result: LearnClassesResult) -> Facts:
    forgot = result.forgetting
    return [
        ("learner", f"{result.learner}, now at version {result.version}"),
        *((f"accuracy on {each.task}", _both(each)) for each in result.measures),
        *([] if forgot is None else [("forgetting", f"{forgot:+.1%} at worst, measured on {result.forgetting_on}")]),
        ("epochs", f"{result.epochs}, the best was {result.best_epoch}"),
        ("speed", f"{result.images_per_second:,.0f} images/s"),
        ("matrix", f"flashcards learners matrix {result.learner}"),
    ]


def _both(measure: TaskMeasure) -> str:
    if measure.accuracy is None:
        return "no images to tell"
    without = measure.accuracy_without_task_id
    return f"{measure.accuracy:.1%}" + ("" if without is None else f", {without:.1%} without task id")


def _evaluated_cards(result: EvaluateCardsResult) -> Facts:
    return [
        ("cards", f"{result.cards:,} beside {result.images:,} images of {result.split}"),
        ("FLSD", f"{result.flsd:.4g}"),
        ("precision", f"{result.precision:.2f}"),
        ("recall", f"{result.recall:.2f}"),
        ("diversity", f"{result.diversity:.2f} of the images'"),
        *([("privacy", result.privacy.verdict)] if result.privacy else []),
    ]


def _evaluated(result: EvaluateResult) -> Facts:
    return [
        ("images", f"{result.images:,} of {result.split}"),
        ("MAE", f"{result.mae:.4f}   (a constant image: {result.constant_mae:.4f})"),
        ("PSNR", f"{result.psnr:.2f} dB"),
        ("SSIM", f"{result.ssim:.4f}"),
    ]


def _evaluated_classifier(result: EvaluateClassifierResult) -> Facts:
    given = result.accuracy_given_head
    constant = f"(always the most frequent class: {result.constant_accuracy:.1%})"
    return [
        ("images", f"{result.images:,} of {result.split}"),
        ("accuracy", f"{result.accuracy:.1%}   {constant}"),
        *([] if given is None else [("accuracy, head given", f"{given:.1%}")]),
        *_worst(result.per_class),
        ("log loss", f"{result.log_loss:.4f}"),
        ("ECE", f"{result.ece:.4f}"),
    ]


def _predicted(result: PredictResult) -> Facts:
    said: Facts = [(f"row {each.row}", f"MAE {each.mae:.4f}") for each in result.reconstructed or []]
    return [*said, *((f"row {each.row}", _class(each)) for each in result.classified or [])]


def _class(said: Classified) -> str:
    truth = "" if said.truth is None else f"   (is {said.truth})"
    return f"{said.name or said.label}, {said.confidence:.1%}{truth}"


def _exported(result: ExportResult) -> Facts:
    images = ", ".join(f"{each.images} {each.inputs}" for each in result.parity)
    return [
        ("file", f"{result.format}, opset {result.opset}, {decimal(result.size)}"),
        ("digest", result.digest),
        ("parity", f"within {result.max_abs_difference:.1e} of the network, on {images} images"),
    ]


def _compared(id: str, result: CompareResult) -> Facts:
    return [
        ("tasks", ", ".join(result.tasks)),
        *((row.label, _strategy(row, result.metric)) for row in result.table),
        *(("note", note) for note in result.notes),
        *((f"failed: {row.label}", unit.reason) for row in result.table for unit in row.failed),
        ("learners", f"flashcards learners ls --compare {id}"),
    ]


def _strategy(row: StrategyRow, metric: str) -> str:
    if not row.seeds:
        return "failed"
    kept = f"{decimal(row.memory or 0)} beside the network" + (", images among it" if row.keeps_data else "")
    average = f"{'AvgMAE' if metric == 'mae' else 'accuracy'} {_spread(row.average)}"
    if row.average_without_task_id is not None:
        average += f", {_spread(row.average_without_task_id)} without task id"
    return f"{average}   BWT {_spread(row.bwt)}   keeps {kept}   {row.seconds or 0:,.0f} s"


def _spread(spread: Spread | None) -> str:
    if spread is None:
        return "-"
    return f"{spread.mean:.4f}" if spread.deviation is None else f"{spread.mean:.4f} ± {spread.deviation:.4f}"


def _end(state: str, error: Failure | None) -> str:
    return f"{state}\n  {error.title}\n  {error.detail}" if error else state
