"""Classifiers on reconstructions, as steps that are kept: `train` jobs with and without `through`.

The autoencoders are those of the report on capture, taught as they are there: a classifier needs fewer steps than they.
"""

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.class_sequences import ClassCourse
from benchmarks.lab import NOBODY, Lab, Made

WAYS = ("images", "autoencoder", "cards")


class Downstream(ClassCourse):
    classifier = "vgg16_10_width_16"
    autoencoder = "blk_4_fil_32"

    def taught(self, dataset: str, way: str, seed: int) -> Made:
        """A classifier; `test_accuracy` is on the test images as they are."""
        through = None if way == "images" else self._through(dataset, way, seed)

        def make(out: Path) -> dict[str, Any]:
            asked = {"kind": "train", "dataset": f"dataset_{NOBODY}", "architecture": self.classifier, "seed": seed}
            asked |= {} if through is None else {"through": f"model_{NOBODY}"}
            model = None if through is None else self._model(through)
            return self._run(self._learning(**asked), out, dataset=self._labelled(dataset), model=model)

        named = way if through is None else f"{way}-{self._makers.size.name}"
        cost = 3 * self.size.images * self.size.epochs
        return self._step(f"downstream/{dataset}/{self.classifier}/{named}/{seed}", cost, make)

    def _through(self, dataset: str, way: str, seed: int) -> Made:
        lab = self._makers
        lab.planning, lab.kept_only = self.planning, self.kept_only
        parent = lab.train(dataset, self.autoencoder, seed)
        if way == "autoencoder":
            return parent
        return lab.distill(lab.capture(parent, "capsule", seed), parent, dataset, self.autoencoder, seed)

    @functools.cached_property
    def _makers(self) -> Lab:
        """Of 8 epochs in batches of 32 they make 10 in batches of 16, at twice the rate."""
        size, epochs = self.size, self.size.epochs * 5 // 4
        longer = replace(
            size, epochs=epochs, patience=epochs, batch=max(1, size.batch // 2), learning_rate=2 * size.learning_rate
        )
        return Lab(self.folder, self.data, longer, self.console, records=self.records)

    def _tell(self, key: str, cost: float, seconds: float) -> None:
        Lab._tell(self, key, cost, seconds)
