"""What is kept of images when they go, measured on this machine: nothing but the capsule leaves it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.filesize import decimal

from flashcards.cli.options import AsJson, connect
from flashcards.cli.output import print_facts, print_json, say
from flashcards.contract.architecture import Onnx


def capsule(
    ctx: typer.Context,
    model: Annotated[
        Path, typer.Option(exists=True, dir_okay=False, readable=True, help="a safetensors or an ONNX file")
    ],
    data: Annotated[Path, typer.Option(exists=True, readable=True, help="an npz, or a folder of images")],
    out: Annotated[Path | None, typer.Option(help="where it goes", show_default="beside the model")] = None,
    attach: Annotated[
        str | None, typer.Option(metavar="MODEL", help="attach it to this model of the service", show_default=False)
    ] = None,
    architecture: Annotated[
        str | None, typer.Option(show_default="from the file's metadata", help="blk_4_fil_64, or JSON")
    ] = None,
    input: Annotated[str | None, typer.Option(show_default="from the file's metadata", help="such as 32x32x3")] = None,
    range: Annotated[
        str | None, typer.Option(show_default="from the file's metadata", help="the network's pixel values")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure a model's capsule on the images it learnt from, here, and attach it if asked to."""
    target = out or model.with_suffix(".capsule.safetensors")
    known = {"architecture": architecture, "input": input, "range": range}
    if attach is not None and architecture is None:
        known = _as_read(ctx, attach, known)
    told = _measure([model, data, target], **known)
    if attach is not None:
        with connect(ctx) as client:
            client.models.attach_capsule(attach, told["path"])
        told["attached"] = attach
    print_json(told) if as_json else print_facts(_facts(told))
    if attach is None and not as_json:
        say("--attach MODEL hands it to the service")


def _as_read(ctx: typer.Context, id: str, known: dict[str, str | None]) -> dict[str, str | None]:
    """An ONNX file does not say which of its tensors is the latent; the service has found it."""
    with connect(ctx) as client:
        model = client.models.get(id)
    if not isinstance(model.architecture, Onnx):
        return known
    low, high = model.range
    read: dict[str, str | None] = {
        "architecture": model.architecture.model_dump_json(),
        "input": str(model.input),
        "range": f"{low},{high}",
    }
    return read | {name: text for name, text in known.items() if text is not None}


def _measure(places: list[Path], **known: str | None) -> dict[str, Any]:
    """In a process of its own: the network is the engine's, and the client has none."""
    options = [f"--{name}={text}" for name, text in known.items() if text is not None]
    command = [sys.executable, "-m", "engine.measure", *options, "--", *map(str, places)]
    # A folder named `engine` where the user stands is not ours.
    done = subprocess.run(command, env={**os.environ, "PYTHONSAFEPATH": "1"}, stdout=subprocess.PIPE)
    if done.returncode:
        raise typer.Exit(1)  # and it has said why
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _facts(told: dict[str, Any]) -> list[tuple[str, object]]:
    return [
        ("capsule", told["path"]),
        ("size", decimal(told["size"])),
        ("images", f"{told['count']:,}"),
        ("latent", "x".join(map(str, told["latent"]))),
        ("errors", f"{told['eps1']:.4g} to {told['eps2']:.4g}, mean {told['mean_error']:.4g}"),
        ("model digest", told["model_digest"]),
        *([("attached to", told["attached"])] if "attached" in told else []),
    ]


def add_to(app: typer.Typer) -> None:
    app.command()(capsule)
