"""What the commands print: tables for people on standard output, JSON for programs, complaints on standard error."""

import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import typer
from pydantic_core import to_json
from rich.console import Console
from rich.table import Table
from rich.text import Text

from flashcards.contract.resources import Problem
from flashcards.errors import ApiError

Item = TypeVar("Item")

#: A pipe has no width: nothing is cut off there.
PIPE_WIDTH = 400


def console() -> Console:
    return Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)


def print_json(value: Any) -> None:
    typer.echo(to_json(value, indent=2).decode())


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """One line a row. The first column holds ids: it is never cut."""
    cells = [[str(cell) for cell in row] for row in rows]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(columns[0], no_wrap=True, min_width=max((len(row[0]) for row in cells), default=0))
    for column in columns[1:]:
        table.add_column(column, no_wrap=True)
    for row in cells:
        table.add_row(*map(Text, row))
    console().print(table)


def print_facts(facts: Iterable[tuple[str, object]]) -> None:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts:
        grid.add_row(name, Text(str(value)))
    console().print(grid)


def print_item(item: Item, facts: Callable[[Item], Iterable[tuple[str, object]]], as_json: bool) -> None:
    print_json(item) if as_json else print_facts(facts(item))


def print_list(
    items: Iterable[Item],
    limit: int,
    columns: Sequence[str],
    row: Callable[[Item], Sequence[object]],
    as_json: bool,
) -> None:
    found = list(islice(items, limit + 1))
    if as_json:
        print_json(found[:limit])
        return
    print_table(columns, map(row, found[:limit]))
    if len(found) > limit:
        say(f"there are more than {limit}: --limit lists more")


def print_path(path: Path, as_json: bool) -> None:
    print_json({"path": path}) if as_json else typer.echo(path)


def print_paths(paths: Sequence[Path], as_json: bool) -> None:
    print_json({"paths": paths}) if as_json else typer.echo("\n".join(map(str, paths)))


def print_deleted(ids: Sequence[str], as_json: bool) -> None:
    print_json({"deleted": ids}) if as_json else typer.echo(f"deleted {', '.join(ids)}")


def say(text: str) -> None:
    typer.echo(text, err=True)


def complain(error: Exception, as_json: bool = False) -> None:
    if as_json:
        told = error.problem if isinstance(error, ApiError) else {"title": type(error).__name__, "detail": str(error)}
        say(to_json(told, indent=2).decode())
        return
    lines = in_words(error.problem) if isinstance(error, ApiError) else [str(error)]
    say("\n".join(["flashcards: " + lines[0], *lines[1:]]))


def in_words(problem: Problem) -> list[str]:
    """Title, detail and fields, and no sentence twice: the detail is often the fields in a row."""
    fields = problem.errors or []
    lines = [problem.title]
    if problem.detail and not any(field.message in problem.detail for field in fields):
        lines.append(f"  {problem.detail}")
    return lines + [f"  {field.field}: {field.message}" for field in fields]


def moment(at: datetime) -> str:
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S}"


def age(at: datetime) -> str:
    """Short, for tables: 40s, 5m, 3h, 12d."""
    seconds = (datetime.now(UTC) - at).total_seconds()
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f}{unit}"
    return f"{max(0.0, seconds):.0f}s"
