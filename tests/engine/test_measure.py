import hashlib
import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from engine import capsule
from engine.data import Images
from engine.measure import main
from engine.weights import load_network
from flashcards.contract.capsule import read

CPU = torch.device("cpu")


@pytest.fixture
def model(new_model):
    return new_model()


@pytest.fixture
def npz(as_dataset, digits):
    return as_dataset(x_train=digits["x_train"][:70], x_test=digits["x_test"]).path


@pytest.fixture
def by_hand(model, digits):
    images = Images(digits["x_train"][:70, ..., None], model.range)
    return capsule.measure(load_network(model, CPU), images, np.arange(70), 64, CPU).capsule()


@pytest.fixture
def measure(model, capsys, tmp_path):
    def measure(data, *options, model_path=model.path, out=tmp_path / "capsule", exit_code=0):
        assert main([str(word) for word in (model_path, data, out, *options)]) == exit_code
        said = capsys.readouterr()
        return said.err if exit_code else json.loads(said.out)

    return measure


def test_a_process_of_its_own(model, npz, by_hand, tmp_path):
    command = [sys.executable, "-m", "engine.measure", model.path, npz, tmp_path / "c.safetensors"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = done.stdout.splitlines()
    found = read((tmp_path / "c.safetensors").read_bytes())
    digest = hashlib.sha256(model.path.read_bytes()).hexdigest()
    assert found.facts == by_hand.facts.model_copy(update={"model_digest": digest})
    assert found.covariance() == pytest.approx(by_hand.covariance(), abs=1e-6)
    told = json.loads(line)
    assert told["path"] == str(tmp_path / "c.safetensors")
    assert told["size"] == (tmp_path / "c.safetensors").stat().st_size
    assert (told["count"], told["latent"], told["model_digest"]) == (70, [4, 4, 4], digest)
    assert [path.name for path in tmp_path.glob("*.tmp")] == []


def test_a_folder_of_the_same_images(measure, digits, by_hand, tmp_path):
    (tmp_path / "images").mkdir()
    for number, pixels in enumerate(digits["x_train"][:70]):
        Image.fromarray(pixels).save(tmp_path / "images" / f"{number:03}.png")
    told = measure(tmp_path / "images", out=tmp_path)
    assert told["path"] == str(tmp_path / "capsule.safetensors")
    assert told["mean_error"] == pytest.approx(by_hand.facts.mean_error, rel=1e-6)
    assert told["count"] == 70


def test_what_the_file_does_not_say_is_said_by_options(measure, model, npz, tmp_path, by_hand):
    bare = tmp_path / "bare.safetensors"
    save_file(load_file(model.path), bare)
    assert "--architecture" in measure(npz, model_path=bare, exit_code=1)
    assert "not those of blk_1_fil_4 on 32x32x3" in measure(
        npz, "--architecture=blk_1_fil_4", model_path=bare, exit_code=1
    )
    known = ("--architecture", '{"blocks": 1, "filters": 4}', "--input=8x8x1")
    assert measure(npz, *known, model_path=bare)["mean_error"] == pytest.approx(by_hand.facts.mean_error)
    stretched = measure(npz, *known, "--range=-1,1", model_path=bare)
    assert stretched["channel_mean"][0] == pytest.approx(2 * by_hand.facts.channel_mean[0] - 1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--architecture=blk"], "architecture 'blk': .*blk_4_fil_64"),
        (["--architecture={"], "architecture '{'"),
        (["--input=8x8"], "input '8x8': .*32x32x3"),
        (["--input=9x9x1"], "blk_1_fil_4"),
        (["--range=1,0"], "range '1,0'"),
        (["--range=0"], "range '0'"),
    ],
)
def test_options_that_say_nothing(measure, npz, options, words):
    import re

    assert re.search(words, measure(npz, *options, exit_code=1))


def test_data_that_cannot_be_measured(measure, as_dataset, tmp_path):
    zeros = np.zeros((3, 8, 8), np.uint8)
    assert "no array x or x_train" in measure(as_dataset(x_test=zeros).path, exit_code=1)
    assert "takes images of 8x8x1; these are 8x4x1" in measure(as_dataset(x=zeros[:, :, :4]).path, exit_code=1)
    assert "at least 2 images; there were 1" in measure(as_dataset(x=zeros[:1]).path, exit_code=1)
    assert "at least 2 images; there were 0" in measure(as_dataset(x=zeros[:0]).path, exit_code=1)
    assert "not finite" in measure(as_dataset(x=np.full((3, 8, 8), np.nan)).path, exit_code=1)
    (tmp_path / "text").write_text("no npz")
    assert "neither an npz nor a folder" in measure(tmp_path / "text", exit_code=1)
    (tmp_path / "empty").mkdir()
    assert "there is no image" in measure(tmp_path / "empty", exit_code=1)
    assert "No such file" in measure(tmp_path / "nowhere", exit_code=1)
    assert not (tmp_path / "capsule").exists()


def test_files_that_are_no_models(measure, npz, tmp_path, new_model):
    (tmp_path / "model").write_bytes(b"no safetensors")
    assert "is no safetensors file" in measure(npz, model_path=tmp_path / "model", exit_code=1)
    blind = new_model(spoil=lambda network: network.encoder.stem.bias.fill_(float("nan")))
    assert "not a finite number" in measure(npz, model_path=blind.path, exit_code=1)
    assert "no folder" in measure(npz, out=tmp_path / "no" / "where", exit_code=1)
