"""Commands that ask for work: train, capture, analyze, distill, learn, evaluate, predict."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from flashcards.cli.completion import known
from flashcards.cli.options import (
    AsJson,
    Labels,
    Tracked,
    as_architecture,
    as_jitter,
    as_strategy,
    connect,
    given,
    on_the_queue,
    spec_option,
)
from flashcards.cli.output import print_json, say
from flashcards.cli.watch import print_outcome, watch
from flashcards.contract.recipe import CardDtype, Source
from flashcards.contract.resources import Job
from flashcards.contract.results import CaptureResult
from flashcards.contract.specs import (
    AnalyzeSpec,
    CaptureSpec,
    DistillSpec,
    EvaluateSpec,
    LearnSpec,
    PredictSpec,
    Spec,
    TrainSpec,
)

DatasetArgument = Annotated[
    str,
    typer.Argument(metavar="DATASET", help="id of a dataset", autocompletion=known("datasets"), show_default=False),
]
ModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="id of a model", autocompletion=known("models"), show_default=False)
]
Device = Annotated[Literal["auto", "cpu", "gpu"] | None, spec_option(Spec, "device")]
Timeout = Annotated[int | None, spec_option(Spec, "timeout_seconds", "--timeout", metavar="SECONDS")]
Attempts = Annotated[int | None, spec_option(Spec, "max_attempts")]
Detach = Annotated[
    bool,
    typer.Option(
        "--detach/--wait", "-d/-w", help="print the job's id at once, or wait for its end and show how far it is"
    ),
]


def train(
    ctx: typer.Context,
    dataset: DatasetArgument,
    architecture: Annotated[str | None, spec_option(TrainSpec, "architecture", metavar="NAME|JSON")] = None,
    epochs: Annotated[int | None, spec_option(TrainSpec, "epochs")] = None,
    batch_size: Annotated[int | None, spec_option(TrainSpec, "batch_size")] = None,
    learning_rate: Annotated[float | None, spec_option(TrainSpec, "learning_rate")] = None,
    decay: Annotated[float | None, spec_option(TrainSpec, "decay")] = None,
    validation_share: Annotated[float | None, spec_option(TrainSpec, "validation_share")] = None,
    patience: Annotated[int | None, spec_option(TrainSpec, "patience")] = None,
    range: Annotated[str | None, spec_option(TrainSpec, "range", metavar="LOW,HIGH")] = None,
    through: Annotated[str | None, spec_option(TrainSpec, "through", metavar="MODEL")] = None,
    seed: Annotated[int | None, spec_option(TrainSpec, "seed")] = None,
    name: Annotated[str | None, spec_option(TrainSpec, "name")] = None,
    label: Labels = None,
    device: Device = None,
    timeout: Timeout = None,
    max_attempts: Attempts = None,
    tracking: Tracked = None,
    detach: Detach = False,
    as_json: AsJson = False,
) -> None:
    """Train a new autoencoder on a dataset, or a classifier on its labels."""
    spec = given(
        kind="train",
        dataset=dataset,
        architecture=as_architecture(architecture),
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        decay=decay,
        validation_share=validation_share,
        patience=patience,
        range=range.split(",") if range else None,
        through=through,
        seed=seed,
        name=name,
        **on_the_queue(label, device, timeout, max_attempts, tracking),
    )
    do(ctx, spec, detach, as_json)


def _number(text: str | None) -> int | str | None:
    """Or a word, as it is: the service says what is wrong with it."""
    return int(text) if text and text.isdigit() else text


def capture(
    ctx: typer.Context,
    model: ModelArgument,
    count: Annotated[int | None, spec_option(CaptureSpec, "count")] = None,
    r: Annotated[str | None, spec_option(CaptureSpec, "r", "--r", "-r", metavar="N|auto")] = None,
    source: Annotated[Source | None, spec_option(CaptureSpec, "source")] = None,
    seed: Annotated[int | None, spec_option(CaptureSpec, "seed")] = None,
    dtype: Annotated[CardDtype | None, spec_option(CaptureSpec, "dtype")] = None,
    recipe_only: Annotated[
        bool, typer.Option("--recipe-only", help="keep the recipe and the digest, not the cards")
    ] = False,
    backend: Annotated[str | None, spec_option(CaptureSpec, "backend")] = None,
    shards: Annotated[str | None, spec_option(CaptureSpec, "shards", metavar="N|auto")] = None,
    name: Annotated[str | None, spec_option(CaptureSpec, "name")] = None,
    sheet: Annotated[Path | None, typer.Option(help="save the contact sheet here, a PNG", show_default=False)] = None,
    label: Labels = None,
    device: Device = None,
    timeout: Timeout = None,
    max_attempts: Attempts = None,
    tracking: Tracked = None,
    detach: Detach = False,
    as_json: AsJson = False,
) -> None:
    """Capture what a model knows as flashcards, without any data."""
    if sheet and detach:
        raise typer.BadParameter("there is a contact sheet once the job has ended: leave --detach out")
    spec = given(
        kind="capture",
        model=model,
        count=count,
        r=_number(r),
        source=source,
        seed=seed,
        dtype=dtype,
        materialise=False if recipe_only else None,
        backend=backend,
        shards=_number(shards),
        name=name,
        **on_the_queue(label, device, timeout, max_attempts, tracking),
    )
    job = do(ctx, spec, detach, as_json)
    if sheet and job and isinstance(job.result, CaptureResult) and job.result.flashcards:
        with connect(ctx) as client:
            say(f"saved {client.flashcards.sheet(job.result.flashcards, sheet)}")


def analyze(
    ctx: typer.Context,
    model: ModelArgument,
    max_r: Annotated[int | None, spec_option(AnalyzeSpec, "max_r")] = None,
    count: Annotated[int | None, spec_option(AnalyzeSpec, "count")] = None,
    source: Annotated[Source | None, spec_option(AnalyzeSpec, "source")] = None,
    dataset: Annotated[str | None, spec_option(AnalyzeSpec, "dataset")] = None,
    retrain: Annotated[str | None, spec_option(AnalyzeSpec, "retrain", metavar="R,R,...")] = None,
    retrain_epochs: Annotated[int | None, spec_option(AnalyzeSpec, "retrain_epochs")] = None,
    seed: Annotated[int | None, spec_option(AnalyzeSpec, "seed")] = None,
    curves: Annotated[
        Path | None, typer.Option(help="save the plot over r here, a PNG: steps, FLSD, P1 and P2", show_default=False)
    ] = None,
    label: Labels = None,
    device: Device = None,
    timeout: Timeout = None,
    max_attempts: Attempts = None,
    tracking: Tracked = None,
    detach: Detach = False,
    as_json: AsJson = False,
) -> None:
    """See what each further pass does to cards, and how many of them to take."""
    if curves and detach:
        raise typer.BadParameter("there is a plot once the job has ended: leave --detach out")
    spec = given(
        kind="analyze",
        model=model,
        max_r=max_r,
        count=count,
        source=source,
        dataset=dataset,
        retrain=retrain.split(",") if retrain else None,
        retrain_epochs=retrain_epochs,
        seed=seed,
        **on_the_queue(label, device, timeout, max_attempts, tracking),
    )
    job = do(ctx, spec, detach, as_json)
    if curves and job:
        with connect(ctx) as client:
            say(f"saved {client.jobs.artifact(job.id, 'curves.png', curves)}")


def distill(
    ctx: typer.Context,
    flashcards: Annotated[
        str,
        typer.Argument(
            metavar="FLASHCARDS", help="id of flashcards", autocompletion=known("flashcards"), show_default=False
        ),
    ],
    architecture: Annotated[str | None, spec_option(DistillSpec, "architecture", metavar="NAME|JSON")] = None,
    epochs: Annotated[int | None, spec_option(DistillSpec, "epochs")] = None,
    batch_size: Annotated[int | None, spec_option(DistillSpec, "batch_size")] = None,
    learning_rate: Annotated[float | None, spec_option(DistillSpec, "learning_rate")] = None,
    decay: Annotated[float | None, spec_option(DistillSpec, "decay")] = None,
    dataset: Annotated[str | None, spec_option(DistillSpec, "dataset")] = None,
    seed: Annotated[int | None, spec_option(DistillSpec, "seed")] = None,
    name: Annotated[str | None, spec_option(DistillSpec, "name")] = None,
    label: Labels = None,
    device: Device = None,
    timeout: Timeout = None,
    max_attempts: Attempts = None,
    tracking: Tracked = None,
    detach: Detach = False,
    as_json: AsJson = False,
) -> None:
    """Teach a new network, of any architecture, from flashcards alone."""
    spec = given(
        kind="distill",
        flashcards=flashcards,
        architecture=as_architecture(architecture),
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        decay=decay,
        dataset=dataset,
        seed=seed,
        name=name,
        **on_the_queue(label, device, timeout, max_attempts, tracking),
    )
    do(ctx, spec, detach, as_json)


def learn(
    ctx: typer.Context,
    learner: Annotated[
        str,
        typer.Argument(metavar="LEARNER", help="id of a learner", autocompletion=known("learners"), show_default=False),
    ],
    dataset: DatasetArgument,
    strategy: Annotated[
        str | None, typer.Option(metavar="NAME|JSON", help="such as naive, or its fields", show_default="flashcards")
    ] = None,
    test_dataset: Annotated[str | None, spec_option(LearnSpec, "test_dataset")] = None,
    max_forgetting: Annotated[
        float | None, typer.Option(help="largest rise of an earlier task's error that is accepted", show_default=False)
    ] = None,
    jitter: Annotated[
        str | None,
        typer.Option(metavar="B,S", help="new_instance: brightness and saturation of the session", show_default=False),
    ] = None,
    base_version: Annotated[int | None, spec_option(LearnSpec, "base_version")] = None,
    epochs: Annotated[int | None, spec_option(LearnSpec, "epochs")] = None,
    batch_size: Annotated[int | None, spec_option(LearnSpec, "batch_size")] = None,
    learning_rate: Annotated[float | None, spec_option(LearnSpec, "learning_rate")] = None,
    optimizer: Annotated[Literal["adam", "sgd"] | None, spec_option(LearnSpec, "optimizer")] = None,
    autoencoder_epochs: Annotated[int | None, spec_option(LearnSpec, "autoencoder_epochs")] = None,
    decay: Annotated[float | None, spec_option(LearnSpec, "decay")] = None,
    patience: Annotated[int | None, spec_option(LearnSpec, "patience")] = None,
    seed: Annotated[int | None, spec_option(LearnSpec, "seed")] = None,
    name: Annotated[str | None, spec_option(LearnSpec, "name")] = None,
    label: Labels = None,
    device: Device = None,
    timeout: Timeout = None,
    max_attempts: Attempts = None,
    tracking: Tracked = None,
    detach: Detach = False,
    as_json: AsJson = False,
) -> None:
    """Teach a learner its next task, and keep what it knows by a strategy."""
    spec = given(
        kind="learn",
        learner=learner,
        dataset=dataset,
        strategy=as_strategy(strategy),
        test_dataset=test_dataset,
        max_forgetting=given(absolute=max_forgetting) or None,
        base_version=base_version,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        optimizer=optimizer,
        autoencoder_epochs=autoencoder_epochs,
        jitter=as_jitter(jitter),
        decay=decay,
        patience=patience,
        seed=seed,
        name=name,
        **on_the_queue(label, device, timeout, max_attempts, tracking),
    )
    do(ctx, spec, detach, as_json)


def evaluate(
    ctx: typer.Context,
    subject: Annotated[
        str, typer.Argument(metavar="MODEL|FLASHCARDS", help="id of a model or of flashcards", show_default=False)
    ],
    dataset: DatasetArgument,
    split: Annotated[Literal["auto", "train", "test"] | None, spec_option(EvaluateSpec, "split")] = None,
    label: Labels = None,
    device: Device = None,
    timeout: Timeout = None,
    max_attempts: Attempts = None,
    tracking: Tracked = None,
    detach: Detach = False,
    as_json: AsJson = False,
) -> None:
    """Measure how well a model reconstructs or classifies images, or how close flashcards come to them."""
    are_cards = subject.startswith("flashcards_")
    spec = given(
        kind="evaluate",
        model=None if are_cards else subject,
        flashcards=subject if are_cards else None,
        dataset=dataset,
        split=split,
        **on_the_queue(label, device, timeout, max_attempts, tracking),
    )
    do(ctx, spec, detach, as_json)


def predict(
    ctx: typer.Context,
    model: ModelArgument,
    dataset: DatasetArgument,
    rows: Annotated[str | None, spec_option(PredictSpec, "rows", metavar="ROW,ROW,...")] = None,
    limit: Annotated[int | None, spec_option(PredictSpec, "limit")] = None,
    split: Annotated[Literal["auto", "train", "test"] | None, spec_option(PredictSpec, "split")] = None,
    label: Labels = None,
    device: Device = None,
    timeout: Timeout = None,
    max_attempts: Attempts = None,
    tracking: Tracked = None,
    detach: Detach = False,
    as_json: AsJson = False,
) -> None:
    """Have a model answer a few images: reconstructions, or classes with their scores."""
    spec = given(
        kind="predict",
        model=model,
        dataset=dataset,
        rows=rows.split(",") if rows else None,
        limit=limit,
        split=split,
        **on_the_queue(label, device, timeout, max_attempts, tracking),
    )
    do(ctx, spec, detach, as_json)


def do(ctx: typer.Context, spec: dict[str, Any], detach: bool, as_json: bool) -> Job | None:
    """The job once it has succeeded; None if nobody waits for it."""
    with connect(ctx) as client:
        asked = client.submit(spec)
        if detach:
            print_json(asked) if as_json else typer.echo(asked.id)
            return None
        if not as_json:
            say(asked.id)
        job = watch(client, asked, quiet=as_json)
    print_outcome(job, as_json)
    return job


def add_to(app: typer.Typer) -> None:
    for command in (train, capture, analyze, distill, learn, evaluate, predict):
        app.command()(command)
