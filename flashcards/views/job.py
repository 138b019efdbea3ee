from typing import TYPE_CHECKING

from flashcards.contract.resources import Artifact, Job, MetricPoint
from flashcards.views.files import fetched
from flashcards.views.html import Html, card, element, facts, number, written

if TYPE_CHECKING:
    from flashcards.client import Client

PICTURES = ("image/png", "image/jpeg")
PICTURES_SHOWN = 4
PICTURE_BYTES = 4 * 1024**2
COLOURS = ("#2563eb", "#d97706", "#059669", "#7c3aed")
WIDTH, HEIGHT = 480, 120


def show_job(client: "Client", job: Job) -> Html:
    curves = client.jobs.metrics(job.id).metrics
    drawn = [_curves(curves)] if any(len(points) > 1 for points in curves.values()) else []
    shown = [made for made in job.artifacts if made.media_type in PICTURES and made.size <= PICTURE_BYTES]
    pictures = (_picture(client, job.id, artifact) for artifact in shown[:PICTURES_SHOWN])
    return card(f"{job.kind}: {job.state}", _bar(job), facts(_rows(job)), *drawn, *pictures)


def _rows(job: Job) -> list[tuple[str, object]]:
    rows: list[tuple[str, object]] = [("id", job.id), *job.labels.items()]
    if job.queue_position is not None:
        rows.append(("place", f"{job.queue_position} in queue {job.queue}"))
    if job.error is not None:
        rows.append(("error", f"{job.error.title}: {job.error.detail}"))
    result = job.result.model_dump(exclude_none=True) if job.result else {}
    return rows + [(name, number(value)) for name, value in result.items() if isinstance(value, str | int | float)]


def _bar(job: Job) -> Html:
    share = 1.0 if job.state == "succeeded" else min(1.0, max(0.0, job.progress.fraction))
    colour = {"succeeded": "#059669", "failed": "#dc2626"}.get(job.state, "#2563eb")
    done = element("div", style=f"width:{share:.1%};height:6px;background:{colour}")
    return element("div", done, style="width:100%;background:#8884;margin-bottom:6px")


def _picture(client: "Client", job_id: str, artifact: Artifact) -> Html:
    return fetched(
        artifact.name, artifact.media_type, lambda folder: client.jobs.artifact(job_id, artifact.name, folder)
    )


def _curves(metrics: dict[str, list[MetricPoint]]) -> Html:
    """All on one scale: what is measured while learning are errors of one kind."""
    lines = [(name, points) for name, points in metrics.items() if len(points) > 1][: len(COLOURS)]
    seen = [point for _, points in lines for point in points]
    steps, values = [point.step for point in seen], [point.value for point in seen]
    names, strokes = [], []
    for colour, (name, points) in zip(COLOURS, lines, strict=False):
        places = (
            f"{_along(point.step, steps) * WIDTH:.1f},{(1 - _along(point.value, values)) * HEIGHT:.1f}"
            for point in points
        )
        strokes.append(element("polyline", points=" ".join(places), fill="none", stroke=colour))
        names.append(element("span", written(f"{name} {number(points[-1].value)}  "), style=f"color:{colour}"))
    box = f"-2 -2 {WIDTH + 4} {HEIGHT + 4}"
    return element("figure", element("svg", *strokes, viewBox=box, width=WIDTH), element("figcaption", *names))


def _along(value: float, values: list[float] | list[int]) -> float:
    low, high = min(values), max(values)
    return (value - low) / (high - low) if high > low else 0.5
