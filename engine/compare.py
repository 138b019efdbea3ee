"""Strategies side by side: a table with mean and deviation over seeds, and a page of pictures.

The learners have learnt and measured already. What is here are the means: AvgMAE, BWT and FWT of each learner as its
matrix has them, of classes accuracy with and without task id and forgetting, then over the seeds of each strategy.
"""

import csv
import io
import json
from collections.abc import Callable, Sequence
from statistics import fmean, stdev

from engine import compare_plots
from engine.compare_class_plots import save_accuracies
from engine.errors import NothingLearnt
from engine.files import write_whole
from engine.work import Outcome, Product, Report, UnitInput, Work
from flashcards.contract.resources import Progress
from flashcards.contract.results import CompareResult, FailedUnit, Spread, StrategyRow
from flashcards.contract.specs import CompareSpec
from flashcards.contract.strategies import called

TABLE, SHEET = Product("table.json", "application/json"), Product("table.csv", "text/csv")
SPREADS = ("average", "average_without_task_id", "bwt", "forgetting", "fwt")
OF_CLASSES = ("average_without_task_id", "forgetting")  # that a comparison of autoencoders has not


def compare(work: Work, report: Report, stop: Callable[[], bool]) -> Outcome:
    spec, units = work.spec, work.units
    done = [unit for unit in units if unit.failed is None]
    report.progress(Progress(fraction=1.0, step=spec.tasks, steps=spec.tasks, unit="tasks"))
    if not done:
        reasons = list(dict.fromkeys(unit.failed for unit in units))
        raise NothingLearnt(f"none of {len(units)} learners came to the end of its tasks: {'; '.join(reasons[:3])}")
    rows = [_row(spec, place, units) for place in range(len(spec.strategies))]
    result = CompareResult(
        tasks=done[0].matrix.tasks,
        metric=done[0].matrix.metric,
        table=rows,
        notes=_notes(spec, rows),
        seconds=sum(unit.matrix.seconds or 0.0 for unit in units),
    )
    for note in result.notes:
        report.note(note)
    write_whole(work.out / TABLE.name, json.dumps(_told(spec, result, units), indent=2).encode())
    write_whole(work.out / SHEET.name, _sheet(rows, result.metric).encode())
    by_strategy = [_of(place, done) for place in range(len(rows))]
    pictures = compare_plots.save(work.out, result, by_strategy, _title(spec))
    if result.metric == "accuracy":
        labels = [row.label for row in rows]
        pictures += save_accuracies(work.out, labels, result.tasks, by_strategy, _title(spec))
    return Outcome(result, [TABLE, SHEET, *pictures])


def spread(values: Sequence[float | None]) -> Spread | None:
    """Over the seeds; None where one of them does not know its value."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    return Spread(mean=fmean(known), deviation=stdev(known) if len(known) > 1 else None)


def _of(place: int, units: Sequence[UnitInput]) -> list[UnitInput]:
    return [unit for unit in units if unit.strategy == place]


def _row(spec: CompareSpec, place: int, units: Sequence[UnitInput]) -> StrategyRow:
    strategy, mine = spec.strategies[place], _of(place, units)
    done = [unit for unit in mine if unit.failed is None]
    memories = [unit.matrix.memory for unit in done if unit.matrix.memory is not None]
    seconds = [unit.matrix.seconds for unit in done if unit.matrix.seconds is not None]
    return StrategyRow(
        strategy=strategy,
        kind=strategy.kind,
        label=called(strategy),
        architecture=spec.architecture_for(strategy).name,
        seeds=[unit.seed for unit in done],
        memory=max((sum(dict(each).values()) - each.network for each in memories), default=None),
        keeps_data=any(unit.keeps_data for unit in done),
        seconds=fmean(seconds) if seconds else None,
        failed=[FailedUnit(seed=unit.seed, reason=unit.failed) for unit in mine if unit.failed is not None],
        **{name: spread([getattr(unit.matrix, name) for unit in done]) for name in SPREADS},
    )


def _notes(spec: CompareSpec, rows: Sequence[StrategyRow]) -> list[str]:
    others = [row for row in rows if row.architecture != spec.architecture.name]
    notes = [
        f"{row.label} ran on {row.architecture} in place of {spec.architecture.name}: it draws from the learner itself"
        for row in others
    ]
    missing = [f"{row.label} (seed {unit.seed})" for row in rows for unit in row.failed]
    return notes + ([f"not in the means, since they failed: {', '.join(missing)}"] if missing else [])


def _title(spec: CompareSpec) -> str:
    noise = f", noise {spec.noise:g}" if spec.scenario == "denoising" else ""
    count = len(spec.seeds)
    return f"{spec.architecture.name}, {spec.scenario}{noise}, {count} seed{'' if count == 1 else 's'}"


def _told(spec: CompareSpec, result: CompareResult, units: Sequence[UnitInput]) -> dict:
    """The result, and every learner's own numbers."""
    learners = [
        {
            "strategy": called(spec.strategies[unit.strategy]),
            "seed": unit.seed,
            "failed": unit.failed,
            **unit.matrix.model_dump(mode="json"),
        }
        for unit in units
    ]
    return {**result.model_dump(mode="json", exclude={"children"}), "learners": learners}


def _sheet(rows: Sequence[StrategyRow], metric: str) -> str:
    """A row a strategy; a cell is empty where nothing says."""
    text = io.StringIO()
    sheet = csv.writer(text)
    told = [name for name in SPREADS if metric == "accuracy" or name not in OF_CLASSES]
    spreads = [f"{name}_{part}" for name in told for part in ("mean", "deviation")]
    sheet.writerow(["strategy", "architecture", "seeds", *spreads, "memory_bytes", "keeps_data", "seconds", "failed"])
    for row in rows:
        found = [getattr(row, name) for name in told]
        numbers = [getattr(each, part, None) for each in found for part in ("mean", "deviation")]
        cells = [*numbers, row.memory, row.keeps_data, row.seconds, len(row.failed)]
        sheet.writerow([row.label, row.architecture, len(row.seeds), *("" if cell is None else cell for cell in cells)])
    return text.getvalue()
