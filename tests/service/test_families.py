"""Networks other than the paper's, all the way: upload, training, capture, and what is told of them."""

import io
import json
from types import SimpleNamespace

import numpy as np
import pytest
from making import finished, npz, push_dataset, push_model
from safetensors.numpy import load

import flashcards
from ledger import tables
from service import views


@pytest.fixture(scope="module")
def table(api, digits) -> dict:
    return push_dataset(api, npz(x=(digits["x_train"][:200].reshape(200, 64) / 255).astype(np.float32)), "table")


def test_a_row_from_before_there_were_families():
    row = tables.Model(
        id="model_" + "0" * 32,
        name="old",
        architecture={"blocks": 2, "filters": 4, "activation": "tanh", "head": "linear"},
        input="16x16x1",
        range=[0, 1],
        parameters=7,
        digest="d",
        size=1,
        origin="upload",
        created_at=0,
    )
    told = views.model(row)
    assert (told.architecture.family, told.architecture_name) == ("blk", "blk_2_fil_4")


@pytest.mark.parametrize(
    ("architecture", "input"),
    [("conv_ae_4_8", "8x8x1"), ("dense_ae_8_4", "1x20x1")],
)
def test_an_upload_makes_cards(api, architecture, input):
    model = push_model(api, architecture, input)
    assert (model["architecture_name"], model["architecture"]["family"]) == (
        architecture,
        architecture.partition("_ae")[0] + "_ae",
    )
    cards = finished(api, kind="capture", model=model["id"], count=3, r=2)["result"]["flashcards"]
    found = load_cards(api, cards)
    assert found.shape == (3, *map(int, input.split("x")))
    assert np.isfinite(found).all()
    assert api.get(f"/v1/flashcards/{cards}/cards", params={"format": "png", "limit": 3}).status_code == 200


def test_a_capsule_of_vectors_that_was_measured_at_home_fits(api):
    model = push_model(api, "dense_ae_8_4", "1x20x1")
    rows = np.random.default_rng(0).random((50, 20), np.float32)
    own = SimpleNamespace(encoder=lambda x: x[:, :4], decoder=lambda z: np.pad(z, ((0, 0), (0, 16))))
    kept = flashcards.measure_capsule(own, [rows])
    answer = api.put(f"/v1/models/{model['id']}/capsule", content=kept.to_bytes())
    assert answer.status_code == 200, answer.text
    cards = finished(api, kind="capture", model=model["id"], count=3, source="capsule")["result"]["flashcards"]
    assert load_cards(api, cards).shape == (3, 1, 20, 1)


def load_cards(api, id: str) -> np.ndarray:
    return np.load(io.BytesIO(api.get(f"/v1/flashcards/{id}/cards", params={"limit": 10, "format": "npz"}).content))[
        "x"
    ]


def test_a_table_is_learnt_and_evaluated(api, table):
    assert table["splits"]["train"]["shape"] == "1x64x1"
    asked = {"family": "dense_ae", "widths": [48], "latent": 16}
    job = finished(
        api, kind="train", dataset=table["id"], architecture=asked, epochs=12, learning_rate=0.01, batch_size=16
    )
    model = api.get(f"/v1/models/{job['result']['model']}").json()
    assert (model["architecture_name"], model["input"]) == ("dense_ae_48_16", "1x64x1")
    assert model["architecture"] == {**asked, "activation": "relu", "head": "linear"}
    assert model["parameters"] == job["result"]["parameters"] == 2 * 48 * (64 + 16) + 2 * 48 + 16 + 64
    told = finished(api, kind="evaluate", model=model["id"], dataset=table["id"])["result"]
    assert told["mae"] < told["constant_mae"]


def test_batch_norm_is_learnt_kept_and_uploaded_again(api, dataset):
    asked = {"kind": "train", "dataset": dataset["id"], "architecture": "conv_ae_8_16"}
    job = finished(api, **asked, epochs=2, learning_rate=0.01, batch_size=16)
    model = api.get(f"/v1/models/{job['result']['model']}").json()
    weights = api.get(f"/v1/models/{model['id']}/weights").content
    assert load(weights)["encoder.stages.0.norm.num_batches_tracked"] == 57 * job["result"]["best_epoch"]
    again = api.post("/v1/models", params={"name": "again"}, content=weights).json()
    assert (again["architecture"], again["digest"]) == (model["architecture"], model["digest"])


@pytest.mark.parametrize(
    ("architecture", "words"),
    [
        ("conv_ae_8", "for vectors there is dense_ae"),
        ("blk_1_fil_4", "must divide by 2"),
        ("conv_ae_8_8_8_8_8_8_8", "name an autoencoder as"),
        ({"family": "resnet"}, "'conv_ae', 'dense_ae'"),
        ({"family": "dense_ae", "widths": [0], "latent": 2}, "greater than or equal to 1"),
    ],
)
def test_what_does_not_fit_is_said_at_the_door(api, table, architecture, words):
    spec = {"kind": "train", "dataset": table["id"], "architecture": architecture}
    answer = api.post("/v1/jobs", params={"validate_only": True}, json=spec)
    assert answer.status_code == 422
    assert words in json.dumps(answer.json(), ensure_ascii=False)
