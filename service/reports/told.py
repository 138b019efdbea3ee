"""Any result as facts, tables and curves, by the shape of its values: later kinds are told as well."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from service.reports.chart import Chart, chart, figure

#: What a reader looks for first.
HEADLINES = (
    "mae", "psnr", "ssim", "accuracy", "validation_mae", "validation_accuracy", "test_accuracy", "recommended_r",
    "flsd", "precision", "recall", "diversity", "constant_mae", "forgetting",
)  # fmt: skip
#: And what of the records within a result.
WITHIN = {"recipe": ("count", "r"), "measures": ("flsd", "diversity")}
#: Drawn together: how far each pass moved a card at most, on average and at least. The first pass is 1.
STEPS = ("gamma2", "mean_step", "gamma1")
CURVE_AT_LEAST = 3
CELLS_AT_MOST = 60  # of a fact that is a list

Fact = tuple[str, str]


@dataclass(frozen=True)
class Sheet:
    title: str
    columns: list[str]
    rows: list[list[str]]


@dataclass
class Told:
    headlines: list[Fact] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    tables: list[Sheet] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)


def tell(result: Mapping[str, Any], names: Mapping[str, str]) -> Told:
    told = Told()
    told.charts += _steps(result)
    for name, value in result.items():
        if value is None or value == [] or value == {} or name in STEPS:
            continue
        if name in HEADLINES and isinstance(value, int | float):
            told.headlines.append((words(name), figure(value)))
        elif _is_curve(value):
            drawn = chart(name, {name: list(enumerate(value))}, "pass")
            told.charts += [drawn] if drawn else []
        elif isinstance(value, list) and all(isinstance(each, dict) for each in value):
            told.tables.append(_table(name, value, names))
        elif isinstance(value, dict):
            told.headlines += _within(name, value)
            told.tables.append(
                Sheet(words(name), [], [[words(key), in_words(each, names)] for key, each in value.items()])
            )
        else:
            told.facts.append((words(name), in_words(value, names)))
    return told


def _steps(result: Mapping[str, Any]) -> list[Chart]:
    lines = {name: list(enumerate(result[name], start=1)) for name in STEPS if result.get(name)}
    drawn = chart("how far a pass moves a card", lines, "pass")
    return [drawn] if drawn else []


def _within(name: str, record: Mapping[str, Any]) -> list[Fact]:
    found = ((part, record.get(part)) for part in WITHIN.get(name, ()))
    return [(words(part), figure(value)) for part, value in found if isinstance(value, int | float)]


def words(name: object) -> str:
    return str(name).replace("_", " ")


def in_words(value: Any, names: Mapping[str, str]) -> str:
    match value:
        case None | [] | {}:
            return "-"
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return figure(value)
        case str():
            return f"{names[value]} ({value})" if value in names else value
        case dict():
            return ", ".join(f"{words(key)} {in_words(each, names)}" for key, each in value.items() if each is not None)
        case list():
            told = ", ".join(in_words(each, names) for each in value[:CELLS_AT_MOST])
            return told if len(value) <= CELLS_AT_MOST else f"{told} and {len(value) - CELLS_AT_MOST} more"
    return str(value)


def _is_curve(value: Any) -> bool:
    isnumber = isinstance(value, Sequence) and not isinstance(value, str) and len(value) >= CURVE_AT_LEAST
    return isnumber and all(isinstance(each, int | float) and not isinstance(each, bool) for each in value)


def _table(name: str, rows: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> Sheet:
    """Columns that are empty in every row are left out."""
    columns = [key for key in rows[0] if any(row.get(key) not in (None, [], {}) for row in rows)]
    return Sheet(
        words(name),
        [words(key) for key in columns],
        [[in_words(row.get(key), names) for key in columns] for row in rows],
    )
