import numpy as np
import pytest


@pytest.fixture(scope="session")
def digit_sets(tmp_path_factory, digits):
    """A folder as FLASHCARDS_DATA names one: five sets that are not alike, all made of scikit-learn's digits."""

    def turned(x: np.ndarray) -> dict[str, np.ndarray]:
        return {
            "mnist": x,
            "fashion_mnist": 255 - x,
            "cifar10": np.repeat(x.transpose(0, 2, 1)[..., None], 3, axis=3),
            "svhn": np.stack([x, 255 - x, x // 2], axis=3),
            "omniglot": x // 2,
        }

    folder = tmp_path_factory.mktemp("sets")
    sets = {split: turned(digits[f"x_{split}"][:120]) for split in ("train", "test")}
    for name in sets["train"]:
        arrays = {f"x_{split}": found[name] for split, found in sets.items()}
        labels = {f"y_{split}": digits[f"y_{split}"][:120] for split in sets}
        np.savez(folder / f"{name}.npz", **arrays, **labels)
    return folder
