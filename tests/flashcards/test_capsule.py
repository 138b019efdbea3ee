import json

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from engine.models import build
from engine.weights import save_weights
from flashcards.cli import app
from flashcards.contract.architecture import BlkArchitecture
from flashcards.contract.capsule import read
from flashcards.contract.image import ImageShape

NOBODY = "http://127.0.0.1:9"  # measuring asks no service


@pytest.fixture
def places(tmp_path, digits):
    architecture = BlkArchitecture(blocks=1, filters=4)
    network = build(architecture, ImageShape(8, 8, 1), torch.Generator().manual_seed(0))
    save_weights(tmp_path / "ae.safetensors", network.state_dict(), architecture, ImageShape(8, 8, 1), (0.0, 1.0))
    np.savez(tmp_path / "digits.npz", x=digits["x_train"][:30])
    return ["--model", str(tmp_path / "ae.safetensors"), "--data", str(tmp_path / "digits.npz")]


def run(*words: str):
    return CliRunner().invoke(app, ["--url", NOBODY, "capsule", *words])


def test_a_capsule_is_measured_here(places, tmp_path, monkeypatch):
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "__init__.py").write_text("raise SystemExit('not ours')")
    monkeypatch.chdir(tmp_path)
    done = run(*places, "--json")
    assert done.exit_code == 0, done.output
    path = tmp_path / "ae.capsule.safetensors"
    assert json.loads(done.stdout)["path"] == str(path)
    assert read(path.read_bytes()).facts.count == 30


def test_where_it_goes_and_what_it_says(places, tmp_path):
    done = run(*places, "--out", str(tmp_path / "c"))
    assert done.exit_code == 0, done.output
    shown = dict(line.rstrip().split(maxsplit=1) for line in done.stdout.splitlines())
    assert (shown["images"], shown["latent"]) == ("30", "4x4x4")
    assert read((tmp_path / "c").read_bytes()).facts.count == 30
    assert "--attach" in done.stderr


def test_a_refusal_is_said_once_and_in_words(places, capfd):
    done = run(*places, "--architecture", "blk_2_fil_4")
    assert done.exit_code == 1
    assert "not those of blk_2_fil_4" in capfd.readouterr().err
    assert "Traceback" not in done.output
