"""Bundles between two installations: what goes out of the one comes into the other, with its story."""

import hashlib
import json
import zipfile

import numpy as np
import pytest
from bundling import bundle_of, changed, opened, packed, refusal, take
from making import finished, npz, push_dataset, push_model, weights

DIGITS = 80


@pytest.fixture(scope="module")
def images(api, digits) -> dict:
    arrays = {name: digits[name][:DIGITS] for name in ("x_train", "x_test")}
    return push_dataset(api, npz(**arrays), "few digits")


@pytest.fixture(scope="module")
def trained(api, images) -> dict:
    """A model with a capsule, that was evaluated and captured from."""
    made = finished(
        api, kind="train", dataset=images["id"], architecture="blk_1_fil_8", epochs=15, batch_size=10, name="a *net*"
    )
    model = api.get(f"/v1/models/{made['result']['model']}").json()
    evaluated = finished(api, kind="evaluate", model=model["id"], dataset=images["id"])
    captured = finished(api, kind="capture", model=model["id"], count=20)
    return {**model, "train": made, "evaluate": evaluated, "capture": captured}


@pytest.fixture(scope="module")
def bundle(api, trained) -> bytes:
    return bundle_of(api, f"models/{trained['id']}")


@pytest.fixture(scope="module")
def taken(elsewhere, bundle) -> dict:
    return take(elsewhere, bundle)["model"]


class TestOut:
    def test_a_bundle_holds_what_there_is_to_know(self, api, trained, bundle):
        files = opened(bundle)
        assert sorted(files) == [
            "README.md",
            "bundle.json",
            "capsule.safetensors",
            "lineage.json",
            "metrics.json",
            "model.safetensors",
            "recipes.json",
        ]
        assert files["model.safetensors"] == api.get(f"/v1/models/{trained['id']}/weights").content
        assert files["capsule.safetensors"] == api.get(f"/v1/models/{trained['id']}/capsule").content
        told = json.loads(files["bundle.json"])
        assert (told["format"], told["version"], told["model"]["id"]) == ("flashcards-bundle", 1, trained["id"])
        assert told["files"]["README.md"]["digest"] == hashlib.sha256(files["README.md"]).hexdigest()
        lineage = json.loads(files["lineage.json"])
        assert [job["id"] for job in lineage["jobs"]] == [trained["train"]["id"]]
        assert lineage["datasets"][0]["splits"] == {"train": DIGITS, "test": DIGITS}
        said = {each["kind"]: each["result"] for each in json.loads(files["metrics.json"])["jobs"]}
        assert said["evaluate"]["mae"] == trained["evaluate"]["result"]["mae"]
        assert said["train"]["validation_mae"] == trained["train"]["result"]["validation_mae"]
        (recipe,) = json.loads(files["recipes.json"])["flashcards"]
        assert recipe["recipe"] == trained["capture"]["result"]["recipe"]

    def test_no_image_is_in_it(self, bundle, digits):
        raw = digits["x_train"][:DIGITS]
        for pixels in (raw[0].tobytes(), (raw[0] / 255).astype(np.float32).tobytes()):
            assert pixels not in bundle

    def test_the_card_is_markdown_that_a_name_cannot_break(self, bundle, trained):
        card = opened(bundle)["README.md"].decode()
        assert "# a \\*net\\*\n" in card
        assert f"{trained['evaluate']['result']['mae']:g}" in card
        assert "few digits" in card

    def test_the_same_record_makes_the_same_bytes(self, api, trained, bundle):
        answer = api.get(f"/v1/models/{trained['id']}/bundle")
        assert answer.content == bundle
        tag = {"If-None-Match": answer.headers["ETag"]}
        assert api.get(f"/v1/models/{trained['id']}/bundle", headers=tag).status_code == 304

    def test_what_is_not_there_has_none(self, api):
        assert api.get(f"/v1/models/model_{'0' * 32}/bundle").status_code == 404
        assert api.get(f"/v1/learners/learner_{'0' * 32}/versions/1/bundle").status_code == 404


