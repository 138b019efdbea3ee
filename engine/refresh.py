"""Capsules of earlier tasks, measured again for the new network without any image; and errors on the same cards.

Draws from the old capsule are decoded by the old network: x ~ task. The new network encodes them, and a new capsule is
measured: z' = E'(D(z)). Its errors are those of cards; its count stays that of the images it goes back to.
"""

from dataclasses import dataclass, replace

import torch

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

DRAWN = 5000  # cards a task; the covariance of a latent of 256 numbers is known to a few per cent then
OWN_STREAM = 2**33  # other draws than those that were replayed: an error on cards that were learnt would flatter


@dataclass(frozen=True)
class Refreshed:
    capsule: Capsule
    base_error: float  # of the base version's network on the cards
    new_error: float


@torch.inference_mode()
def refresh(setting: Setting, number: int, task: TaskInput, network: Autoencoder, digest: str) -> Refreshed:
    """`number` of the task among the earlier ones; `digest` of the new network."""
    seed = derived_seed(setting.work.spec.seed, OWN_STREAM + number)
    cards_NHWC = open_task_cards(setting, task, DRAWN, seed).make()
    meter, errors = Meter(), torch.zeros(2, dtype=torch.float64)
    behind = [seen_through(setting.noise, each) for each in (setting.base, network)]
    for x_BCHW in as_batches(cards_NHWC, setting.chunk, setting.device):
        z = network.encoder(x_BCHW)
        error_B = mae_B(x_BCHW, network.decoder(z))
        meter.add(z.cpu().numpy(), error_B.cpu().numpy(), x_BCHW.cpu().numpy(), channel_axis=1)
        errors += torch.stack([mae_B(x_BCHW, f(x_BCHW)).sum(dtype=torch.float64) for f in behind]).cpu()
        setting.between()
    measured = meter.capsule(digest, measured_on="cards")
    if task.capsule is not None:
        count = capsule.read(task.capsule.read_bytes()).facts.count
        measured = replace(measured, facts=measured.facts.model_copy(update={"count": count}))
    base_error, new_error = (errors / len(cards_NHWC)).tolist()
    return Refreshed(measured, base_error, new_error)
