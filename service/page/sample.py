"""Real digits to begin with: those of scikit-learn, 8 x 8, read from its files without loading it."""

import io
from functools import cache
from importlib.util import find_spec
from pathlib import Path

SHADES = 16
TEST = 360


@cache
def digits_npz() -> bytes:
    import numpy as np

    spec = find_spec("sklearn")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("scikit-learn is not installed")
    table = np.loadtxt(Path(spec.origin).parent / "datasets" / "data" / "digits.csv.gz", delimiter=",", dtype=np.uint8)
    # They are ordered by writer: unshuffled, the test images would be of other hands than the training ones.
    table = table[np.random.default_rng(0).permutation(len(table))]
    x, y = (table[:, :-1] * (255 / SHADES)).round().astype(np.uint8).reshape(-1, 8, 8), table[:, -1]
    buffer = io.BytesIO()
    np.savez_compressed(buffer, x_train=x[TEST:], y_train=y[TEST:], x_test=x[:TEST], y_test=y[:TEST])
    return buffer.getvalue()
