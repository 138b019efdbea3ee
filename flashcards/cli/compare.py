from typing import Annotated, Literal

import typer

from flashcards.cli.options import (
    AsJson,
    Labels,
    Tracked,
    as_architecture,
    as_jitter,
    as_strategy,
    given,
    on_the_queue,
    spec_option,
)
from flashcards.cli.work import Attempts, Detach, Device, Timeout, do
from flashcards.contract.specs import CompareSpec, Scenario


def compare(
    ctx: typer.Context,
    data: Annotated[list[str], typer.Option(metavar="ID", help="a dataset; the tasks, in order", show_default=False)],
    strategy: Annotated[
        list[str], typer.Option(metavar="NAME|JSON", help="such as naive, or its fields", show_default=False)
    ],
    seeds: Annotated[str | None, spec_option(CompareSpec, "seeds", metavar="N,N,...")] = None,
    architecture: Annotated[str | None, spec_option(CompareSpec, "architecture", metavar="NAME|JSON")] = None,
    range: Annotated[str | None, spec_option(CompareSpec, "range", metavar="LOW,HIGH")] = None,
    scenario: Annotated[Scenario | None, spec_option(CompareSpec, "scenario")] = None,
    jitter: Annotated[
        list[str] | None,
        typer.Option(metavar="B,S", help="new_instance: brightness and saturation, one a dataset", show_default=False),
    ] = None,
    noise: Annotated[float | None, spec_option(CompareSpec, "noise")] = None,
    epochs: Annotated[int | None, spec_option(CompareSpec, "epochs")] = None,
    batch_size: Annotated[int | None, spec_option(CompareSpec, "batch_size")] = None,
    learning_rate: Annotated[float | None, spec_option(CompareSpec, "learning_rate")] = None,
    optimizer: Annotated[Literal["adam", "sgd"] | None, spec_option(CompareSpec, "optimizer")] = None,
    autoencoder_epochs: Annotated[int | None, spec_option(CompareSpec, "autoencoder_epochs")] = None,
    decay: Annotated[float | None, spec_option(CompareSpec, "decay")] = None,
    validation_share: Annotated[float | None, spec_option(CompareSpec, "validation_share")] = None,
    patience: Annotated[int | None, spec_option(CompareSpec, "patience")] = None,
    label: Labels = None,
    device: Device = None,
    timeout: Timeout = None,
    max_attempts: Attempts = None,
    tracking: Tracked = None,
    detach: Detach = False,
    as_json: AsJson = False,
) -> None:
    """Compare strategies on the same sequence of tasks. Give --data and --strategy as often as needed."""
    spec = given(
        kind="compare",
        datasets=data,
        strategies=[as_strategy(each) for each in strategy],
        seeds=seeds.split(",") if seeds else None,
        architecture=as_architecture(architecture),
        range=range.split(",") if range else None,
        scenario=scenario,
        jitters=[as_jitter(each) for each in jitter] if jitter else None,
        optimizer=optimizer,
        autoencoder_epochs=autoencoder_epochs,
        noise=noise,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        decay=decay,
        validation_share=validation_share,
        patience=patience,
        **on_the_queue(label, device, timeout, max_attempts, tracking),
    )
    do(ctx, spec, detach, as_json)


def add_to(app: typer.Typer) -> None:
    app.command()(compare)
