from typing import TYPE_CHECKING

from flashcards.contract.learners import Learner, Matrix
from flashcards.views.html import Html, card, element, facts, number, written

if TYPE_CHECKING:
    from flashcards.client import Client

CELL = "padding:4px 8px;text-align:right"


def show_learner(client: "Client", learner: Learner) -> Html:
    matrix = client.learners.matrix(learner.id)
    rows = [
        ("id", learner.id),
        ("network", learner.architecture_name),
        ("scenario", learner.scenario),
        ("version", "none yet" if learner.version is None else learner.version),
        ("keeps data", "yes" if learner.keeps_data else "no"),
        *((name, number(value)) for name, value in _sums(matrix) if value is not None),
    ]
    heat = [_heat_map(matrix)] if matrix.matrix else [element("p", written("It has learnt nothing yet."))]
    return card(learner.name, facts(rows), *heat)


def _sums(matrix: Matrix) -> list[tuple[str, float | None]]:
    average = "AvgMAE" if matrix.metric == "mae" else "accuracy"
    without = ("without task id", matrix.average_without_task_id)
    return [(average, matrix.average), without, ("BWT", matrix.bwt), ("FWT", matrix.fwt)]


def _heat_map(matrix: Matrix) -> Html:
    """A row a task learnt, a column a task measured: a column that darkens downwards is a task being forgotten."""
    of_errors = matrix.metric == "mae"
    seen = [value for row in matrix.matrix for value in row if value is not None]
    worst = (max(seen, default=0.0) or 1.0) if of_errors else 1.0
    words = "MAE after / on" if of_errors else "accuracy after / on"
    head = element("tr", element("th", written(words)), *(_name(task) for task in matrix.tasks))
    rows = (
        element("tr", _name(task), *(_cell(value, worst, of_errors) for value in row))
        for task, row in zip(matrix.tasks, matrix.matrix, strict=False)
    )
    return element("table", head, *rows)


def _name(task: str) -> Html:
    return element("th", written(task), style=f"{CELL};max-width:12em;overflow-wrap:anywhere")


def _cell(value: float | None, worst: float, of_errors: bool) -> Html:
    if value is None:
        return element("td", written("-"), style=CELL)
    bad = value / worst if of_errors else 1 - value
    return element("td", written(f"{value:.4f}"), style=f"{CELL};background:rgba(220,38,38,{0.7 * bad:.2f})")
