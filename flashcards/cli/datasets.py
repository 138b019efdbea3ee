from pathlib import Path
from typing import Annotated

import typer
from rich.filesize import decimal

from flashcards.cli.bars import upload_bar
from flashcards.cli.options import AsJson, Id, Ids, Limit, Target, connect
from flashcards.cli.output import age, moment, print_deleted, print_item, print_list, print_path
from flashcards.contract.resources import Dataset, Split

app = typer.Typer(no_args_is_help=True)
SHOWN_LABELS = 5
COLUMNS = ("id", "name", "train", "test", "shape", "age")


@app.command()
def push(
    ctx: typer.Context,
    path: Annotated[Path, typer.Argument(exists=True, readable=True)],
    name: Annotated[str | None, typer.Option(show_default="the file's name")] = None,
    input: Annotated[
        str | None, typer.Option(help="height x width x channels to bring images to", show_default="as they are")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Upload an npz (x, or x_train and x_test; labels y...), or a zip or folder of images, whose folders are labels."""
    with connect(ctx) as client, upload_bar(path.resolve().name, quiet=as_json) as progress:
        dataset = client.datasets.push(path, name, progress, input)
    print_item(dataset, _facts, as_json)


@app.command()
def ls(ctx: typer.Context, limit: Limit = 50, as_json: AsJson = False) -> None:
    """List datasets."""
    with connect(ctx) as client:
        print_list(client.datasets.each(), limit, COLUMNS, _row, as_json)


@app.command()
def show(ctx: typer.Context, id: Id, as_json: AsJson = False) -> None:
    """Show a dataset."""
    with connect(ctx) as client:
        print_item(client.datasets.get(id), _facts, as_json)


@app.command()
def pull(ctx: typer.Context, id: Id, to: Target = Path(), as_json: AsJson = False) -> None:
    """Download the npz."""
    with connect(ctx) as client:
        print_path(client.datasets.download(id, to), as_json)


@app.command()
def rm(ctx: typer.Context, ids: Ids, as_json: AsJson = False) -> None:
    """Delete datasets."""
    with connect(ctx) as client:
        for id in ids:
            client.datasets.delete(id)
    print_deleted(ids, as_json)


def _row(dataset: Dataset) -> tuple[object, ...]:
    counts = [f"{dataset.splits[name].count:,}" if name in dataset.splits else "" for name in ("train", "test")]
    shape = next(str(split.shape) for split in dataset.splits.values())
    return dataset.id, dataset.name, *counts, shape, age(dataset.created_at)


def _facts(dataset: Dataset) -> list[tuple[str, object]]:
    return [
        ("id", dataset.id),
        ("name", dataset.name),
        *((name, _in_words(split)) for name, split in dataset.splits.items()),
        ("created", moment(dataset.created_at)),
        *([("expires", moment(dataset.expires_at))] if dataset.expires_at else []),
        ("size", f"{decimal(dataset.size)}, {dataset.format}"),
        ("digest", dataset.digest),
        *([("uploaded as", dataset.uploaded_digest)] if dataset.uploaded_digest else []),
    ]


def _in_words(split: Split) -> str:
    labels = f", {split.classes} classes" if split.classes else ""
    labels += f" ({_some(split.labels)})" if split.labels else ""
    return f"{split.count:,} images of {split.shape}, {split.dtype} from {split.low:g} to {split.high:g}{labels}"


def _some(labels: list[str]) -> str:
    return ", ".join(labels[:SHOWN_LABELS]) + (", ..." if len(labels) > SHOWN_LABELS else "")
