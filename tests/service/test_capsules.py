"""Capsules over HTTP, and what can be done with a model that has one."""

import io
import json

import numpy as np
import pytest
from making import finished, push_dataset, push_model, submit

from flashcards.contract.capsule import Capsule, CapsuleFacts, pack, read


@pytest.fixture(scope="module")
def dataset(api, digits_npz):
    return push_dataset(api, digits_npz)["id"]


@pytest.fixture(scope="module")
def trained(api, dataset):
    job = finished(api, kind="train", dataset=dataset, architecture="blk_1_fil_4", epochs=5, learning_rate=0.01)
    return api.get(f"/v1/models/{job['result']['model']}").json()


@pytest.fixture(scope="module")
def cards(api, trained):
    job = finished(api, kind="capture", model=trained["id"], count=80)
    return api.get(f"/v1/flashcards/{job['result']['flashcards']}").json()


def facts(**fields) -> CapsuleFacts:
    """Of a blk_2_fil_4 on 16x16x1."""
    known = {
        "count": 100,
        "latent": (4, 4, 4),
        "eps1": 0.01,
        "eps2": 0.2,
        "mean_error": 0.1,
        "error_quantiles": {"0.5": 0.1},
        "channel_mean": [0.3],
        "channel_deviation": [0.2],
    }
    return CapsuleFacts(**(known | fields))


def measured(size=64, **fields) -> Capsule:
    return pack(facts(**fields), np.zeros(size), np.eye(size) / 100)


def attach(api, model_id: str, content: bytes):
    return api.put(f"/v1/models/{model_id}/capsule", content=content)


def test_a_training_leaves_a_capsule(api, trained):
    kept = trained["capsule"]
    assert (kept["count"], kept["measured_on"], kept["model_digest"]) == (1000, "images", trained["digest"])
    content = api.get(f"/v1/models/{trained['id']}/capsule").content
    assert len(content) == kept["size"] <= 200_000
    assert read(content).facts.eps1 == kept["eps1"]


def test_what_was_measured_at_home_is_attached_and_used(api):
    model = push_model(api)
    assert model["capsule"] is None
    assert api.get(f"/v1/models/{model['id']}/capsule").status_code == 404
    refused = api.post("/v1/jobs", json={"kind": "capture", "model": model["id"], "source": "capsule"})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "body.source")

    answer = attach(api, model["id"], measured(model_digest=model["digest"]).to_bytes())
    assert answer.status_code == 200, answer.text
    assert answer.json()["capsule"]["count"] == 100
    job = finished(api, kind="capture", model=model["id"], source="capsule", count=20)
    recipe = job["result"]["recipe"]
    assert (recipe["source"], recipe["r"]) == ("capsule", 0)
    assert recipe["capsule_digest"] == answer.json()["capsule"]["digest"]
    assert job["result"]["measures"]["flsd"] >= 0


def test_another_takes_its_place(api):
    model = push_model(api)
    first = attach(api, model["id"], measured().to_bytes()).json()["capsule"]["digest"]
    second = attach(api, model["id"], measured(count=200).to_bytes()).json()["capsule"]["digest"]
    assert first != second
    assert api.get(f"/v1/models/{model['id']}").json()["capsule"]["digest"] == second


def not_psd() -> bytes:
    covariance = np.eye(64)
    covariance[0, 1] = covariance[1, 0] = 2
    return pack(facts(), np.zeros(64), covariance).to_bytes()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (measured(model_digest="0" * 64).to_bytes(), "weights with the digest"),
        (measured(32, latent=(2, 4, 4)).to_bytes(), "a latent of 32 numbers"),
        (measured(channel_mean=[0.1] * 3, channel_deviation=[0.1] * 3).to_bytes(), "3 channels"),
        (not_psd(), "positive semi-definite"),
        (pack(facts(), np.full(64, np.nan), np.eye(64)).to_bytes(), "not finite"),
        (measured().to_bytes()[:-8], "capsule"),
        (b"PK\x03\x04 not a capsule at all", "capsule"),
        (b"\x10" + b"\x00" * 10 + b"{" + b"\x00" * 3 + b"}", "not a capsule"),  # JSON may be UTF-32, headers may not
        (b"\x00" * (5 << 20), "too large"),
        (b"", "empty"),
    ],
    ids=["digest", "latent", "channels", "not-psd", "nan", "cut-off", "zip", "utf-32", "large", "empty"],
)
def test_a_capsule_that_does_not_fit_is_refused_in_words(api, content, words):
    model = push_model(api)
    answer = attach(api, model["id"], content)
    assert 400 <= answer.status_code < 500
    assert words in f"{answer.json()['title']} {answer.json()['detail']}", answer.text
    assert api.get(f"/v1/models/{model['id']}").json()["capsule"] is None


