import typer
from rich.filesize import decimal

from flashcards.cli.options import AsJson, Ids, Limit, connect
from flashcards.cli.output import age, moment, print_deleted, print_list
from flashcards.contract.uploads import Upload

app = typer.Typer(no_args_is_help=True)
COLUMNS = ("id", "size", "here", "age", "until", "became", "digest")


@app.command()
def ls(ctx: typer.Context, limit: Limit = 50, as_json: AsJson = False) -> None:
    """List large files on their way, and those that arrived within a day."""
    with connect(ctx) as client:
        print_list(client.uploads.each(), limit, COLUMNS, _row, as_json)


@app.command()
def rm(ctx: typer.Context, ids: Ids, as_json: AsJson = False) -> None:
    """Drop uploads with all that is here of them."""
    with connect(ctx) as client:
        for id in ids:
            client.uploads.delete(id)
    print_deleted(ids, as_json)


def _row(upload: Upload) -> tuple[object, ...]:
    here = f"{upload.parts - len(upload.missing)} of {upload.parts} parts"
    became = upload.became.rpartition("/")[2] if upload.became else "-"
    until = moment(upload.expires_at)
    return upload.id, decimal(upload.size), here, age(upload.created_at), until, became, upload.digest[:12]
