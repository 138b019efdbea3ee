"""Ctrl-C while a job is watched: the job is somebody's work, so what becomes of it is asked, and never guessed."""

import sys
from typing import TYPE_CHECKING, NoReturn

import typer

from flashcards.cli.exits import INTERRUPTED
from flashcards.cli.output import say

if TYPE_CHECKING:
    from flashcards.client import Client

QUESTION = "Cancel the job, or only stop watching? [c]ancel, [S]top watching: "


def leave(client: "Client", id: str) -> NoReturn:
    if _wants_cancel():
        job = client.jobs.cancel(id)
        say(f"{id}: {'cancelled' if job.state == 'cancelled' else 'cancel requested'}")
    else:
        say(f"{id} goes on without you. To watch it again: flashcards jobs watch {id}")
    raise typer.Exit(INTERRUPTED)


def _wants_cancel() -> bool:
    """Only somebody at a terminal can say so; silence, and a second Ctrl-C, leave the job alone."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    try:
        typer.echo(QUESTION, err=True, nl=False)
        return sys.stdin.readline().strip().lower() in ("c", "cancel")
    except KeyboardInterrupt:
        say("")
        return False
