"""`vae_replay`, generative replay (Shin et al., 2017): a variational autoencoder beside the learner draws old images.

Before a task it draws c = D(z), z ~ N(0, 1), and the learner replays them as it would cards. While the task is learnt
the generator learns as well, a step for each of the learner's, on the same new images and on its own old draws.

A classifier is held to what its old self says of the draws: cross-entropy against softmax(f_old(c)) over all old
classes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional as F

from engine.data import Images
from engine.errors import StrategyUnfit
from engine.models import build
from engine.resume import Training
from engine.strategies.base import Kept, Strategy
from engine.strategies.distilling import padded
from engine.strategies.flashcards import save_sheet
from engine.strategies.prior import prior_samples
from engine.strategies.replay import Replay, derived_seed
from engine.strategies.setting import Setting
from engine.work import Product
from flashcards.contract.architecture import Architecture
from flashcards.contract.families.vae import VaeArchitecture
from flashcards.contract.image import ImageShape
from flashcards.contract.strategies import VaeReplay

if TYPE_CHECKING:
    from engine.lesson import Lesson

OWN_STREAM = 2**34  # of the first generator's weights
MOST_BLOCKS, FILTERS = 4, 32  # where the learner's own shape says nothing
CLASSIFIER_FILTERS = 16  # beside a tasknet, so that its share of the time is no larger than the classifier's own
ADAM = ("step", "exp_avg", "exp_avg_sq")


def generator_of(architecture: Architecture, image: ImageShape) -> VaeArchitecture:
    """As the learner where that is made of blocks, else as deep as the images allow."""
    if architecture.family in ("blk", "vae"):
        told = {"blocks": architecture.blocks, "filters": architecture.filters, "head": architecture.head}
        return VaeArchitecture(family="vae", activation=architecture.activation, **told)
    for blocks in range(MOST_BLOCKS, 0, -1):
        filters = FILTERS if architecture.task == "reconstruct" else CLASSIFIER_FILTERS
        head = architecture.head if architecture.task == "reconstruct" else "linear"
        found = VaeArchitecture(family="vae", blocks=blocks, filters=filters, head=head)
        if found.fits(image):
            return found
    raise StrategyUnfit(
        f"vae_replay needs a generator for images of {image}, whose sides must be even; take flashcards"
    )


@torch.no_grad()
def old_answers(setting: Setting, images: Images) -> torch.Tensor | None:
    """p_NK of the base version's classifier; of an autoencoder None, the images themselves being the answers."""
    if setting.classes is None:
        return None
    parts = []
    for first in range(0, len(images), setting.chunk):
        rows = np.arange(first, min(first + setting.chunk, len(images)))
        parts.append(torch.softmax(setting.base(images.batch(rows, setting.device)), dim=1))
        setting.between()
    return padded(torch.cat(parts), setting.classes.total)


class GenerativeReplay(Strategy):
    def __init__(self, setting: Setting) -> None:
        config: VaeReplay = setting.config
        spec, device = setting.work.spec, setting.device
        self.setting, self.weight = setting, config.weight
        self.architecture = generator_of(setting.work.learner.architecture, setting.images.shape)
        first = torch.Generator().manual_seed(derived_seed(spec.seed, OWN_STREAM))
        self.vae = build(self.architecture, setting.images.shape, first).to(device)
        if setting.state:
            self.vae.load_state_dict(setting.state)
            seed = derived_seed(spec.seed, setting.number)
            samples_NHWC = prior_samples(setting, self.vae.eval(), self.architecture, config.count, seed)
            self.replay = Replay(Images(samples_NHWC, setting.images.range), spec.seed, spec.batch_size)
            self.answers_NK = old_answers(setting, self.replay.images)
        elif setting.names:
            setting.report.note("no generator was kept of the earlier tasks: nothing of them is replayed")

    def begin(self, training: Training, lesson: Lesson) -> None:
        super().begin(training, lesson)
        self.vae.train()
        self.optimizer = torch.optim.Adam(self.vae.parameters(), lr=self.setting.work.spec.adam_rate, fused=True)

    def begin_step(self, rate: float) -> None:
        spec = self.setting.work.spec
        self.optimizer.param_groups[0]["lr"] = rate * (spec.adam_rate / spec.learning_rate)

    def after_step(self) -> None:
        y_BCHW, penalty = self.vae.in_training(self.shown_BCHW, self.generator)
        loss = F.l1_loss(y_BCHW, self.shown_BCHW) + penalty
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()

    def tensors(self) -> dict[str, torch.Tensor]:
        kept = {f"vae.{name}": tensor for name, tensor in self.vae.state_dict().items()}
        for name, parameter in self.vae.named_parameters():
            kept |= {f"adam.{key}.{name}": self.optimizer.state[parameter][key] for key in ADAM}
        return kept

    def take_up(self, tensors: dict[str, torch.Tensor]) -> None:
        self.vae.load_state_dict({n.removeprefix("vae."): t for n, t in tensors.items() if n.startswith("vae.")})
        for name, parameter in self.vae.named_parameters():
            self.optimizer.state[parameter] = {key: tensors[f"adam.{key}.{name}"] for key in ADAM}

    def end(self, network: torch.nn.Module) -> Kept:
        return Kept(state={name: tensor.detach().clone() for name, tensor in self.vae.state_dict().items()})

    def products(self) -> Iterable[Product]:
        return () if self.replay is None else [save_sheet(self.setting, self.replay.images.x_NHWC)]
