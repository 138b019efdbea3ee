"""Options that several commands share, and what they become."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flashcards.cli import completion
from flashcards.contract.architecture import Architecture
from flashcards.contract.specs import Spec
from flashcards.contract.tracking import Tracking

if TYPE_CHECKING:
    from flashcards.client import Client


def _pairs(texts: list[str] | None) -> list[str]:
    for text in texts or []:
        if "=" not in text:
            raise typer.BadParameter(f"{text!r} has no =; write --label key=value")
    return texts or []


def _tracking(texts: list[str] | None) -> list[str]:
    for text in texts or []:
        if text != "off" and text.partition("=")[0] not in Tracking.model_fields:
            raise typer.BadParameter(f"{text!r} is neither off nor one of experiment=, run_name=, register_as=")
    return texts or []


def _for_programs(ctx: typer.Context, wanted: bool) -> bool:
    ctx.meta[FOR_PROGRAMS] = wanted
    return wanted


#: In the context of a command: whether a program reads what it prints.
FOR_PROGRAMS = "flashcards.json"
AsJson = Annotated[bool, typer.Option("--json", callback=_for_programs, help="print JSON, also of what goes wrong")]
Limit = Annotated[int, typer.Option(min=1, help="how many to list, newest first")]
Labels = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="KEY=VALUE", callback=_pairs, show_default=False, help="may be given many times"),
]
Tracked = Annotated[
    list[str] | None,
    typer.Option(
        "--tracking",
        metavar="off|FIELD=VALUE",
        callback=_tracking,
        show_default=False,
        help="of the service's tracking server: off, experiment=, run_name=, register_as=; may be given many times",
    ),
]
ExistingFile = Annotated[Path, typer.Argument(exists=True, dir_okay=False, readable=True)]
Target = Annotated[Path, typer.Option("--to", help="file or folder", show_default="here, named by its id")]
Ids = Annotated[list[str], typer.Argument(metavar="ID...", autocompletion=completion.of_group, show_default=False)]
Id = Annotated[str, typer.Argument(metavar="ID", autocompletion=completion.of_group, show_default=False)]


def connect(ctx: typer.Context) -> "Client":
    # `flashcards serve` and `--help` do without the HTTP client.
    from flashcards.client import Client

    try:
        return Client(ctx.obj)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--url") from None


def spec_option(spec: type[Spec], field: str, *flags: str, **more: Any) -> Any:
    """An option for a field of a job spec, with the contract's description and default."""
    known = spec.model_fields[field]
    return typer.Option(*flags, help=known.description, show_default=_shown(known.default), **more)


def _shown(default: Any) -> str | bool:
    if default is None:
        return False
    if isinstance(default, Architecture):
        return default.name
    return ",".join(f"{end:g}" for end in default) if isinstance(default, tuple) else str(default)


def given(**fields: Any) -> dict[str, Any]:
    """What the user said; the rest is for the service to fill in."""
    return {name: value for name, value in fields.items() if value is not None}


def as_labels(pairs: list[str] | None) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in pairs or [])


def as_tracking(texts: list[str] | None) -> dict[str, Any] | None:
    told = {"mirror": False} if "off" in (texts or []) else {}
    return told | dict(text.split("=", 1) for text in texts or [] if text != "off") or None


def on_the_queue(
    label: list[str] | None,
    device: str | None,
    timeout: int | None,
    max_attempts: int | None,
    tracking: list[str] | None = None,
) -> dict[str, Any]:
    """What every job may be told beside its work."""
    return {
        "labels": as_labels(label),
        "device": device,
        "timeout_seconds": timeout,
        "max_attempts": max_attempts,
        "tracking": as_tracking(tracking),
    }


def as_architecture(text: str | None) -> Any:
    """A name, or JSON with the fields of its family."""
    return _name_or_json(text, "--architecture")


def as_strategy(text: str | None) -> Any:
    """A name, which stands for a strategy as it is by default, or JSON with its fields."""
    found = _name_or_json(text, "--strategy")
    return {"kind": found} if isinstance(found, str) else found


def as_jitter(text: str | None) -> Any:
    """Brightness and saturation."""
    if text is None:
        return None
    brightness, _, saturation = text.partition(",")
    return {"brightness": brightness, "saturation": saturation or "0"}


def _name_or_json(text: str | None, option: str) -> Any:
    if text is None or not text.lstrip().startswith("{"):
        return text
    try:
        return json.loads(text)
    except ValueError:
        raise typer.BadParameter("this is not JSON", param_hint=option) from None
