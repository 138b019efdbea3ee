from pathlib import Path
from typing import Annotated

import typer
from rich.filesize import decimal

from flashcards.cli.bars import transfer_bar
from flashcards.cli.options import AsJson, Id, Ids, Limit, Target, connect
from flashcards.cli.output import age, moment, print_deleted, print_item, print_list, print_path, print_paths
from flashcards.cli.published import fetch_published, push_published
from flashcards.contract.resources import Dataset, Preparation, Split

app = typer.Typer(no_args_is_help=True)
ID_PREFIX = "dataset_"
SHOWN_LABELS = 5
COLUMNS = ("id", "name", "train", "test", "shape", "age")
Invert = Annotated[bool, typer.Option("--invert", help="keep 255 - x: dark ink on white becomes white on black")]


@app.command()
def push(
    ctx: typer.Context,
    path: Annotated[Path, typer.Argument(exists=True, readable=True)],
    name: Annotated[str | None, typer.Option(show_default="the file's name")] = None,
    input: Annotated[
        str | None, typer.Option(help="height x width x channels to bring images to", show_default="as they are")
    ] = None,
    invert: Invert = False,
    image: Annotated[str | None, typer.Option(help="parquet: column of the images", show_default="found")] = None,
    label: Annotated[str | None, typer.Option(help="parquet: column of the labels", show_default="found")] = None,
    as_json: AsJson = False,
) -> None:
    """Upload an npz (x, or x_train and x_test; labels y...), or a zip or folder of images, whose folders are labels.

    Or parquet with image bytes, or what MNIST, CIFAR and SVHN are published as: IDX, binary CIFAR and its tar.gz, .mat.
    """
    with connect(ctx) as client, transfer_bar(path.resolve().name, quiet=as_json) as progress:
        dataset = client.datasets.push(path, name, progress, input, invert, image, label)
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
def pull(
    ctx: typer.Context,
    what: Annotated[str, typer.Argument(metavar="ID|NAME", show_default=False)],
    to: Target = Path(),
    push: Annotated[bool, typer.Option("--push", help="upload the published files, prepared")] = False,
    input: Annotated[str, typer.Option(help="with --push: what images are brought to")] = "32x32x3",
    invert: Invert = False,
    as_json: AsJson = False,
) -> None:
    """Download the npz of a dataset, or a published dataset by its name.

    Names: mnist, fashion_mnist, cifar10, cifar100, svhn, omniglot. Their files are fetched from their publishers to
    NAME/ in the folder --to, or taken from FLASHCARDS_DATA where that names a folder with NAME.npz.
    """
    if what.startswith(ID_PREFIX):
        with connect(ctx) as client:
            print_path(client.datasets.download(what, to), as_json)
    elif push:
        with connect(ctx) as client:
            print_item(push_published(client, what, to, input, invert, as_json), _facts, as_json)
    else:
        print_paths(fetch_published(what, to, keep=True, quiet=as_json), as_json)


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
        *([("prepared", _done(dataset.preparation))] if dataset.preparation else []),
        *([("expires", moment(dataset.expires_at))] if dataset.expires_at else []),
        ("size", f"{decimal(dataset.size)}, {dataset.format}"),
        ("digest", dataset.digest),
        *([("uploaded as", dataset.uploaded_digest)] if dataset.uploaded_digest else []),
    ]


def _in_words(split: Split) -> str:
    labels = f", {split.classes} classes" if split.classes else ""
    labels += f" ({_some(split.labels)})" if split.labels else ""
    return f"{split.count:,} images of {split.shape}, {split.dtype} from {split.low:g} to {split.high:g}{labels}"


def _done(preparation: Preparation) -> str:
    words = [f"to {preparation.input}"] if preparation.input else []
    words += [f"{preparation.resize} resize"] if preparation.resize else []
    words += {"copied": ["grey copied to 3 channels"], "luma": ["colours to luma"], None: []}[preparation.channels]
    return ", ".join([*words, *(["inverted"] if preparation.invert else [])])


def _some(labels: list[str]) -> str:
    return ", ".join(labels[:SHOWN_LABELS]) + (", ..." if len(labels) > SHOWN_LABELS else "")
