"""What a person would look at when something does not work, in the order in which they would."""

import os
import subprocess
import sys

import typer
from pydantic import TypeAdapter, ValidationError
from rich.text import Text

from flashcards.cli.options import AsJson, connect
from flashcards.cli.output import console, print_json
from flashcards.findings import Finding, unseen

MARKS = {True: ("✓", "green"), False: ("✗", "bold red"), None: ("-", "dim")}
FINDINGS = TypeAdapter(list[Finding])
LOOK_SECONDS = 60


def doctor(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Look at the service and all that it needs, and say what to do where something is wrong."""
    from flashcards.client.addresses import is_local

    with connect(ctx) as client:
        findings = client.examine()
        if not findings[0].ok and is_local(client.url):
            findings += look_here()
    well = all(finding.ok is not False for finding in findings)
    print_json({"ok": well, "findings": findings}) if as_json else _print(findings)
    if not well:
        raise typer.Exit(1)


def look_here() -> list[Finding]:
    """Would the service start on this machine? Its own side knows, in a process of its own."""
    command = [sys.executable, "-m", "service.doctor"]
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=LOOK_SECONDS, check=True)
        return FINDINGS.validate_json(done.stdout)
    except (subprocess.SubprocessError, ValidationError) as error:
        return [unseen("this machine", f"could not be looked at: {error}")]


def _print(findings: list[Finding]) -> None:
    width = max(len(finding.what) for finding in findings)
    for finding in findings:
        mark, style = MARKS[finding.ok]
        console().print(Text.assemble((mark, style), f" {finding.what:<{width}}  {finding.found}"), soft_wrap=True)
        if finding.advice:
            console().print(Text(f"  {'':<{width}}  {finding.advice}", style="bold"), soft_wrap=True)


def add_to(app: typer.Typer) -> None:
    app.command()(doctor)
