import base64
import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

import flashcards
from flashcards.contract.reports import Report
from flashcards.contract.resources import Event
from service.reports.chart import grouped
from service.reports.pictures import Picture
from service.reports.told import in_words, tell, words

TEMPLATES = Path(__file__).parent / "templates"
STYLE = (TEMPLATES / "report.css").read_text()
#: The one style is its own, known by its digest; pictures are within; a script has no place in it.
CONTENT_POLICY = (
    "default-src 'none'; img-src data:; "
    f"style-src 'sha256-{base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
)


def render(report: Report, pictures: Sequence[Picture]) -> str:
    """The same record makes the same page: nothing of the moment of asking is in it."""
    job = report.job
    result = job.result.model_dump(mode="json") if job.result else {}
    spec = job.spec.model_dump(mode="json", exclude={"kind", "labels"})
    metrics = {name: [(point.step, point.value) for point in points] for name, points in report.metrics.items()}
    return _template().render(
        job=job,
        asked=[(words(name), in_words(value, report.names)) for name, value in spec.items() if value is not None],
        told=tell(result, report.names),
        charts=grouped(metrics),
        pictures=pictures,
        history=report.history,
        spec=json.dumps(job.spec.model_dump(mode="json", exclude_none=True), indent=2, ensure_ascii=False),
        style=STYLE,
        version=flashcards.__version__,
    )


@cache
def _template() -> Template:
    folder = FileSystemLoader(TEMPLATES)
    environment = Environment(
        loader=folder, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"moment": _moment, "lasting": _lasting, "size": _size, "said": _said}
    return environment.get_template("report.html")


def _moment(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC" if at else "-"


def _lasting(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    parts = ((hours, "h"), (minutes, "min"))
    return " ".join([*(f"{number} {unit}" for number, unit in parts if number), f"{rest:.1f} s"])


def _size(size: float) -> str:
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def _said(event: Event) -> str:
    data = event.data
    if event.kind == "resume_point":
        return f"kept at step {data.get('step', '?')}"
    said = [data.get("state"), data.get("reason"), (data.get("error") or {}).get("title"), data.get("text")]
    return ", ".join(str(each) for each in said if each)
