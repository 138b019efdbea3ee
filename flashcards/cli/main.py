import errno
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import flashcards
from flashcards.cli import (
    capsule,
    cards,
    compare,
    datasets,
    demo,
    doctor,
    exits,
    jobs,
    keys,
    learners,
    models,
    processes,
    storage,
    submissions,
    uploads,
    webhooks,
    work,
)
from flashcards.cli.options import FOR_PROGRAMS
from flashcards.cli.output import complain
from flashcards.errors import FlashcardsError


class InWords(TyperGroup):
    """What goes wrong is said in words, or as JSON where that was asked for; a traceback is for defects of ours."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except FlashcardsError as error:
            wrong: Exception = error
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            wrong = error
        complain(wrong, as_json=ctx.meta.get(FOR_PROGRAMS, False))
        raise typer.Exit(exits.of_error(wrong))


app = typer.Typer(
    cls=InWords,
    help="Capture what a network knows, and replay it after the data is gone.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for part in (processes, demo, doctor, work, compare, capsule, storage):
    part.add_to(app)
app.add_typer(models.app, name="models", help="Networks: architecture and weights.")
app.add_typer(datasets.app, name="datasets", help="Images to train and to evaluate on.")
app.add_typer(jobs.app, name="jobs", help="Work asked for: how far it is, what came of it.")
app.add_typer(cards.app, name="cards", help="Sets of flashcards.")
app.add_typer(learners.app, name="learners", help="Networks that learn task after task.")
app.add_typer(submissions.app, name="submissions", help="Messages on the queue: what came of them.")
app.add_typer(uploads.app, name="uploads", help="Large files on their way: push one again to go on.")
app.add_typer(keys.app, name="keys", help="Who may come in, and how far.")
app.add_typer(webhooks.app, name="webhooks", help="Who is told when jobs end.")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"flashcards {flashcards.__version__}")
        raise typer.Exit


@app.callback()
def root(
    ctx: typer.Context,
    url: Annotated[
        str | None,
        typer.Option(envvar="FLASHCARDS_URL", show_default="http://127.0.0.1:8642", help="where the service is"),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    ctx.obj = url
