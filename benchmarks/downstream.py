"""Classifiers on reconstructions, as steps that are kept: `train` jobs with and without `through`."""

from pathlib import Path
from typing import Any

from benchmarks.class_sequences import ClassCourse
from benchmarks.lab import NOBODY, Lab, Made

WAYS = ("images", "autoencoder", "cards")


class Downstream(ClassCourse):
    classifier = "vgg16_10_width_16"
    autoencoder = "blk_4_fil_32"

    def accuracy(self, dataset: str, way: str, seed: int) -> float:
        """On the test images as they are; not a number where it is not known."""
        through = None if way == "images" else self.train(dataset, self.autoencoder, seed)
        if way == "cards":
            cards = self.capture(through, "auto", seed)
            through = self.distill(cards, through, dataset, self.autoencoder, seed)

        def make(out: Path) -> dict[str, Any]:
            asked = {"kind": "train", "dataset": f"dataset_{NOBODY}", "architecture": self.classifier, "seed": seed}
            asked |= {} if through is None else {"through": f"model_{NOBODY}"}
            model = None if through is None else self._model(through)
            return self._run(self._learning(**asked), out, dataset=self._labelled(dataset), model=model)

        cost = 3 * self.size.images * self.size.epochs
        made: Made = self._step(f"downstream/{dataset}/{self.classifier}/{way}/{seed}", cost, make)
        found: float = made["test_accuracy"]
        return found

    def _tell(self, key: str, cost: float, seconds: float) -> None:
        Lab._tell(self, key, cost, seconds)
