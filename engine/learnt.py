"""What comes of a task that was learnt: the files of the new version, its row of the matrix, and pictures of both."""

import io
from dataclasses import replace

import numpy as np
import torch

from engine import capsule
from engine.desk import STATE_OF, Desk, Done
from engine.files import digest_of, safetensors_bytes, write_whole
from engine.learn_measures import largest
from engine.learn_plots import save_forgetting, save_matrix
from engine.models import build
from engine.pictures import RECONSTRUCTIONS, save_reconstructions
from engine.strategies.base import Kept
from engine.weights import WEIGHTS
from engine.work import Outcome, Product, Work
from flashcards.contract.capsule import Capsule
from flashcards.contract.results import LearnResult, Memory
from flashcards.contract.strategies import KEEPS_DATA

STATE = Product("state.safetensors", "application/octet-stream")
IMAGES = Product("images.npz", "application/octet-stream", shows_data=True)


def outcome(desk: Desk, done: Done) -> Outcome:
    out = desk.work.out
    capsules = [*(each.capsule for each in done.refreshed), _measured(desk, done)]
    kept = done.strategy.end(done.taught.network)
    saved = [capsule.save(out, each, capsule.of_task(number)) for number, each in enumerate(capsules, start=1)]
    products = [WEIGHTS, *saved, *save_kept(desk.work, kept), *done.strategy.products(), *_pictures(desk, done)]
    return Outcome(_result(desk, done, capsules, kept), products)


def _measured(desk: Desk, done: Done) -> Capsule:
    """The capsule of the new task, while its images are there."""
    images = desk.data.images
    every, digest = np.arange(len(images)), digest_of(desk.work.out / WEIGHTS.name)
    meter = capsule.measure(done.taught.network, images, every, desk.chunk, desk.device, desk.stop_if_asked)
    return meter.capsule(digest)


def save_kept(work: Work, kept: Kept) -> list[Product]:
    products, out = [], work.out
    if kept.state:
        write_whole(out / STATE.name, safetensors_bytes(kept.state, {STATE_OF: work.spec.strategy.kind}))
        products.append(STATE)
    if kept.images:
        buffer = io.BytesIO()
        np.savez(buffer, **kept.images)
        write_whole(out / IMAGES.name, buffer.getvalue())
        products.append(IMAGES)
    return products


def _pictures(desk: Desk, done: Done) -> list[Product]:
    out, learner = desk.work.out, desk.work.learner
    tasks = [*(task.name for task in learner.tasks), desk.name]
    products = []
    for number, test in enumerate([*desk.tests, desk.data.test], start=1):
        if test is not None:
            product = replace(RECONSTRUCTIONS, name=f"reconstructions-{number}.png")
            products.append(
                save_reconstructions(
                    out, done.taught.network, test.images, test.rows, desk.device, noise=desk.noise, product=product
                )
            )
    rows, title = [*learner.measures, done.row], f"{learner.architecture.name}, {learner.scenario}"
    return [*products, *save_matrix(out, tasks, rows, title), *save_forgetting(out, tasks, rows, title)]


def _result(desk: Desk, done: Done, capsules: list[Capsule], kept: Kept) -> LearnResult:
    spec, learner, shape, test = desk.work.spec, desk.work.learner, desk.data.images.shape, desk.data.test
    first = torch.Generator().manual_seed(spec.seed)
    untaught = build(learner.architecture, shape, first).to(desk.device).eval()
    worst = largest(done.rises)
    return LearnResult(
        base_version=spec.base_version,
        task=len(done.row),
        images=len(done.taught.train_rows),
        measures=done.row,
        before=None if desk.base is None else desk.measure(desk.name, desk.base, test),
        random_mae=desk.measure(desk.name, untaught, test).mae,
        forgetting=None if worst is None else worst.rise,
        forgetting_on=None if worst is None else worst.on,
        recipes=done.strategy.recipes,
        memory=Memory(
            network=learner.architecture.size(shape),
            capsules=sum(len(each.to_bytes()) for each in capsules),
            images=sum(array.nbytes for name, array in kept.images.items() if name.startswith("x_")),
            state=sum(tensor.nbytes for tensor in kept.state.values()),
        ),
        keeps_data=spec.strategy.kind in KEEPS_DATA,
        parameters=learner.architecture.parameters(shape),
        capsule=capsules[-1].facts,
        **done.taught.told(desk.work),
    )
