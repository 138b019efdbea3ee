"""Real images of earlier tasks, for the strategies that keep them: arrays x_1, x_2, .. as the tasks had them."""

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


def as_arrays(images: dict[int, np.ndarray]) -> dict[str, np.ndarray]:
    return {f"x_{number}": array for number, array in images.items()}
