"""Digits in, a network and its cards out; then a second network that has seen the cards and no digit.

python examples/first_capture.py [EPOCHS]
"""

import sys

import numpy as np
from sklearn.datasets import load_digits

from flashcards import Client


def digits() -> dict[str, np.ndarray]:
    """1,797 of them, 8 x 8; a fifth is held out to measure on. They are ordered by writer, so they are shuffled."""
    found = load_digits()
    order = np.random.default_rng(0).permutation(len(found.images))
    x = (found.images[order] / 16 * 255).astype(np.uint8)
    test = len(x) // 5
    return {"x_train": x[test:], "x_test": x[:test]}


def main(epochs: int = 20) -> None:
    lesson = {"architecture": "blk_2_fil_16", "epochs": epochs, "batch_size": 16, "learning_rate": 3e-3}
    with Client() as client:
        dataset = client.datasets.push(digits(), name="digits", input="16x16x1")
        parent = client.train(dataset, **lesson).wait(progress=True)
        captured = client.capture(parent.model(), count=1000).wait(progress=True)
        cards = captured.cards()
        print(f"{len(cards)} cards of {cards.shape[1:]}, from {cards.min()} to {cards.max()}")

        child = client.distill(captured.flashcards(), dataset=dataset, **lesson).wait(progress=True)
        compared = child.result.compared[-1]
        print(
            f"test error: {compared.parent_mae:.4f} of the network, {compared.child_mae:.4f} of the one taught by cards"
        )
        print("looked at:", client.flashcards.sheet(captured.result.flashcards, "cards.png"))
        print("told in full:", client.jobs.save_report(child.id, "report.html"))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
