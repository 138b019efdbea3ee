"""How the autoencoder beside a classifier learns a task: theta* = argmin mean |f(x) - x|^p + lambda mean |f(c) - c|^p.

The cards c are those of the recipes, also where the classifier replayed fresh ones every epoch: who takes up a training
half-way has no others. Beside it all the while stands the classifier, which has learnt the
task already: a training that is taken up again needs it, and so it is in the resume points.
"""

import torch

from engine.strategies.base import Strategy
from engine.strategies.class_flashcards import ClassFlashcards


class CardMakerReplay(Strategy):
    CLASSIFIER = "classifier."

    def __init__(self, beside: ClassFlashcards, classifier: torch.nn.Module) -> None:
        self.setting, self.weight, self.replay = beside.setting, beside.weight, beside.of_recipe
        self.classifier = classifier

    def tensors(self) -> dict[str, torch.Tensor]:
        return {self.CLASSIFIER + name: tensor for name, tensor in self.classifier.state_dict().items()}
