from pathlib import Path
from typing import Annotated

import typer
from rich.filesize import decimal

from flashcards.cli.bars import transfer_bar
from flashcards.cli.options import AsJson, ExistingFile, Id, Ids, Limit, Target, as_architecture, connect
from flashcards.cli.output import age, moment, print_deleted, print_item, print_json, print_list, print_path, say
from flashcards.cli.watch import print_outcome, watch
from flashcards.contract.ancestry import Imported
from flashcards.contract.architecture import Task
from flashcards.contract.resources import Lineage, Model
from flashcards.contract.results import ExportResult

app = typer.Typer(no_args_is_help=True)
COLUMNS = ("id", "name", "architecture", "input", "age")


@app.command()
def push(
    ctx: typer.Context,
    file: ExistingFile,
    name: Annotated[str | None, typer.Option(show_default="the file's name")] = None,
    architecture: Annotated[
        str | None, typer.Option(show_default="from the file's metadata", help="a name such as blk_4_fil_64, or JSON")
    ] = None,
    input: Annotated[str | None, typer.Option(help="height x width x channels", show_default="32x32x3")] = None,
    range: Annotated[str | None, typer.Option(help="the network's pixel values", show_default="0,1")] = None,
    bottleneck: Annotated[
        str | None,
        typer.Option(help="of an ONNX file: the tensor that is the latent", show_default="the smallest that fits"),
    ] = None,
    classifier: Annotated[bool, typer.Option("--classifier", help="of an ONNX file: it says classes")] = False,
    as_json: AsJson = False,
) -> None:
    """Upload a safetensors file, a .pt state dict, or an ONNX file."""
    task: Task | None = "classify" if classifier else None
    with connect(ctx) as client, transfer_bar(file.name, quiet=as_json) as progress:
        model = client.models.push(file, name, as_architecture(architecture), input, range, progress, bottleneck, task)
    print_item(model, _facts, as_json)


@app.command("import")
def import_(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(metavar="FILE | models:/NAME/VERSION", help="or models:/NAME@ALIAS")],
    name: Annotated[str | None, typer.Option(show_default="as there")] = None,
    file: Annotated[
        str | None, typer.Option(help="which of a registered model's files holds the weights", show_default=False)
    ] = None,
    architecture: Annotated[
        str | None, typer.Option(show_default="from the file's metadata", help="a name such as blk_4_fil_64, or JSON")
    ] = None,
    input: Annotated[str | None, typer.Option(help="height x width x channels", show_default="the file's")] = None,
    range: Annotated[str | None, typer.Option(help="the network's pixel values", show_default="the file's")] = None,
    as_json: AsJson = False,
) -> None:
    """Take in a bundle of another installation, or a registered model of the service's tracking server."""
    if not source.startswith("models:/"):
        _import_bundle(ctx, Path(source), name, as_json)
        return
    fields = {"name": name, "file": file, "architecture": as_architecture(architecture), "input": input}
    with connect(ctx) as client:
        model = client.models.take(source, range=range.split(",") if range else None, **fields)
    print_item(model, _facts, as_json)


def _import_bundle(ctx: typer.Context, file: Path, name: str | None, as_json: bool) -> None:
    """A model, or a learner."""
    if not file.is_file():
        raise typer.BadParameter(f"file {str(file)!r} does not exist", param_hint="source")
    with connect(ctx) as client, transfer_bar(file.name, quiet=as_json) as progress:
        taken = client.models.import_bundle(file, name, progress)
    print_json(taken) if as_json else typer.echo(taken.made.id)


@app.command()
def ls(ctx: typer.Context, limit: Limit = 50, as_json: AsJson = False) -> None:
    """List models."""
    with connect(ctx) as client:
        print_list(client.models.each(), limit, COLUMNS, _row, as_json)


@app.command()
def show(ctx: typer.Context, id: Id, as_json: AsJson = False) -> None:
    """Show a model."""
    with connect(ctx) as client:
        print_item(client.models.get(id), _facts, as_json)


