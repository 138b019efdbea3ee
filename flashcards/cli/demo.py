import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from flashcards.cli.options import AsJson
from flashcards.cli.output import console, print_json

if TYPE_CHECKING:
    from flashcards.demo import Summary


def demo(
    folder: Annotated[Path, typer.Option(help="where the pictures go")] = Path("flashcards-demo"),
    epochs: Annotated[int, typer.Option(min=1, help="passes over the digits")] = 20,
    count: Annotated[int, typer.Option(min=1, help="how many cards")] = 256,
    as_json: AsJson = False,
) -> None:
    """See it work in about a minute: digits in, an autoencoder and its flashcards out, a second one taught by them."""
    from flashcards.demo import run_demo

    # Told to go, we still stop the service that we started.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    summary = run_demo(folder, epochs=epochs, count=count, quiet=as_json)
    print_json(asdict(summary)) if as_json else _print(summary)


def _print(summary: "Summary") -> None:
    table = Table(title="Handwritten digits, 16 x 16", title_justify="left", show_header=False)
    table.add_row("network", f"{summary.network}, {summary.parameters:,} parameters")
    table.add_row("test MAE", f"{summary.test_mae:.4f}   (a constant image: {summary.constant_mae:.4f})")
    table.add_row("PSNR", f"{summary.psnr:.2f} dB")
    table.add_row("cards", f"{summary.cards:,} from mazes, r = {summary.r}")
    table.add_row("gamma2", f"{summary.gamma2_first:.4f} at pass 1, {summary.gamma2_last:.4f} at pass {summary.r}")
    again = f"{summary.taught_mae:.4f}   (test MAE; it has seen {summary.taught_by}, and no digit)"
    table.add_row("taught by cards", again)
    steps = "   ".join(f"{name} {seconds:.1f}" for name, seconds in summary.seconds.items())
    table.add_row("seconds", f"{steps}   together {sum(summary.seconds.values()):.1f}")
    table.add_row("contact sheet", str(summary.sheet))
    table.add_row("reconstructions", str(summary.reconstructions))
    console().print(table)


def add_to(app: typer.Typer) -> None:
    app.command()(demo)
