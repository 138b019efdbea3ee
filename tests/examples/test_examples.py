"""Every example, run as its reader would run it, in an empty folder and against a real service."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from making import npz, weights
from pieces import send
from safetensors.numpy import load, load_file

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def run(service, tmp_path):
    def run(*words, code: int = 0, **environment):
        command = [EXAMPLES / words[0], *map(str, words[1:])]
        if command[0].suffix == ".py":
            command = [sys.executable, *command]
        known = {**os.environ, "FLASHCARDS_URL": service.url, "OMP_NUM_THREADS": "1", **environment}
        done = subprocess.run(command, cwd=tmp_path, env=known, capture_output=True, text=True, timeout=400)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def test_every_example_is_run_here_and_told_of():
    there = {path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".sh")}
    tests, told = Path(__file__).read_text(), (EXAMPLES / "README.md").read_text()
    assert [name for name in there if f'run("{name}"' not in tests or f"`{name}`" not in told] == []


@pytest.mark.slow
def test_a_first_capture(run, tmp_path):
    told = run("first_capture.py", 2)
    assert "1000 cards of (16, 16, 1)" in told
    assert "of the one taught by cards" in told
    assert (tmp_path / "cards.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


@pytest.mark.slow
def test_a_network_of_a_pytorch_script(run):
    told = run("from_pytorch.py", 2)
    assert "the network is ours to the probe: True" in told
    assert "(500, 1, 8, 8)" in told


def test_weights_of_a_keras_model(run, api, tmp_path):
    """Keras is not here: the arrays are laid out as its `get_weights` lays them out."""
    ours = load(weights("blk_2_fil_4", "16x16x1"))
    layers = ["stem", "blocks.0", "blocks.1"]
    order = [*(f"encoder.{name}" for name in [*layers, "latent"]), *(f"decoder.{name}" for name in [*layers, "head"])]
    names = [f"{layer}.{part}" for layer in order for part in ("weight", "bias")]
    theirs = [ours[name].transpose(2, 3, 1, 0) if ours[name].ndim == 4 else ours[name] for name in names]
    np.savez(tmp_path / "weights.npz", *theirs)
    run("from_keras.py", "weights.npz", "ae.safetensors", "blk_2_fil_4", "16x16x1")
    found = load_file(tmp_path / "ae.safetensors")
    assert all(np.array_equal(found[name], ours[name]) for name in ours)
    answer = api.post("/v1/models?name=keras", content=(tmp_path / "ae.safetensors").read_bytes())
    assert (answer.status_code, answer.json()["architecture_name"]) == (201, "blk_2_fil_4")
    assert "tensors, and the file 16" in run("from_keras.py", "weights.npz", "x", "blk_3_fil_4", "16x16x1", code=1)


@pytest.mark.slow
def test_many_are_watched_at_once(run, model):
    told = run("watch_many.py", model["id"])
    assert sorted(line.split(":")[0] for line in told.splitlines()) == ["geometric", "latent", "maze"]
    assert told.count("200 cards") == 3


@pytest.mark.slow
@pytest.mark.timeout(600)  # two tasks and a dozen steps, on a machine that others use too
def test_a_pipeline_step_by_step(run, api, digits, tmp_path):
    learner = api.post("/v1/learners", json={"name": "line", "architecture": "blk_1_fil_4"}).json()["id"]
    for day, images in (("monday", digits["x_train"]), ("tuesday", 255 - digits["x_train"])):
        (tmp_path / f"{day}.npz").write_bytes(npz(x=images))
        run("pipeline.sh", day, "push", f"{day}.npz")
        run("pipeline.sh", day, "push", f"{day}.npz")  # again, as after a time-out: nothing is done twice
        for _ in range(2):
            run("pipeline.sh", day, "learn", learner, FIELDS='"epochs":2,"batch_size":8,"learning_rate":0.01')
        run("pipeline.sh", day, "wait")
        assert (tmp_path / day / "report.html").exists()
    assert [version["task"] for version in api.get(f"/v1/learners/{learner}/versions").json()["items"]] == [
        "tuesday",
        "monday",
    ]
    run("pipeline.sh", "tuesday", "gate", "10")
    run("pipeline.sh", "tuesday", "publish", "line.safetensors")
    assert load_file(tmp_path / "line.safetensors")
    assert "back at version 1" in run("pipeline.sh", "tuesday", "gate", "-10", code=1)
    assert api.get(f"/v1/learners/{learner}").json()["version"] == 1
    assert "pipeline.sh RUN push FILE" in run("pipeline.sh", "tuesday", "nonsense", code=2)


def test_a_large_file_goes_on_where_it_was(run, api, tmp_path):
    sent = npz(x=np.random.default_rng(77).integers(0, 256, (90, 8, 8), np.uint8))
    (tmp_path / "large.npz").write_bytes(sent)
    upload = send(api, sent, but=(2, 4))
    assert upload["missing"] == [2, 4]
    made = json.loads(run("push_large.sh", "large.npz", "datasets", "name=line-7"))
    assert api.get(f"/v1/uploads/{upload['id']}").json()["became"] == f"/v1/datasets/{made['id']}"
    assert api.get(f"/v1/datasets/{made['id']}/file").content == sent
    told = run("push_large.sh", "large.npz", "models", "name=no-network", code=22)
    assert "/problems/unfit-file" in told