@app.command()
def pull(ctx: typer.Context, id: Id, to: Target = Path(), as_json: AsJson = False) -> None:
    """Download the weights, a safetensors file, or the ONNX file as it was uploaded."""
    with connect(ctx) as client:
        print_path(client.models.weights(id, to), as_json)


@app.command()
def export(ctx: typer.Context, id: Id, to: Target = Path(), as_json: AsJson = False) -> None:
    """Make an ONNX file of a model, checked against it, and download it."""
    with connect(ctx) as client:
        job = watch(client, client.export(id), quiet=as_json)
        if job.state != "succeeded":
            print_outcome(job, as_json)
        if isinstance(job.result, ExportResult):
            say(f"answers as the model does, within {job.result.max_abs_difference:.1e}")
        print_path(client.models.onnx(id, to), as_json)


@app.command()
def bundle(ctx: typer.Context, id: Id, to: Target = Path(), as_json: AsJson = False) -> None:
    """Download a zip of weights, capsule, recipes, metrics, lineage and a model card, for another installation."""
    with connect(ctx) as client:
        print_path(client.models.bundle(id, to), as_json)


@app.command()
def probe(ctx: typer.Context, id: Id, file: ExistingFile, as_json: AsJson = False) -> None:
    """Attach a probe: images x and your own network's answers y, which every use is checked against."""
    with connect(ctx) as client:
        print_item(client.models.probe(id, file), _facts, as_json)


@app.command()
def lineage(ctx: typer.Context, id: Id, as_json: AsJson = False) -> None:
    """Show where a model came from and what was made of it."""
    with connect(ctx) as client:
        print_item(client.models.lineage(id), _descent, as_json)


@app.command()
def rm(ctx: typer.Context, ids: Ids, as_json: AsJson = False) -> None:
    """Delete models."""
    with connect(ctx) as client:
        for id in ids:
            client.models.delete(id)
    print_deleted(ids, as_json)


def _row(model: Model) -> tuple[object, ...]:
    return model.id, model.name, model.architecture_name, str(model.input), age(model.created_at)


def _facts(model: Model) -> list[tuple[str, object]]:
    low, high = model.range
    return [
        ("id", model.id),
        ("name", model.name),
        ("architecture", f"{model.architecture_name}, {model.architecture.manner}"),
        ("parameters", f"{model.parameters:,}"),
        ("input", f"{model.input}, {low:g} to {high:g}"),
        ("origin", model.origin),
        *([("job", model.job)] if model.job else []),
        *([("probe", model.probe)] if model.probe else []),
        ("created", moment(model.created_at)),
        ("size", decimal(model.size)),
        ("digest", model.digest),
        *([("uploaded as", model.uploaded_digest)] if model.uploaded_digest else []),
        *((theirs, f"taken for {ours}") for theirs, ours in (model.mapping or {}).items()),
    ]


def _descent(lineage: Lineage) -> list[tuple[str, object]]:
    return [
        ("model", lineage.model),
        ("made by", lineage.job or "upload"),
        ("made from", ", ".join(lineage.made_from) or "-"),
        ("flashcards", ", ".join(lineage.flashcards) or "-"),
        ("used by", ", ".join(lineage.used_by) or "-"),
        *(_story(lineage.imported) if lineage.imported else []),
    ]


def _story(imported: Imported) -> list[tuple[str, object]]:
    """In the words, and by the ids, of the installation that it came from."""
    story = imported.lineage
    datasets = [f"{each.name} ({each.id}, digest {each.digest[:12]})" for each in story.datasets]
    return [
        ("imported from", f"{imported.id}, {imported.made_by}, bundle {imported.bundle[:12]}"),
        *([("origin there", imported.model.origin)] if imported.model else []),
        ("made there by", ", ".join(f"{each.kind} {each.id}" for each in story.jobs) or "-"),
        ("from", ", ".join([*datasets, *(f"{each.name} ({each.id})" for each in story.models)]) or "-"),
        ("recipes", ", ".join(each.id for each in imported.recipes) or "-"),
    ]
