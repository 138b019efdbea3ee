import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import httpx
import numpy as np
import pytest
import torch
from making import weights
from PIL import Image
from safetensors.torch import load_file
from service_process import free_port
from typer.testing import CliRunner

import flashcards
from flashcards.cli import app

COMMAND = Path(sys.executable).with_name("flashcards")
NO_MODEL = "model_" + "0" * 32
ONNX = Path(__file__).parent.parent / "fixtures" / "onnx"


@pytest.fixture
def run(service):
    def run(*words, exit_code: int = 0):
        done = CliRunner().invoke(app, [str(word) for word in words], env={"FLASHCARDS_URL": service.url})
        assert done.exit_code == exit_code, done.output
        assert "Traceback" not in done.output
        return done

    return run


@pytest.fixture
def start(service):
    """The command as a process of its own."""

    def start(*words, folder: Path | None = None):
        return subprocess.Popen(
            [COMMAND, *(str(word) for word in words)],
            cwd=folder,
            env={**os.environ, "FLASHCARDS_URL": service.url},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def test_version(run):
    assert run("--version").stdout == f"flashcards {flashcards.__version__}\n"


def test_a_folder_of_images_is_pushed(run, tmp_path):
    for label, grey in (("cat", 20), ("dog", 200)):
        (tmp_path / "pets" / label).mkdir(parents=True)
        Image.new("L", (9, 9), grey).save(tmp_path / "pets" / label / "1.png")
    shown = run("datasets", "push", tmp_path / "pets", "--input", "8x8x3").stdout
    assert "pets" in shown
    assert "2 images of 8x8x3" in shown
    assert "2 classes (cat, dog)" in shown
    assert "uploaded as" in shown
    (tmp_path / "empty").mkdir()
    assert "no image" in run("datasets", "push", tmp_path / "empty", exit_code=1).stderr


def test_a_state_dict_is_pushed_and_shown_with_its_mapping(run, trained, tmp_path):
    pulled = run("models", "pull", trained.result.model, "--to", tmp_path).stdout.strip()
    torch.save({f"module.{name}": tensor for name, tensor in load_file(pulled).items()}, tmp_path / "net.pt")
    shown = run("models", "push", tmp_path / "net.pt", "--architecture", "blk_1_fil_8", "--input", "8x8x1").stdout
    lines = [line.split() for line in shown.splitlines()]
    assert ["module.encoder.stem.bias", "taken", "for", "encoder.stem.bias"] in lines


def test_an_onnx_file_is_pushed_pulled_and_measured(run, digits, tmp_path):
    file = ONNX / "keras_conv.onnx"
    model = json.loads(run("models", "push", file, "--json").stdout)
    pulled = Path(run("models", "pull", model["id"], "--to", tmp_path).stdout.strip())
    assert (pulled.name, pulled.read_bytes()) == (f"{model['id']}.onnx", file.read_bytes())
    np.savez(tmp_path / "digits.npz", x=digits["x_train"][:30])
    words = ["--model", pulled, "--data", tmp_path / "digits.npz", "--attach", model["id"], "--json"]
    assert json.loads(run("capsule", *words).stdout)["latent"] == [12]
    assert json.loads(run("models", "show", model["id"], "--json").stdout)["capsule"]["count"] == 30


def test_of_an_onnx_file_the_latent_is_named_or_it_is_a_classifier(run):
    named = run("models", "push", ONNX / "torch_conv.onnx", "--bottleneck", "silu").stdout
    assert "onnx_latent_128, opset 20, NCHW, latent 'silu'" in named
    assert "onnx_classifier_10" in run("models", "push", ONNX / "torch_classifier.onnx", "--classifier").stdout


@pytest.mark.parametrize(
    "architecture", ["dense_ae_8_4_tanh", '{"family": "dense_ae", "widths": [8], "latent": 4, "activation": "tanh"}']
)
def test_an_architecture_is_a_name_or_json(run, tmp_path, architecture):
    (tmp_path / "net.safetensors").write_bytes(weights("dense_ae_8_4_tanh", "1x20x1"))
    options = ("--architecture", architecture, "--input", "1x20x1", "--json")
    pushed = json.loads(run("models", "push", tmp_path / "net.safetensors", *options).stdout)
    assert (pushed["architecture_name"], pushed["architecture"]["latent"]) == ("dense_ae_8_4_tanh", 4)


def test_models_from_push_to_rm(run, client, trained, tmp_path):
    pulled = run("models", "pull", trained.result.model, "--to", tmp_path).stdout.strip()
    assert Path(pulled).parent == tmp_path
    pushed = json.loads(run("models", "push", pulled, "--name", "[red]again", "--json").stdout)
    assert (pushed["architecture_name"], pushed["input"]) == ("blk_1_fil_8", "8x8x1")
    assert pushed["id"] in [model["id"] for model in json.loads(run("models", "ls", "--json").stdout)]
    shown = run("models", "show", pushed["id"]).stdout
    assert "[red]again" in shown
    assert pushed["digest"] in shown
    run("models", "rm", pushed["id"])
    assert pushed["id"] not in run("models", "ls").stdout


def test_datasets_from_push_to_rm(run, digits_npz, tmp_path):
    file = tmp_path / "some digits.npz"
    file.write_bytes(digits_npz)
    pushed = run("datasets", "push", file)
    assert "1,000 images of 8x8x1" in pushed.stdout
    listed = json.loads(run("datasets", "ls", "--limit", 1, "--json").stdout)
    assert [dataset["name"] for dataset in listed] == ["some digits"]
    id = listed[0]["id"]
    assert "10 classes" in run("datasets", "show", id).stdout
    assert json.loads(run("datasets", "rm", id, "--json").stdout) == {"deleted": [id]}
    assert "there is no dataset" in run("datasets", "show", id, exit_code=1).stderr


def test_a_training_is_told_as_model_errors_and_speed(run, trained):
    told = run("jobs", "watch", trained.id).stdout
    assert trained.result.model in told
    assert f"{trained.result.validation_mae:.4f}   (a constant image: {trained.result.constant_mae:.4f})" in told
    assert "images/s" in told
    assert "model.safetensors" in run("jobs", "show", trained.id).stdout
    assert run("jobs", "logs", trained.id, "--json").stdout.startswith("{")


def test_evaluate(run, trained, digits_id):
    told = run("evaluate", trained.result.model, digits_id, "--split", "test").stdout
    assert [word for word in ("MAE", "PSNR", "SSIM") if word not in told] == []


def test_a_classifier_from_train_to_predict(run, digits_id, tmp_path):
    lesson = ("--epochs", 2, "--batch-size", 32, "--learning-rate", 0.003)
    told = run("train", digits_id, "--architecture", "tasknet_10_width_4_hidden_32_latent_8", *lesson).stdout
    assert [word for word in ("validation accuracy", "test accuracy", "worst class") if word not in told] == []
    id = next(word for word in told.split() if word.startswith("model_"))
    assert "10 classes" in run("models", "show", id).stdout
    told = run("evaluate", id, digits_id).stdout
    assert [word for word in ("accuracy", "log loss", "ECE") if word not in told] == []
    told = run("predict", id, digits_id, "--rows", "3,1").stdout
    assert [line.split()[:2] for line in told.splitlines() if line.startswith("row")] == [["row", "3"], ["row", "1"]]
    assert "(is " in told
    through = ("--architecture", "tasknet_10_width_4_hidden_32_latent_8", "--through", id)
    assert "takes an autoencoder" in run("train", digits_id, *through, exit_code=1).stderr


def test_an_autoencoder_predicts_images(run, trained, digits_id):
    told = run("predict", trained.result.model, digits_id, "--limit", 2).stdout
    assert told.count("MAE") == 2
    assert (
        "less than or equal to 256"
        in run("predict", trained.result.model, digits_id, "--limit", 9999, exit_code=1).stderr
    )


def test_a_capture_in_shards_says_so(run, trained):
    told = run("capture", trained.result.model, "--count", 130, "-r", 2, "--shards", 2).stdout
    assert re.search(r"^shards +2 *$", told, re.MULTILINE), told
    assert "shards" in run("capture", trained.result.model, "--shards", "many", exit_code=1).stderr


def test_cards_from_capture_to_rm(run, trained, tmp_path):
    sheet = tmp_path / "sheet.png"
    told = run("capture", trained.result.model, "--count", 20, "-r", 4, "--dtype", "uint8", "--sheet", sheet).stdout
    id = next(word for word in told.split() if word.startswith("flashcards_"))
    assert "gamma2" in told
    assert f"flashcards cards sheet {id}" in told
    assert sheet.read_bytes().startswith(b"\x89PNG")

    assert id in run("cards", "ls").stdout
    assert json.loads(run("cards", "show", id, "--json").stdout)["recipe"]["count"] == 20
    path = run("cards", "pull", id, "--to", tmp_path / "cards.npy").stdout.strip()
    assert np.load(path).shape == (20, 8, 8, 1)
    run("cards", "sheet", id, "--to", tmp_path)
    assert (tmp_path / f"{id}.png").read_bytes() == sheet.read_bytes()
    run("cards", "rm", id)
    run("cards", "show", id, exit_code=1)


def test_from_a_checkpoint_to_the_plot_over_r_and_a_smaller_network(run, trained, tmp_path):
    run("models", "pull", trained.result.model, "--to", tmp_path / "ae.safetensors")
    model = json.loads(run("models", "push", tmp_path / "ae.safetensors", "--json").stdout)["id"]
    told = run("analyze", model, "--max-r", 3, "--count", 16, "--curves", tmp_path / "curves.png").stdout
    assert re.search(r"^recommended r? *", told, re.MULTILINE | re.IGNORECASE), told
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    captured = json.loads(run("capture", model, "--count", 200, "--json").stdout)["result"]["flashcards"]
    asked = ("--architecture", "blk_1_fil_4", "--epochs", 12, "--learning-rate", 0.01, "--batch-size", 16)
    smaller = json.loads(run("distill", captured, *asked, "--json").stdout)["result"]
    assert run("models", "show", smaller["model"]).stdout


def test_storage(run, trained):
    told = run("storage", "--limit", 200).stdout
    assert "models" in told
    assert trained.result.model in told
    asked = json.loads(run("storage", "--limit", 2, "--json").stdout)
    assert len(asked["items"]) == 2
    assert asked["files"] > 2
    assert "--limit lists more" in run("storage", "--limit", 1).stderr


def test_a_detached_job_is_only_an_id(run, trained, busy):
    label = f"test={uuid4().hex}"
    id = run("capture", trained.result.model, "--label", label, "--detach").stdout.strip()
    assert [job["id"] for job in json.loads(run("jobs", "ls", "--label", label, "--json").stdout)] == [id]
    assert "1 in queue cpu" in run("jobs", "show", id).stdout
    assert run("jobs", "cancel", id).stdout == "cancelled\n"
    assert run("jobs", "retry", id).stdout == "queued\n"
    assert "cancel it" in run("jobs", "rm", id, exit_code=1).stderr
    assert json.loads(run("jobs", "cancel", id, "--json").stdout)["state"] == "cancelled"
    assert "cancelled" in run("jobs", "watch", id, exit_code=4).stderr
    run("jobs", "rm", id)
    run("jobs", "show", id, exit_code=1)


def test_a_job_that_fails_is_exit_code_3_and_says_why(run, digits_id):
    failed = run("train", digits_id, "--architecture", "blk_1_fil_4", "--epochs", 1, "--learning-rate", 10, exit_code=3)
    assert "failed" in failed.stderr
    assert "learning_rate" in failed.stderr


def test_ctrl_c_ends_the_watching_and_not_the_job(start, run, client, digits_id):
    label = {"test": uuid4().hex}
    options = ("--architecture", "blk_1_fil_8", "--epochs", 100_000, "--label", f"test={label['test']}")
    watching = start("train", digits_id, *options)
    while not any((job.progress.epoch or 0) > 5 for job in client.jobs.each(state="running", label=label)):
        time.sleep(0.05)
    watching.send_signal(signal.SIGINT)
    _, errors = watching.communicate(timeout=60)
    (job,) = client.jobs.each(label=label)
    assert job.state == "running"
    assert watching.returncode == 130
    assert f"flashcards jobs watch {job.id}" in errors
    assert "Traceback" not in errors
    assert run("jobs", "cancel", job.id).stdout == "cancel requested\n"
    assert client.jobs.wait(job.id, timeout=30).state == "cancelled"


def test_a_refusal_is_told_in_words(run, digits_id):
    refused = run("train", digits_id, "--epochs", 0, "--batch-size", 0, exit_code=1)
    assert refused.stdout == ""
    assert "The request does not make sense" in refused.stderr
    assert "body.train.epochs: " in refused.stderr
    assert "body.train.batch_size: " in refused.stderr
    assert refused.stderr.count("greater than or equal to 1") == 2
    assert NO_MODEL in run("capture", NO_MODEL, exit_code=1).stderr


@pytest.mark.parametrize(
    "words",
    [
        ("models", "push", "nowhere.safetensors"),
        ("train",),
        ("capture", NO_MODEL, "--dtype", "int7"),
        ("capture", NO_MODEL, "--detach", "--sheet", "sheet.png"),
        ("analyze", NO_MODEL, "--detach", "--curves", "curves.png"),
        ("jobs", "ls", "--label", "no equals sign"),
        ("--url", "localhost:8642", "jobs", "ls"),
    ],
)
def test_misuse_is_exit_code_2(run, words):
    run(*words, exit_code=2)


def test_a_full_or_missing_folder_is_told_in_words(run, trained, tmp_path):
    told = run("models", "pull", trained.result.model, "--to", tmp_path / "no such folder" / "file", exit_code=1)
    assert "no such folder" in told.stderr


@pytest.mark.slow
def test_serve_becomes_the_service_and_leaves_on_a_signal(start, tmp_path):
    port = free_port()
    (tmp_path / "service").mkdir()
    (tmp_path / "service" / "__init__.py").write_text("raise ImportError('this is the folder of somebody else')")
    serving = start("serve", "--home", tmp_path / "home", "--port", port, folder=tmp_path)
    deadline = time.monotonic() + 60
    while f"ready at http://127.0.0.1:{port}" not in serving.stdout.readline():
        assert serving.poll() is None, serving.communicate()
        assert time.monotonic() < deadline
    assert _is_ready(port)
    assert (tmp_path / "home" / "flashcards.db").exists()
    serving.send_signal(signal.SIGTERM)
    serving.communicate(timeout=30)
    assert serving.returncode == 0
    assert not _is_ready(port)


def _is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=5).status_code == 200
    except httpx.TransportError:
        return False
