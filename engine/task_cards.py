"""Cards of one earlier task, made with the network of the base version: what is known of a task without its data."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from engine import capsule
from engine.cards import within
from engine.choice import Bench, choose_r, choose_source
from engine.errors import Diverged, NoCapsule, NoPass
from engine.files import digest_of
from engine.making import iterate
from engine.models import Autoencoder
from engine.passes import Passes
from engine.passes.choose import on_cuda
from engine.passes.torch_passes import TorchPasses
from engine.sources import Source
from engine.sources.by_class import classes_in_turn
from engine.strategies.replay import derived_seed
from engine.strategies.setting import Setting
from engine.work import ModelInput, Report, TaskInput
from flashcards.contract.class_moments import ClassMoments
from flashcards.contract.recipe import Recipe


@dataclass(frozen=True)
class Said:
    """Notes that name the task they are about."""

    report: Report
    task: str

    def note(self, text: str) -> None:
        self.report.note(f"task {self.task}: {text}")


@dataclass(frozen=True, kw_only=True)
class TaskCards:
    model: ModelInput
    open: Callable[[int], Source]
    source: Source
    r: int
    count: int
    seed: int
    passes: Passes
    threads: int
    chunk: int
    between: Callable[[], None]
    moments: ClassMoments | None = None  # cards are of one class after the other

    def classes(self) -> np.ndarray | None:
        """Which class each card was drawn for, as the task's own labels count from 0; None: from all at once."""
        return None if self.moments is None else classes_in_turn(self.moments, 0, self.count)

    def make(self, epoch: int = 0) -> np.ndarray:
        """x_NHWC. Each epoch has its own; those of epoch 0 are the recipe's."""
        source = self.open(derived_seed(self.seed, epoch)) if epoch else self.source
        parts = []
        for first in range(0, self.count, self.chunk):
            x_BCHW, _ = iterate(self.passes, source.start(first, self.chunk), self.r, lambda _: None, lambda: False)
            parts.append(x_BCHW[: self.count - first].permute(0, 2, 3, 1).cpu().numpy())
            self.between()
        cards_NHWC = np.ascontiguousarray(np.concatenate(parts))
        if not np.isfinite(cards_NHWC).all():
            raise Diverged(
                f"cards of source {source.name} left the finite numbers within {self.r} passes: take a smaller r"
            )
        return within(cards_NHWC, self.model.range)

    def recipe(self) -> Recipe:
        return Recipe(
            model_digest=self.model.digest,
            source=self.source.name,
            seed=self.seed,
            r=self.r,
            count=self.count,
            input=self.model.input,
            range=self.model.range,
            dtype="float32",
            backend=self.passes.name,
            threads=self.threads,
            chunk=self.chunk,
            source_version=self.source.version,
            latent_scale=self.source.latent_scale,
            by_class=self.moments is not None,
            capsule_digest=self.model.capsule_digest if self.source.name == "capsule" else None,
        )


def open_task_cards(
    setting: Setting,
    task: TaskInput,
    count: int,
    seed: int,
    source: str = "auto",
    r: int | str = "auto",
    by_class: bool = False,
    wide: bool = True,
) -> TaskCards:
    """`by_class` and `wide` as for any source (`engine.sources`)."""
    device, chunk = setting.device, setting.chunk
    digest = None if task.capsule is None else digest_of(task.capsule)
    network, model = setting.maker
    model = replace(model, capsule=task.capsule, capsule_digest=digest)
    bench = Bench(network, model, capsule.load(model), device, chunk, setting.between, wide)
    if source == "capsule" and bench.capsule is None:
        raise NoCapsule(f"nothing was measured of task {task.name!r}: take source 'auto', 'latent' or 'maze'")
    # Where there is a capsule its Gaussian is the task's own; random latents would be of all tasks at once.
    asked = "capsule" if source == "auto" and bench.capsule is not None else source
    said = Said(setting.report, task.name)
    opened = choose_source(bench, asked, seed, said)
    passes = choose_r(bench, r, opened, said)
    if passes == 0 and opened.starts_as_image:
        raise NoPass(f"source {opened.name} starts from images, which are no cards before a pass: take r of at least 1")
    moments = bench.capsule.by_class if by_class and opened.name == "capsule" else None

    def start(seed: int) -> Source:
        return bench.open(opened.name, seed, by_class)

    return TaskCards(
        model=model,
        open=start,
        source=opened if moments is None else start(seed),
        moments=moments,
        r=passes,
        count=count,
        seed=seed,
        # One backend, whatever the clock says: a training that is taken up again needs the same cards to the bit.
        passes=_passes(setting, network, model),
        threads=setting.work.threads,
        chunk=chunk,
        between=setting.between,
    )


def _passes(setting: Setting, network: Autoencoder, model: ModelInput) -> Passes:
    if setting.device.type == "cuda":
        return on_cuda(network, model.input, setting.chunk, setting.device)
    return TorchPasses(network, setting.device)


def as_batches(x_NHWC: np.ndarray, chunk: int, device: torch.device) -> list[torch.Tensor]:
    """x_BCHW, channels last."""
    x_NCHW = torch.from_numpy(x_NHWC).permute(0, 3, 1, 2)
    return [x_NCHW[first : first + chunk].to(device) for first in range(0, len(x_NHWC), chunk)]