def test_a_new_network_is_taught_by_cards_alone(api, trained, cards, dataset):
    spec = {"flashcards": cards["id"], "architecture": "blk_1_fil_6", "epochs": 10, "learning_rate": 0.01}
    job = finished(api, kind="distill", dataset=dataset, name="child", **spec)
    result = job["result"]
    assert [each["on"] for each in result["compared"]] == ["cards", "dataset"]
    child = api.get(f"/v1/models/{result['model']}").json()
    assert (child["origin"], child["name"], child["architecture_name"]) == ("distill", "child", "blk_1_fil_6")
    assert child["capsule"]["measured_on"] == "cards"
    lineage = api.get(f"/v1/models/{child['id']}/lineage").json()
    assert set(lineage["made_from"]) == {cards["id"], trained["id"], dataset}
    assert finished(api, kind="evaluate", model=child["id"], dataset=dataset)["result"]["mae"] > 0


def test_cards_are_measured_against_images(api, cards, dataset):
    result = finished(api, kind="evaluate", flashcards=cards["id"], dataset=dataset)["result"]
    assert 0 <= result["precision"] <= 1
    assert result["privacy"]["verdict"]


def test_each_pass_is_looked_at(api, trained):
    job = finished(api, kind="analyze", model=trained["id"], max_r=4, count=32)
    result = job["result"]
    assert (result["against"], len(result["gamma2"]), len(result["flsd"])) == ("capsule", 4, 5)
    assert {"strip.png", "curves.png", "latents.png"} <= {artifact["name"] for artifact in job["artifacts"]}


def test_of_a_recipe_alone_the_cards_can_be_made_again(api, trained, cards):
    job = finished(api, kind="capture", model=trained["id"], count=80, materialise=False)
    bare = api.get(f"/v1/flashcards/{job['result']['flashcards']}").json()
    assert (bare["materialised"], bare["digest"]) == (False, cards["digest"])
    assert "cards.npy" not in {artifact["name"] for artifact in job["artifacts"]}
    answer = api.get(f"/v1/flashcards/{bare['id']}/cards")
    assert answer.status_code == 409
    again = answer.json()["detail"].split(": ", 1)[1]
    assert json.loads(again)["backend"] == bare["recipe"]["backend"]
    made = finished(api, **json.loads(again))["result"]
    assert (made["cards_digest"], made["recipe"]) == (bare["digest"], bare["recipe"])
    refused = api.post("/v1/jobs", json={"kind": "distill", "flashcards": bare["id"]})
    assert refused.status_code == 422
    assert api.get(f"/v1/flashcards/{bare['id']}/sheet.png").status_code == 200
    assert api.delete(f"/v1/flashcards/{bare['id']}").status_code == 204


@pytest.mark.parametrize(
    ("field", "spec"),
    [
        ("flashcards", {"kind": "distill", "flashcards": "flashcards_" + "0" * 32}),
        ("flashcards", {"kind": "evaluate", "flashcards": "flashcards_" + "0" * 32}),
        ("model", {"kind": "analyze", "model": "model_" + "0" * 32}),
    ],
)
def test_what_is_not_there_is_named(api, dataset, field, spec):
    if spec["kind"] == "evaluate":
        spec = {**spec, "dataset": dataset}
    answer = api.post("/v1/jobs", json=spec)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, f"body.{field}")


def test_one_card_teaches_nothing(api, trained):
    job = finished(api, kind="capture", model=trained["id"], count=1)
    answer = api.post("/v1/jobs", json={"kind": "distill", "flashcards": job["result"]["flashcards"]})
    assert answer.status_code == 422
    assert "at least 2" in answer.text


def test_cards_are_kept_while_a_job_needs_them(api, cards):
    job = submit(api, kind="distill", flashcards=cards["id"], architecture="blk_2_fil_4", epochs=100_000)
    try:
        assert api.delete(f"/v1/flashcards/{cards['id']}").status_code == 409
    finally:
        api.post(f"/v1/jobs/{job['id']}/cancel")
    whole = np.load(io.BytesIO(api.get(f"/v1/flashcards/{cards['id']}/cards").content))["x"]
    assert len(whole) == 80