class TestIn:
    def test_it_is_the_same_model(self, elsewhere, trained, taken):
        same = ("name", "architecture", "input", "range", "parameters", "digest", "size", "capsule", "task")
        assert {name: taken[name] for name in same} == {name: trained[name] for name in same}
        assert (taken["origin"], taken["job"]) == ("import", None)
        assert taken["id"] != trained["id"]
        weights = elsewhere.get(f"/v1/models/{taken['id']}/weights").content
        assert hashlib.sha256(weights).hexdigest() == trained["digest"]

    def test_it_makes_the_same_cards(self, elsewhere, trained, taken):
        spec = {"kind": "capture", "count": 20, "model": taken["id"]}
        result = finished(elsewhere, **spec)["result"]
        assert result["cards_digest"] == trained["capture"]["result"]["cards_digest"]
        assert not result["forward_unverified"]

    def test_its_story_came_along(self, elsewhere, trained, images, bundle, taken):
        lineage = elsewhere.get(f"/v1/models/{taken['id']}/lineage").json()
        assert (lineage["job"], lineage["made_from"]) == (None, [])
        story = lineage["imported"]
        assert story["bundle"] == hashlib.sha256(bundle).hexdigest()
        assert (story["id"], story["model"]["digest"]) == (trained["id"], trained["digest"])
        assert story["model"]["origin"] == "train"
        assert [each["id"] for each in story["lineage"]["datasets"]] == [images["id"]]
        assert story["lineage"]["datasets"][0]["digest"] == images["digest"]
        assert [each["id"] for each in story["recipes"]] == [trained["capture"]["result"]["flashcards"]]
        assert {each["kind"] for each in story["metrics"]} == {"train", "evaluate"}

    def test_it_goes_on_from_hand_to_hand(self, api, elsewhere, trained, taken):
        """Back home it knows both of its lives."""
        again = take(api, bundle_of(elsewhere, f"models/{taken['id']}"), name="come home")["model"]
        assert (again["name"], again["digest"]) == ("come home", trained["digest"])
        story = api.get(f"/v1/models/{again['id']}/lineage").json()["imported"]
        assert (story["id"], story["model"]["origin"]) == (taken["id"], "train")
        assert trained["id"] in [each["id"] for each in story["lineage"]["models"]]
        assert trained["train"]["id"] in [each["id"] for each in story["lineage"]["jobs"]]

    def test_a_key_makes_it_once(self, elsewhere, bundle):
        headers = {"Idempotency-Key": "once"}
        first, second = (elsewhere.post("/v1/bundles", content=bundle, headers=headers) for _ in range(2))
        assert first.json() == second.json()
        assert first.headers["Location"] == f"/v1/models/{first.json()['model']['id']}"
        assert second.headers["Idempotency-Replayed"] == "true"

    def test_deleted_it_leaves_nothing(self, elsewhere, bundle):
        model = take(elsewhere, bundle)["model"]
        assert elsewhere.delete(f"/v1/models/{model['id']}").status_code == 204
        assert elsewhere.get(f"/v1/models/{model['id']}/lineage").status_code == 404

    def test_an_uploaded_model_stays_unverified(self, api, elsewhere):
        model = take(elsewhere, bundle_of(api, f"models/{push_model(api)['id']}"))["model"]
        assert finished(elsewhere, kind="capture", model=model["id"], count=2, r=1)["result"]["forward_unverified"]

    def test_a_classifier_has_no_capsule(self, api, elsewhere):
        classifier = push_model(api, "tasknet_10_width_2_hidden_8_latent_4")
        taken = take(elsewhere, bundle_of(api, f"models/{classifier['id']}"))["model"]
        assert (taken["digest"], taken["capsule"], taken["task"]) == (classifier["digest"], None, "classify")


