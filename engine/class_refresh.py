"""What can be said of an earlier task of a learner of classes, without its images.

Cards of the task come from the old autoencoder; the new one encodes them and its capsule is measured anew, class by
class where the old one knew classes. The two classifiers are asked what the cards show, with the task's id: the share
of equal answers is how much of the task is still there.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch

from engine import capsule
from engine.data import Images
from engine.models import Autoencoder, Classifier
from engine.refresh import A_NUMBER, FEWEST, MOST, OWN_STREAM, of_cards
from engine.strategies.replay import derived_seed
from engine.strategies.setting import Setting
from engine.task_cards import as_batches, open_task_cards
from engine.work import TaskInput
from flashcards.contract.capsule import Capsule


@dataclass(frozen=True)
class ClassRefreshed:
    capsule: Capsule | None  # None: no autoencoder knows the task
    agreement: float | None = None


def class_refresh(
    setting: Setting,
    number: int,
    task: TaskInput,
    classifier: Classifier,
    maker: Autoencoder | None,
    digest: str | None,
) -> ClassRefreshed:
    """`number` of the task among the earlier ones; `digest` of the new autoencoder, or None: the old one stays."""
    if setting.maker is None or task.capsule is None:
        return ClassRefreshed(None)
    seed = derived_seed(setting.work.spec.seed, OWN_STREAM + number)
    latent = math.prod(setting.work.learner.autoencoder.latent_shape(setting.images.shape))
    count = min(MOST, max(FEWEST, A_NUMBER * latent))
    cards = open_task_cards(setting, task, count, seed, by_class=True, wide=False)
    cards_NHWC = cards.make()
    agreement = _agreement(setting, number, classifier, cards_NHWC)
    if maker is None:
        return ClassRefreshed(capsule.load(replace(setting.work.autoencoder, capsule=task.capsule)), agreement)
    measured = of_cards(setting, task, maker, digest, cards_NHWC)
    if cards.moments is not None:
        images = Images(cards_NHWC, setting.images.range)
        class_N, classes = cards.classes(), len(cards.moments.count_C)
        args = (setting.chunk, setting.device, setting.between)
        moments = capsule.measure_classes(maker, images, class_N, classes, *args)
        # How many images a class had stays true, whatever cards stand in for them.
        measured = replace(measured, by_class=replace(moments, count_C=cards.moments.count_C))
    return ClassRefreshed(measured, agreement)


@torch.inference_mode()
def _agreement(setting: Setting, number: int, classifier: Classifier, cards_NHWC: np.ndarray) -> float:
    first, count = setting.classes.spans[min(number, len(setting.classes.spans)) - 1]
    same = 0
    for x_BCHW in as_batches(cards_NHWC, setting.chunk, setting.device):
        old_B, new_B = (each(x_BCHW)[:, first : first + count].argmax(1) for each in (setting.base, classifier))
        same += int((old_B == new_B).sum())
        setting.between()
    return same / len(cards_NHWC)
