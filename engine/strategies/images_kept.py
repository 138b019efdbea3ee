"""Real images of earlier tasks, for the strategies that keep them: arrays x_1, x_2, .. as the tasks had them.

A learner of classes keeps their labels beside them, y_1, y_2, .., as the classifier counts.
"""

import numpy as np

from engine.strategies.setting import Setting


def of_earlier(setting: Setting) -> dict[int, np.ndarray]:
    """Task number -> images. Says which tasks nothing was kept of: another strategy had its hand on them."""
    found = {
        number: setting.kept_images[f"x_{number}"]
        for number in range(1, setting.number)
        if len(setting.kept_images.get(f"x_{number}", ()))
    }
    missing = [name for number, name in enumerate(setting.names, start=1) if number not in found]
    if missing:
        setting.report.note(f"no images were kept of {', '.join(missing)}: nothing of that is replayed")
    return found


def labels_of(setting: Setting, earlier: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
    """Task number -> labels; none of a learner that has no classes."""
    if setting.classes is None:
        return {}
    return {number: setting.kept_images[f"y_{number}"] for number in earlier}


def as_arrays(images: dict[int, np.ndarray], labels: dict[int, np.ndarray] | None = None) -> dict[str, np.ndarray]:
    found = {f"x_{number}": array for number, array in images.items()}
    return found | {f"y_{number}": array[: len(images[number])] for number, array in (labels or {}).items()}
