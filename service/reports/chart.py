"""Curves as the numbers of an SVG: the template only writes them down."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 640.0, 200.0
RULES = 4
#: Many more points than a drawing has pixels only make the file large.
POINTS_AT_MOST = 400
SIDES = re.compile(r"^(train|validation|test|held_out)_")

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Rule:
    y: float
    label: str


@dataclass(frozen=True)
class Line:
    name: str
    path: str
    last: str


@dataclass(frozen=True)
class Chart:
    title: str
    lines: list[Line]
    rules: list[Rule]
    first: str
    last: str
    x_name: str


def grouped(metrics: Mapping[str, Points], x_name: str = "step") -> list[Chart]:
    """One drawing for what is measured on the same scale, as on training and validation images."""
    groups: dict[str, dict[str, Points]] = {}
    for name, points in metrics.items():
        groups.setdefault(SIDES.sub("", name), {})[name] = points
    drawn = (chart(next(iter(lines)) if len(lines) == 1 else name, lines, x_name) for name, lines in groups.items())
    return [each for each in drawn if each is not None]


def chart(title: str, named: Mapping[str, Points], x_name: str) -> Chart | None:
    """None where no line has two points."""
    lines = {name: _thinned(points) for name, points in named.items() if len(points) > 1}
    if not lines:
        return None
    xs, ys = zip(*(point for points in lines.values() for point in points), strict=True)
    across, up = Scale(min(xs), max(xs), 0.0, WIDTH), Scale(min(ys), max(ys), HEIGHT, 0.0)
    levels = [up.low + (up.high - up.low) * step / RULES for step in range(RULES + 1)]
    return Chart(
        title=title.replace("_", " "),
        lines=[Line(name.replace("_", " "), _path(points, across, up), figure(points[-1][1])) for name, points in
               lines.items()],
        rules=[Rule(up(level), figure(level)) for level in levels],
        first=figure(min(xs)),
        last=figure(max(xs)),
        x_name=x_name,
    )  # fmt: skip


@dataclass(frozen=True)
class Scale:
    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return round(self.start + share * (self.end - self.start), 2)


def figure(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.4g}"


def _path(points: Iterable[tuple[float, float]], across: Scale, up: Scale) -> str:
    return " ".join(f"{across(x)},{up(y)}" for x, y in points)


def _thinned(points: Points) -> Points:
    if len(points) <= POINTS_AT_MOST:
        return points
    places = {round(place * (len(points) - 1) / (POINTS_AT_MOST - 1)) for place in range(POINTS_AT_MOST)}
    return [points[place] for place in sorted(places)]