class TestRefused:
    def test_a_wrong_digest(self, api, bundle):
        files = opened(bundle)
        files["model.safetensors"] = weights("blk_1_fil_8", "8x8x1", seed=9)
        told = json.loads(files["bundle.json"])
        told["files"]["model.safetensors"]["size"] = len(files["model.safetensors"])
        files["bundle.json"] = json.dumps(told).encode()
        problem = refusal(api, packed(files))
        assert problem["title"] == "a digest is wrong"
        assert "'model.safetensors'" in problem["detail"]

    def test_a_flipped_bit(self, api, bundle):
        place = bundle.index(b"decoder.head.bias") + 3000
        refusal(api, bundle[:place] + bytes([bundle[place] ^ 1]) + bundle[place + 1 :])

    @pytest.mark.parametrize("version", [2, 0, "1", None, True])
    def test_another_version_of_the_format(self, api, bundle, version):
        problem = refusal(api, changed(bundle, version=version))
        assert problem["title"] == "the bundle is of another version"
        assert "version 1 is read here" in problem["detail"]

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"format": "something"}, "not flashcards-bundle"),
            ({"files": []}, "does not list its files"),
            ({"model": None}, "a model or a learner"),
            ({"surprise": 1}, "surprise"),
            ({"names": {"model.safetensors": None}}, "should hold weights"),
            ({"names": {"spare.safetensors": weights()}}, "nothing in the manifest names it"),
            ({"names": {"model.safetensors": b"x" * 200}}, "safetensors"),
            ({"names": {"model.safetensors": weights("blk_2_fil_4")}}, "blk_1_fil_8"),
            ({"names": {"capsule.safetensors": weights("blk_1_fil_8", "8x8x1")}}, "capsule"),
            ({"names": {"lineage.json": b"[]"}}, "holds no object"),
            ({"names": {"lineage.json": b'{"jobs": 1e999}'}}, "lineage.json"),
            ({"names": {"metrics.json": b'{"jobs": [{"x": "\\ud800"}]}'}}, "metrics.json"),
            ({"names": {"metrics.json": b"[" * 100_000}}, "metrics.json"),
            ({"names": {"recipes.json": b" " * 500_000}}, "is the most"),
        ],
    )
    def test_what_does_not_fit_together(self, api, bundle, change, words):
        problem = refusal(api, changed(bundle, **change))
        assert words in problem["detail"] + problem["title"]

    def test_a_capsule_of_other_weights(self, api, bundle, digits):
        images = push_dataset(api, npz(x=digits["x_train"][100:180]))
        other = finished(api, kind="train", dataset=images["id"], architecture="blk_1_fil_8", epochs=15, batch_size=10)
        capsule = api.get(f"/v1/models/{other['result']['model']}/capsule").content
        problem = refusal(api, changed(bundle, {"capsule.safetensors": capsule}))
        assert "it was measured on weights with the digest" in problem["detail"]

    def test_what_is_no_bundle(self, api, digits_npz):
        assert "there is no bundle.json" in refusal(api, digits_npz)["detail"]
        assert "a bundle is a zip" in refusal(api, weights())["detail"]

    def test_a_compressed_one(self, api, bundle):
        assert "zip -0" in refusal(api, packed(opened(bundle), zipfile.ZIP_DEFLATED))["detail"]

    def test_a_stray_file(self, api, bundle):
        assert "'stray.txt' is in it" in refusal(api, packed(opened(bundle) | {"stray.txt": b"?"}))["detail"]

    def test_a_bundle_at_the_door_of_models(self, api, bundle):
        answer = api.post("/v1/models", params={"name": "net"}, content=bundle)
        assert (answer.status_code, answer.json()["title"]) == (422, "this is a bundle")

    def test_nothing_is_left_of_them(self, api, service, bundle):
        before = api.get("/v1/models").json()["items"][0]["id"]
        refusal(api, changed(bundle, version=2))
        assert api.get("/v1/models").json()["items"][0]["id"] == before
        assert list((service.home / "spool").iterdir()) == []


def test_another_tenant_finds_none(alice, mallory):
    model = push_model(alice)
    assert mallory.get(f"/v1/models/{model['id']}/bundle").status_code == 404
