"""Commands that become a process of the service. Signals then reach it and nobody in between."""

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from flashcards.cli.options import given

Home = Annotated[
    Path | None, typer.Option(envvar="FLASHCARDS_HOME", show_default="~/.local/share/flashcards", help="data folder")
]
Host = Annotated[str | None, typer.Option(envvar="FLASHCARDS_HOST", show_default="127.0.0.1")]
Port = Annotated[int | None, typer.Option(envvar="FLASHCARDS_PORT", min=0, max=65535, show_default="8642")]


def become(module: str, **settings: object) -> None:
    said = {f"FLASHCARDS_{name.upper()}": str(value) for name, value in given(**settings).items()}
    os.environ.update(said, PYTHONSAFEPATH="1")  # a folder named `service` where the user stands is not ours
    os.execv(sys.executable, [sys.executable, "-m", module])


def serve(home: Home = None, host: Host = None, port: Port = None) -> None:
    """Start everything on this machine: API, worker, and the record they share."""
    become("service", home=home, host=host, port=port)


def api(home: Home = None, host: Host = None, port: Port = None) -> None:
    """Start one API process."""
    become("service.api", home=home, host=host, port=port)


def worker(
    queue: Annotated[
        Literal["cpu", "gpu"] | None, typer.Option(envvar="FLASHCARDS_QUEUE", show_default="cpu", help="jobs it takes")
    ] = None,
    home: Home = None,
) -> None:
    """Start one worker process."""
    become("worker", queue=queue, home=home)


def add_to(app: typer.Typer) -> None:
    for command in (serve, api, worker):
        app.command()(command)
