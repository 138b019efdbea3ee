"""What a tracking server gets of a network: drawn by a real runner, of whatever family it is."""

import time

import numpy as np
import onnxruntime
import pytest
from making import weights
from safetensors.numpy import load, save

from flashcards.contract.architecture import architecture_spec
from ledger import blobs
from ledger.db import Database
from ledger.migrate import migrate
from ledger.settings import Settings
from ledger.store import hash_file
from ledger.tables import DEFAULT_TENANT
from ledger.tracking.mlmodel import folder_of
from worker import made
from worker.made import Made
from worker.station import Station


@pytest.fixture(scope="module")
def station(tmp_path_factory):
    settings = Settings(home=tmp_path_factory.mktemp("home"))
    migrate(Database(settings.database))
    opened = Station(settings)
    yield opened
    opened.close()


def fetched(station, folder, architecture: str, content: bytes):
    path = folder / "given"
    path.write_bytes(content)
    kept = hash_file(path)
    blobs.put(station.db, station.store, DEFAULT_TENANT, kept, path)
    told = architecture_spec.validate_python(architecture).model_dump(mode="json")
    return made.fetch(station, DEFAULT_TENANT, Made(kept.digest, told, "16x16x1", [0, 1], time.time(), {}), folder)


@pytest.mark.parametrize(
    ("architecture", "answer"),
    [("blk_2_fil_4", (3, 1, 16, 16)), ("dense_ae_16_4", (3, 1, 16, 16)), ("resnet18_10_width_4", (3, 10))],
)
def test_every_family_has_a_graph_and_says_how_far_it_was_seen_to_differ(station, tmp_path, architecture, answer):
    model = fetched(station, tmp_path, architecture, weights(architecture))
    assert set(model.files) == {"model.safetensors", "model.onnx"}
    assert 0 <= model.graph_off_by < 1e-3
    assert b"onnx_max_abs_difference" in folder_of(model, "0" * 32)["MLmodel"]
    session = onnxruntime.InferenceSession(model.files["model.onnx"], providers=["CPUExecutionProvider"])
    (y,) = session.run(["y"], {"x": np.zeros((3, 1, 16, 16), np.float32)})
    assert y.shape == answer


def test_a_network_that_cannot_be_held_against_its_graph_goes_without_one(station, tmp_path, capsys):
    broken = {name: np.full_like(tensor, np.inf) for name, tensor in load(weights("dense_ae_16_4")).items()}
    model = fetched(station, tmp_path, "dense_ae_16_4", save(broken))
    assert (set(model.files), model.graph_off_by) == ({"model.safetensors"}, None)
    assert "look at its weights" in capsys.readouterr().out
