from typing import Annotated

import typer

from flashcards.cli.options import AsJson, Id, Limit, connect
from flashcards.cli.output import age, moment, print_item, print_list
from flashcards.contract.submissions import Submission, SubmissionState

app = typer.Typer(no_args_is_help=True)
COLUMNS = ("id", "state", "age", "job", "why not")


@app.command()
def ls(
    ctx: typer.Context,
    state: Annotated[SubmissionState | None, typer.Option(help="only those")] = None,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List what came of messages on the queue."""
    with connect(ctx) as client:
        print_list(client.submissions.each(state), limit, COLUMNS, _row, as_json)


@app.command()
def show(ctx: typer.Context, id: Id, as_json: AsJson = False) -> None:
    """Show what came of a message, by the id that its producer chose."""
    with connect(ctx) as client:
        print_item(client.submissions.get(id), _facts, as_json)


def _row(submission: Submission) -> tuple[object, ...]:
    why = submission.problem.detail if submission.problem else "-"
    return submission.id, submission.state, age(submission.created_at), submission.job or "-", why


def _facts(submission: Submission) -> list[tuple[str, object]]:
    facts: list[tuple[str, object]] = [("id", submission.id), ("state", submission.state)]
    if submission.job is not None:
        facts.append(("job", submission.job))
    if submission.problem is not None:
        facts.append(("why not", f"{submission.problem.title}. {submission.problem.detail}"))
    facts.append(("read", moment(submission.created_at)))
    return facts + [("refused", f"{moment(each.at)}: {each.problem.detail}") for each in submission.conflicts]
