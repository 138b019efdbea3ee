"""What can be said of an earlier task without its images: its capsule for the new network, and how its error moved.

Draws from the old capsule are decoded by the old network: cards of the task. The new network encodes them, and a new
capsule is measured: z' = E'(D(z)). Its errors are those of cards; its count stays that of the images it goes back to.

For the errors the cards are made as hard as images. A card is an answer of the old network, which therefore hardly
misses it, and the new one may have learnt cards by heart; an image has something that no network knows. So noise is
added, just as much that the old network misses a card by what it missed images by, and both networks are measured on
these. Held against test images (digits, seven strategies, two seeds) the rise of an error was missed by 0.012 in the
median, and by 0.023 on bare cards; a task that is wholly forgotten already is misjudged by more.

Of what a model came with there is no capsule, and random latents are decoded to images that it never knew well: there
is little to forget about them. A few passes bring them to what it does know, and both networks are measured on those.
"""

import functools
import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.optimize import brentq

from engine.measures import mae_B
from engine.models import Autoencoder
from engine.noise import seen_through
from engine.strategies.replay import derived_seed
from engine.strategies.setting import Setting
from engine.task_cards import as_batches, open_task_cards
from engine.work import TaskInput
from flashcards.contract import capsule
from flashcards.contract.capsule import Capsule
from flashcards.contract.meter import Meter

FEWEST, MOST, A_NUMBER = 512, 5000, 8  # cards a task: so many for each number of a latent, to know its covariance by
MEASURED = 512  # of them, to measure errors on
OWN_STREAM = 2**33  # other draws than those that were replayed
HEALED = 3  # passes, after which random latents are images that the old network knows well
FINEST = 2.0**-12  # of the range: how closely the noise is found that it takes


@dataclass(frozen=True)
class Refreshed:
    capsule: Capsule
    base_error: float  # of the base version's network on the cards, made as hard as images
    new_error: float


def refresh(
    setting: Setting, number: int, task: TaskInput, network: Autoencoder, digest: str, known: float | None
) -> Refreshed:
    """`number` of the task among the earlier ones, `digest` of the new network, `known` the base version's error."""
    seed = derived_seed(setting.work.spec.seed, OWN_STREAM + number)
    latent = math.prod(setting.work.learner.architecture.latent_shape(setting.images.shape))
    drawn = min(MOST, max(FEWEST, A_NUMBER * latent))
    cards_NHWC = open_task_cards(setting, task, drawn, seed, wide=False).make()
    asked_NHWC = _questions(setting, task, cards_NHWC[:MEASURED], known, seed)
    base_error, new_error = (_error(setting, each, asked_NHWC) for each in (setting.base, network))
    return Refreshed(of_cards(setting, task, network, digest, cards_NHWC), base_error, new_error)


@torch.inference_mode()
def of_cards(setting: Setting, task: TaskInput, network: Autoencoder, digest: str, cards_NHWC: np.ndarray) -> Capsule:
    """The capsule that the new network gives cards of a task."""
    meter = Meter()
    for x_BCHW in as_batches(cards_NHWC, setting.chunk, setting.device):
        z = network.encoder(x_BCHW)
        error_B = mae_B(x_BCHW, network.decoder(z))
        meter.add(z.cpu().numpy(), error_B.cpu().numpy(), x_BCHW.cpu().numpy(), channel_axis=1)
        setting.between()
    measured = meter.capsule(digest, measured_on="cards")
    if task.capsule is None:
        return measured
    # What was told of the images themselves stays true, whatever becomes of the network.
    known = capsule.read(task.capsule.read_bytes())
    of_images = {name: getattr(known.facts, name) for name in ("count", "channel_mean", "channel_deviation")}
    return replace(measured, facts=measured.facts.model_copy(update=of_images), tones_CQ=known.tones_CQ)


def _questions(setting: Setting, task: TaskInput, cards_NHWC: np.ndarray, known: float | None, seed: int) -> np.ndarray:
    if task.capsule is None:
        return open_task_cards(setting, task, len(cards_NHWC), seed, source="latent", r=HEALED).make()
    return _as_hard_as(setting, cards_NHWC, known, seed)


def _as_hard_as(setting: Setting, cards_NHWC: np.ndarray, known: float | None, seed: int) -> np.ndarray:
    """Cards with so much noise that the base version's network misses them by `known`; bare ones where that is less."""
    if known is None:
        return cards_NHWC
    drawn_NHWC = np.random.Generator(np.random.Philox(key=[seed, 0])).standard_normal(cards_NHWC.shape, np.float32)

    def noisy(noise: float) -> np.ndarray:
        return cards_NHWC + np.float32(noise) * drawn_NHWC

    @functools.cache  # both ends are looked at twice
    def beyond(noise: float) -> float:
        return _error(setting, setting.base, noisy(noise)) - known

    most = setting.images.range[1] - setting.images.range[0]
    if not beyond(0.0) < 0:
        return cards_NHWC
    if not beyond(most) > 0:
        return noisy(most)
    return noisy(brentq(beyond, 0.0, most, xtol=most * FINEST))


@torch.inference_mode()
def _error(setting: Setting, network: Autoencoder, x_NHWC: np.ndarray) -> float:
    predict, total = seen_through(setting.noise, network), 0.0
    for x_BCHW in as_batches(x_NHWC, setting.chunk, setting.device):
        total += mae_B(x_BCHW, predict(x_BCHW)).sum(dtype=torch.float64).item()
        setting.between()
    return total / len(x_NHWC)
