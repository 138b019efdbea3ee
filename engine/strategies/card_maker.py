"""How the autoencoder beside a classifier learns a task: theta* = argmin mean |f(x) - x|^p + lambda mean |f(c) - c|^p.

The cards c are those that the classifier replayed. Beside it all the while stands the classifier, which has learnt the
task already: a training that is taken up again needs it, and so it is in the resume points.
"""

import torch

from engine.strategies.base import Strategy


class CardMakerReplay(Strategy):
    CLASSIFIER = "classifier."

    def __init__(self, beside: Strategy, classifier: torch.nn.Module) -> None:
        self.setting, self.weight, self.replay = beside.setting, beside.weight, beside.replay
        self.classifier = classifier

    def tensors(self) -> dict[str, torch.Tensor]:
        return {self.CLASSIFIER + name: tensor for name, tensor in self.classifier.state_dict().items()}
