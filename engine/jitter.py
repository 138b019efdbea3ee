"""The light of a session: images made brighter or darker, more or less colourful.

x' = x + b (high - low), then grey + (x' - grey) (1 + s), grey being the luma of a pixel (ITU-R 601), cut to the range.
The paper gives the two lists of numbers and not what they do. Its classifier loses six points of a hundred in the
session of -0.2, which light that is dimmed by a fifth would hardly bring about: brightness is taken for what is added.
"""

import numpy as np

from engine.data import Images
from flashcards.contract.specs import Jitter

LUMA_C = np.array([0.299, 0.587, 0.114])
AT_ONCE = 1024  # images: as floats they take eight times the memory


def jittered(images: Images, jitter: Jitter | None) -> Images:
    """Bytes stay bytes."""
    if jitter is None or (jitter.brightness == 0 and jitter.saturation == 0):
        return images
    x_NHWC = images.x_NHWC
    ends = (0.0, 255.0) if x_NHWC.dtype == np.uint8 else images.range
    changed = np.empty_like(x_NHWC)
    for first in range(0, len(x_NHWC), AT_ONCE):
        changed[first : first + AT_ONCE] = _changed(x_NHWC[first : first + AT_ONCE], jitter, ends)
    return Images(changed, images.range)


def _changed(x_NHWC: np.ndarray, jitter: Jitter, ends: tuple[float, float]) -> np.ndarray:
    low, high = ends
    y_NHWC = x_NHWC.astype(np.float64) + jitter.brightness * (high - low)
    if y_NHWC.shape[-1] == len(LUMA_C):
        grey_NHW1 = (y_NHWC @ LUMA_C)[..., None]
        y_NHWC = grey_NHW1 + (y_NHWC - grey_NHW1) * (1 + jitter.saturation)
    y_NHWC = np.clip(y_NHWC, low, high)
    return np.rint(y_NHWC) if x_NHWC.dtype == np.uint8 else y_NHWC
