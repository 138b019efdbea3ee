from pathlib import Path
from typing import Annotated

import typer
from rich.filesize import decimal

from flashcards.cli.options import AsJson, Id, Ids, Limit, Target, as_architecture, connect
from flashcards.cli.output import (
    age,
    moment,
    print_deleted,
    print_facts,
    print_item,
    print_json,
    print_list,
    print_path,
    print_table,
)
from flashcards.cli.work import learn
from flashcards.contract.learners import Learner, Matrix, Version
from flashcards.contract.specs import Scenario

app = typer.Typer(no_args_is_help=True)
app.command()(learn)
COLUMNS = ("id", "name", "architecture", "scenario", "version", "tasks", "age")
VERSIONS = ("version", "parent", "task", "strategy", "MAE or accuracy", "weights", "age")
Number = Annotated[int, typer.Argument(metavar="VERSION", min=0, show_default=False)]


@app.command()
def create(
    ctx: typer.Context,
    model: Annotated[
        str | None, typer.Argument(metavar="[MODEL]", help="id of the model to begin with", show_default=False)
    ] = None,
    name: Annotated[str | None, typer.Option(show_default="the model's or the architecture's")] = None,
    architecture: Annotated[
        str | None, typer.Option(metavar="NAME|JSON", show_default="blk_4_fil_32", help="where no model is given")
    ] = None,
    scenario: Annotated[Scenario | None, typer.Option(show_default="reconstruction")] = None,
    noise: Annotated[
        float | None, typer.Option(help="denoising: deviation of what is added", show_default="0.1")
    ] = None,
    classifier: Annotated[
        str | None, typer.Option(metavar="MODEL", help="of classes: the classifier to begin with", show_default=False)
    ] = None,
    autoencoder: Annotated[
        str | None, typer.Option(metavar="MODEL", help="and what makes cards for it", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a learner, from models or from nothing."""
    with connect(ctx) as client:
        found = client.learners.create(
            name,
            model,
            as_architecture(architecture),
            scenario=scenario,
            noise=noise,
            classifier=classifier,
            autoencoder=autoencoder,
        )
    print_item(found, _facts, as_json)


@app.command()
def ls(
    ctx: typer.Context,
    compare: Annotated[
        str | None, typer.Option(metavar="ID", help="those of this comparison", show_default=False)
    ] = None,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List learners. Those of comparisons are listed with --compare."""
    with connect(ctx) as client:
        found = client.learners.of_compare(compare) if compare else client.learners.each()
        print_list(found, limit, COLUMNS, _row, as_json)


@app.command()
def show(ctx: typer.Context, id: Id, as_json: AsJson = False) -> None:
    """Show a learner."""
    with connect(ctx) as client:
        print_item(client.learners.get(id), _facts, as_json)


@app.command()
def versions(ctx: typer.Context, id: Id, limit: Limit = 50, as_json: AsJson = False) -> None:
    """List the versions of a learner."""
    with connect(ctx) as client:
        print_list(client.learners.each_version(id), limit, VERSIONS, _version_row, as_json)


@app.command()
def matrix(
    ctx: typer.Context,
    id: Id,
    csv: Annotated[bool, typer.Option("--csv", help="print CSV")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the error on each task after each task."""
    with connect(ctx) as client:
        if csv:
            typer.echo(client.learners.matrix_csv(id), nl=False)
            return
        found = client.learners.matrix(id)
    print_json(found) if as_json else _print_matrix(found)


@app.command()
def pull(ctx: typer.Context, id: Id, number: Number, to: Target = Path(), as_json: AsJson = False) -> None:
    """Download the weights of a version, a safetensors file."""
    with connect(ctx) as client:
        print_path(client.learners.weights(id, number, to), as_json)


@app.command()
def bundle(ctx: typer.Context, id: Id, number: Number, to: Target = Path(), as_json: AsJson = False) -> None:
    """Download a version as a bundle for another installation, where `models import` takes it in."""
    with connect(ctx) as client:
        print_path(client.learners.bundle(id, number, to), as_json)


@app.command()
def model(ctx: typer.Context, id: Id, number: Number, as_json: AsJson = False) -> None:
    """Make a model of a version, for jobs that read models."""
    with connect(ctx) as client:
        found = client.learners.as_model(id, number)
    print_json(found) if as_json else typer.echo(found.id)


@app.command()
def rollback(ctx: typer.Context, id: Id, number: Number, as_json: AsJson = False) -> None:
    """Let the next task start from an earlier version. Those after it stay."""
    with connect(ctx) as client:
        print_item(client.learners.roll_back(id, number), _facts, as_json)


@app.command()
def rm(ctx: typer.Context, ids: Ids, as_json: AsJson = False) -> None:
    """Delete learners, with all their versions."""
    with connect(ctx) as client:
        for id in ids:
            client.learners.delete(id)
    print_deleted(ids, as_json)


def _row(learner: Learner) -> tuple[object, ...]:
    at = "-" if learner.version is None else learner.version
    named = (learner.id, learner.name, learner.architecture_name, learner.scenario)
    return *named, at, len(learner.tasks), age(learner.created_at)


def _version_row(version: Version) -> tuple[object, ...]:
    measure = version.measures[-1] if version.measures else None
    newest = None if measure is None else measure.accuracy if measure.mae is None else measure.mae
    return (
        version.number,
        "-" if version.parent is None else version.parent,
        version.task,
        version.strategy.kind if version.strategy else "-",
        _number(newest),
        decimal(version.size),
        age(version.created_at),
    )


def _facts(learner: Learner) -> list[tuple[str, object]]:
    low, high = learner.range
    cut = "cut to the range" if learner.clip else "not cut"
    noise = "" if learner.noise is None else f", noise {learner.noise:g}, {cut}"
    memory = learner.memory
    return [
        ("id", learner.id),
        ("name", learner.name),
        ("architecture", learner.architecture_name),
        ("scenario", f"{learner.scenario}{noise}"),
        ("input", f"{learner.input or 'as the first task says'}, {low:g} to {high:g}"),
        *([("began with", learner.model)] if learner.model else []),
        *([("cards from", learner.autoencoder_architecture.name)] if learner.autoencoder_architecture else []),
        *([("belongs to", learner.compare)] if learner.compare else []),
        ("version", "none yet" if learner.version is None else learner.version),
        ("tasks", ", ".join(learner.tasks) or "-"),
        *(
            []
            if memory is None
            else [("memory", ", ".join(f"{name} {decimal(size)}" for name, size in memory if size))]
        ),
        ("keeps data", "images of earlier tasks" if learner.keeps_data else "no"),
        ("created", moment(learner.created_at)),
    ]


def _print_matrix(matrix: Matrix) -> None:
    rows = zip(matrix.versions, matrix.tasks, matrix.matrix, strict=True)
    print_table(("version", "after", *matrix.tasks), ((number, task, *map(_number, row)) for number, task, row in rows))
    told = [(f"average {'MAE' if matrix.metric == 'mae' else 'accuracy'}", matrix.average)]
    if matrix.matrix_without_task_id is not None:
        told.append(("without task id", matrix.average_without_task_id))
    told += [("BWT", matrix.bwt), ("FWT", matrix.fwt)]
    told += [("forgetting", matrix.forgetting)] if matrix.metric == "accuracy" else []
    print_facts([(name, _number(value)) for name, value in told])


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
