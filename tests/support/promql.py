"""Which figures an expression of Prometheus asks for, and which of their labels."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import promql_parser

HISTOGRAMS = ("_bucket", "_sum", "_count")
#: Added by whoever scrapes, or made by a histogram.
GIVEN = frozenset({"job", "instance", "le"})


@dataclass
class Asked:
    figures: set[str] = field(default_factory=set)
    labels: set[tuple[str, str]] = field(default_factory=set)  # figure, label


def asked(expression: str) -> Asked:
    """Raises ValueError where it is no PromQL."""
    found = Asked()
    _look(promql_parser.parse(expression), frozenset(), found)
    return found


def _look(part: Any, grouped: frozenset[str], found: Asked) -> None:
    match type(part).__name__:
        case "VectorSelector":
            matched = {matcher.name for matcher in part.matchers.matchers}
            found.figures.add(part.name)
            found.labels |= {(part.name, label) for label in (matched | grouped) - GIVEN}
        case "MatrixSelector":
            _look(part.vector_selector, grouped, found)
        case "AggregateExpr":
            by = frozenset(part.modifier.labels) if part.modifier is not None else frozenset()
            _look(part.expr, grouped | by, found)
        case _:
            for below in _parts(part):
                _look(below, grouped, found)


def _parts(part: Any) -> Iterator[Any]:
    for name in ("lhs", "rhs", "expr"):
        if (below := getattr(part, name, None)) is not None:
            yield below
    yield from getattr(part, "args", [])
