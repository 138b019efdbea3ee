"""Commands that become a process of the service. Signals then reach it and nobody in between."""

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from flashcards.cli.options import AsJson, given

Home = Annotated[
    Path | None, typer.Option(envvar="FLASHCARDS_HOME", show_default="~/.local/share/flashcards", help="data folder")
]
Host = Annotated[str | None, typer.Option(envvar="FLASHCARDS_HOST", show_default="127.0.0.1")]
Port = Annotated[int | None, typer.Option(envvar="FLASHCARDS_PORT", min=0, max=65535, show_default="8642")]


def become(module: str, *words: str, **settings: object) -> None:
    said = {f"FLASHCARDS_{name.upper()}": str(value) for name, value in given(**settings).items()}
    os.environ.update(said, PYTHONSAFEPATH="1")  # a folder named `service` where the user stands is not ours
    os.execv(sys.executable, [sys.executable, "-m", module, *words])


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


def courier(home: Home = None) -> None:
    """Start one process that brings deliveries of webhooks, and nothing else."""
    become("worker.post", home=home)


def backup(
    target: Annotated[Path, typer.Argument(help="a folder, brought up to date if it is a backup; or a file NAME.tar")],
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Copy the record and all files that it refers to, while the service runs."""
    become("service.backup", str(target), *flags(json=as_json), home=home)


def restore(
    source: Annotated[Path, typer.Argument(help="what `flashcards backup` made")],
    check: Annotated[bool, typer.Option("--check", help="only read it, and see that it is whole")] = False,
    keep_store: Annotated[
        bool, typer.Option("--keep-store", help="the store has files that are not in the backup: let them be collected")
    ] = False,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Make an installation of a backup, where there is none yet: any database, any store."""
    become("service.restore", str(source), *flags(check=check, keep_store=keep_store, json=as_json), home=home)


def flags(**said: bool) -> list[str]:
    return [f"--{name.replace('_', '-')}" for name, wanted in said.items() if wanted]


def add_to(app: typer.Typer) -> None:
    for command in (serve, api, worker, courier, backup, restore):
        app.command()(command)
