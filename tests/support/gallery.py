"""A service with one of everything on real digits, for pictures of the page and for tests that look at it."""

import time

import numpy as np
from making import npz, submit, wait_for


def digits(wanted, invert: bool = False) -> dict[str, np.ndarray]:
    from sklearn.datasets import load_digits

    found = load_digits()
    chosen = np.isin(found.target, wanted)
    order = np.random.default_rng(0).permutation(chosen.sum())
    x = (found.images[chosen] / 16 * 255).astype(np.uint8)[order]
    x, y, test = 255 - x if invert else x, found.target[chosen][order], len(x) // 5
    return {"x_train": x[test:], "y_train": y[test:], "x_test": x[:test], "y_test": y[:test]}


def push(api, name: str, arrays: dict[str, np.ndarray]) -> str:
    answer = api.post("/v1/datasets", params={"name": name, "input": "16x16x1"}, content=npz(**arrays))
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


#: Few epochs and large steps: enough to see digits.
LESSON = {"learning_rate": 3e-3, "batch_size": 32}
NETWORK = "blk_2_fil_16"
PATIENCE = 3600  # seconds: pictures may be made on a machine that has other work


def finished(api, **spec) -> dict:
    job = wait_for(api, submit(api, **spec)["id"], PATIENCE)
    assert job["state"] == "succeeded", job["error"]
    return job


def fill(api, epochs: int = 8, compare: bool = True) -> dict[str, str]:
    """Ids by what they are."""
    low, high = push(api, "digits 0 to 4", digits(range(5))), push(api, "digits 5 to 9", digits(range(5, 10)))
    dark = push(api, "inverted digits", digits(range(10), invert=True))
    everything = push(api, "handwritten digits", digits(range(10)))
    lesson = {**LESSON, "epochs": epochs, "architecture": NETWORK}
    train = finished(api, kind="train", dataset=everything, name="digits network", labels={"line": "7"}, **lesson)
    model = train["result"]["model"]
    finished(api, kind="evaluate", model=model, dataset=everything)
    mazes = finished(api, kind="capture", model=model, count=256, source="maze", r=10, name="digits from mazes")
    cards = finished(api, kind="capture", model=model, count=512, name="digits from the capsule")
    finished(api, kind="capture", model=model, count=128, source="latent", name="digits from latents")
    finished(api, kind="capture", model=model, count=128, source="geometric", r=6, name="digits from shapes")
    analyze = finished(api, kind="analyze", model=model, max_r=20, count=64, dataset=everything)
    finished(api, kind="distill", flashcards=cards["result"]["flashcards"], dataset=everything, **lesson)
    learner = api.post("/v1/learners", json={"name": "line 7", "architecture": NETWORK}).json()["id"]
    for dataset in (low, high, dark):
        task = {"dataset": dataset, "epochs": epochs, **LESSON}
        learnt = wait_for(api, api.post(f"/v1/learners/{learner}/tasks", json=task).json()["id"], PATIENCE)
        assert learnt["state"] == "succeeded", learnt["error"]
    failed = submit(api, kind="train", dataset=everything, epochs=10**5, timeout_seconds=1, max_attempts=1)
    wait_for(api, failed["id"], PATIENCE)
    ids = {
        "dataset": everything, "train": train["id"], "model": model, "mazes": mazes["result"]["flashcards"],
        "cards": cards["result"]["flashcards"], "analyze": analyze["id"], "learner": learner, "failed": failed["id"],
    }  # fmt: skip
    if compare:
        kinds = [{"kind": kind} for kind in ("flashcards", "coreset", "vae_replay", "naive", "joint")]
        told = {"datasets": [low, high, dark], "strategies": kinds, "seeds": [0, 1], **lesson, "epochs": epochs // 2}
        compared = wait_for(api, submit(api, kind="compare", **told)["id"], PATIENCE)
        assert compared["state"] == "succeeded", compared["error"]
        ids["compare"] = compared["id"]
    return ids


def start_long_job(api, dataset: str) -> str:
    job = submit(api, kind="train", dataset=dataset, architecture=NETWORK, epochs=150, patience=150, **LESSON)
    while not api.get(f"/v1/jobs/{job['id']}").json()["progress"]["step"]:
        time.sleep(0.2)
    return job["id"]
