from pathlib import Path
from typing import Annotated

import typer
from rich.filesize import decimal

from flashcards.cli.options import AsJson, Id, Ids, Labels, Limit, Target, as_labels, connect
from flashcards.cli.output import age, moment, print_deleted, print_item, print_json, print_list, print_path
from flashcards.cli.watch import print_outcome, result_facts
from flashcards.cli.watch import watch as watch_job
from flashcards.contract.resources import Job, JobState, JobSummary
from flashcards.contract.specs import JobKind
from flashcards.progress import in_words

app = typer.Typer(no_args_is_help=True)
COLUMNS = ("id", "kind", "state", "done", "age", "labels")


@app.command()
def ls(
    ctx: typer.Context,
    state: Annotated[JobState | None, typer.Option(help="only those in this state")] = None,
    kind: Annotated[JobKind | None, typer.Option(help="only those of this kind")] = None,
    label: Labels = None,
    parent: Annotated[
        str | None, typer.Option(metavar="ID", help="only the children of this job; none: no children of any")
    ] = None,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List jobs."""
    with connect(ctx) as client:
        print_list(client.jobs.each(state, kind, as_labels(label), parent), limit, COLUMNS, _row, as_json)


@app.command()
def show(ctx: typer.Context, id: Id, as_json: AsJson = False) -> None:
    """Show a job: how far it is, its attempts, what it made."""
    with connect(ctx) as client:
        print_item(client.jobs.get(id), _facts, as_json)


@app.command()
def watch(ctx: typer.Context, id: Id, as_json: AsJson = False) -> None:
    """Watch a job until it has ended. Ctrl-C asks whether to cancel it, or only to stop watching."""
    with connect(ctx) as client:
        print_outcome(watch_job(client, client.jobs.get(id), quiet=as_json), as_json)


@app.command()
def cancel(ctx: typer.Context, id: Id, as_json: AsJson = False) -> None:
    """Stop a job."""
    with connect(ctx) as client:
        job = client.jobs.cancel(id)
    print_json(job) if as_json else typer.echo(job.state if job.state == "cancelled" else "cancel requested")


@app.command()
def retry(ctx: typer.Context, id: Id, as_json: AsJson = False) -> None:
    """Queue a failed or cancelled job again. It goes on from its last resume point."""
    with connect(ctx) as client:
        job = client.jobs.retry(id)
    print_json(job) if as_json else typer.echo(job.state)


@app.command()
def logs(ctx: typer.Context, id: Id, as_json: AsJson = False) -> None:
    """Print what the runner printed."""
    with connect(ctx) as client:
        text = client.jobs.logs(id)
    print_json({"lines": text.splitlines()}) if as_json else typer.echo(text, nl=False)


@app.command()
def report(ctx: typer.Context, id: Id, to: Target = Path(), as_json: AsJson = False) -> None:
    """Download the report of a job that has ended: one HTML file with its pictures inside. With --json, in numbers."""
    with connect(ctx) as client:
        print_json(client.jobs.report(id)) if as_json else print_path(client.jobs.save_report(id, to), as_json)


@app.command()
def rm(ctx: typer.Context, ids: Ids, as_json: AsJson = False) -> None:
    """Delete ended jobs with their events and files. Models and flashcards that they made stay."""
    with connect(ctx) as client:
        for id in ids:
            client.jobs.delete(id)
    print_deleted(ids, as_json)


def _row(job: JobSummary) -> tuple[object, ...]:
    return job.id, job.kind, job.state, f"{job.progress.fraction:.0%}", age(job.created_at), _labels(job)


def _labels(job: JobSummary) -> str:
    return ", ".join(f"{key}={value}" for key, value in job.labels.items())


def _facts(job: Job) -> list[tuple[str, object]]:
    facts: list[tuple[str, object]] = [("id", job.id), ("kind", job.kind), ("state", job.state)]
    if job.state in ("running", "waiting"):
        facts.append(("progress", in_words(job.progress)))
    if job.queue_position is not None:
        facts.append(("place", f"{job.queue_position} in queue {job.queue}"))
    if job.error is not None:
        facts.append(("error", f"{job.error.title}: {job.error.detail}"))
    if job.labels:
        facts.append(("labels", _labels(job)))
    facts.append(("created", moment(job.created_at)))
    for attempt in job.attempts:
        words = [attempt.outcome or "running", *([attempt.reason] if attempt.reason else [])]
        facts.append((f"attempt {attempt.number}", f"{moment(attempt.started_at)}, {': '.join(words)}"))
    facts += [("artifact", f"{artifact.name}, {decimal(artifact.size)}") for artifact in job.artifacts]
    return facts + result_facts(job)
