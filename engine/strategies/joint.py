"""`joint`: theta* = argmin mean |f(x) - x| over the images of all tasks, which are all kept. The upper bound.

Of a classifier: cross-entropy over the labelled images of all tasks, all classes told apart from each other.
"""

import numpy as np
import torch

from engine.data import hold_out, joined
from engine.strategies.base import Kept, Material, Strategy
from engine.strategies.images_kept import as_arrays, labels_of, of_earlier
from engine.strategies.setting import Setting


class Joint(Strategy):
    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.earlier = of_earlier(setting)
        self.labels = labels_of(setting, self.earlier)

    @property
    def sees_old(self) -> bool:
        return bool(self.earlier)

    def material(self) -> Material:
        """The union, a share of every task held out."""
        setting, spec = self.setting, self.setting.work.spec
        images = joined([setting.images.x_NHWC, *self.earlier.values()], setting.images.range)
        train, validation, first = [setting.train_rows], [setting.validation_rows], len(setting.images)
        for array in self.earlier.values():
            rows = hold_out(len(array), spec.validation_share, spec.seed) if len(array) > 1 else ([0], [])
            train.append(first + np.asarray(rows[0], dtype=np.intp))
            validation.append(first + np.asarray(rows[1], dtype=np.intp))
            first += len(array)
        return Material(images, np.concatenate(train), np.concatenate(validation), self._all_labels())

    def _all_labels(self) -> np.ndarray | None:
        classes = self.setting.classes
        return None if classes is None else np.concatenate([classes.labels_N, *self.labels.values()])

    def end(self, network: torch.nn.Module) -> Kept:
        setting = self.setting
        new = setting.images.x_NHWC[setting.own_rows]
        labels = self.labels
        if setting.classes is not None:
            labels = labels | {setting.number: setting.classes.labels_N[setting.own_rows]}
        return Kept(images=as_arrays(self.earlier | {setting.number: new}, labels))
