"""Classifiers over HTTP: from upload or training to evaluation and answers, and what is refused on the way."""

import io
import json

import numpy as np
import pytest
from making import finished, npz, push_dataset, push_model, wait_for, weights
from safetensors.numpy import save

TINY = "tasknet_10_width_4_hidden_32_latent_8"
LESSON = {"epochs": 4, "batch_size": 16, "learning_rate": 0.003}


def refused(api, **spec) -> tuple[str, str]:
    """The field, and why."""
    answer = api.post("/v1/jobs?validate_only=true", json=spec)
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["errors"]
    return error["field"], error["message"]


def artifact(api, job: dict, name: str) -> bytes:
    answer = api.get(f"/v1/jobs/{job['id']}/artifacts/{name}")
    assert answer.status_code == 200
    return answer.content


@pytest.fixture(scope="module")
def labelled(api, digits) -> dict:
    some = {name: array[:200] for name, array in digits.items()}
    return push_dataset(api, npz(**some), "labelled")


@pytest.fixture(scope="module")
def trained(api, labelled) -> dict:
    return finished(api, kind="train", dataset=labelled["id"], architecture=TINY, **LESSON)


@pytest.fixture(scope="module")
def classifier(api, trained) -> dict:
    return api.get(f"/v1/models/{trained['result']['model']}").json()


@pytest.fixture(scope="module")
def autoencoder(api) -> dict:
    return push_model(api, "blk_1_fil_4", "8x8x1")


def test_a_training_on_labels_makes_a_model(api, labelled, trained, classifier):
    result = trained["result"]
    assert result["validation_accuracy"] > result["constant_accuracy"]
    assert 0 < result["test_accuracy"] <= 1
    assert sum(each["images"] for each in result["per_class"]) == 200 - result["images"]
    assert (classifier["task"], classifier["architecture_name"], classifier["input"]) == ("classify", TINY, "8x8x1")
    assert (classifier["capsule"], classifier["origin"]) == (None, "train")
    curves = api.get(f"/v1/jobs/{trained['id']}/metrics").json()["metrics"]
    assert set(curves) == {"train_log_loss", "validation_log_loss", "validation_accuracy"}
    assert labelled["splits"]["train"] | {"lowest_label": 0, "highest_label": 9} == labelled["splits"]["train"]


def test_it_is_evaluated_by_what_it_answers(api, labelled, trained, classifier):
    job = finished(api, kind="evaluate", model=classifier["id"], dataset=labelled["id"])
    result = job["result"]
    assert (result["split"], result["images"], result["classes"]) == ("test", 200, 10)
    assert result["accuracy"] == trained["result"]["test_accuracy"]
    assert np.trace(result["confusion"]) / 200 == pytest.approx(result["accuracy"])
    assert json.loads(artifact(api, job, "calibration.json"))["ece"] == result["ece"]
    for name in ("confusion.png", "calibration.png"):
        assert artifact(api, job, name).startswith(b"\x89PNG")


def test_a_few_images_are_answered_with_classes(api, labelled, digits, classifier):
    job = finished(api, kind="predict", model=classifier["id"], dataset=labelled["id"], rows=[7, 3])
    said = job["result"]["classified"]
    assert [each["row"] for each in said] == [7, 3]
    assert [each["truth"] for each in said] == digits["y_test"][[7, 3]].tolist()
    scores = np.load(io.BytesIO(artifact(api, job, "scores.npy")))
    np.testing.assert_allclose([each["scores"] for each in said], scores, rtol=1e-5)
    assert [each["confidence"] for each in said] == pytest.approx(scores.max(1).tolist())
    assert (job["result"]["model"], job["result"]["dataset"]) == (classifier["id"], labelled["id"])


def test_or_with_reconstructions(api, labelled, autoencoder):
    job = finished(api, kind="predict", model=autoencoder["id"], dataset=labelled["id"], split="train")
    said = job["result"]["reconstructed"]
    assert [each["row"] for each in said] == list(range(16))
    assert np.load(io.BytesIO(artifact(api, job, "reconstructions.npy"))).shape == (16, 8, 8, 1)
    assert artifact(api, job, "reconstructions.png").startswith(b"\x89PNG")
    assert job["result"]["forward_unverified"]


def test_it_learns_from_what_an_autoencoder_makes_of_the_images(api, labelled, autoencoder):
    spec = {"kind": "train", "dataset": labelled["id"], "architecture": TINY, "through": autoencoder["id"]}
    job = finished(api, **spec, **LESSON)
    assert job["result"]["through"] == autoencoder["id"]
    lineage = api.get(f"/v1/models/{job['result']['model']}/lineage").json()
    assert set(lineage["made_from"]) == {labelled["id"], autoencoder["id"]}


class TestUploads:
    @pytest.mark.parametrize("architecture", [TINY, "resnet18_3_2_width_2"])
    def test_a_classifier_is_taken_as_an_autoencoder_is(self, api, labelled, architecture):
        model = push_model(api, architecture, "8x8x1")
        assert (model["task"], model["architecture"]["heads"]) == ("classify", model["architecture"]["heads"])
        job = finished(api, kind="predict", model=model["id"], dataset=labelled["id"], limit=2)
        assert job["result"]["forward_unverified"]
        assert len(job["result"]["classified"][0]["scores"]) == sum(model["architecture"]["heads"])

    def test_weights_of_other_classes_are_refused(self, api):
        params = {"name": "net", "architecture": "resnet18_4_width_2", "input": "8x8x1"}
        answer = api.post("/v1/models", params=params, content=weights("resnet18_3_width_2", "8x8x1"))
        assert answer.status_code == 422
        assert (
            "'heads.0.weight' of resnet18_4_width_2 on 8x8x1 is 4x16, and the file has 3x16" in answer.json()["detail"]
        )

    def test_a_probe_holds_scores(self, api, labelled):
        model = push_model(api, TINY, "8x8x1")
        x = np.zeros((2, 8, 8, 1), np.float32)
        bad = api.put(f"/v1/models/{model['id']}/probe", content=save({"x": x, "y": x}))
        assert (bad.status_code, "y N x 10" in bad.json()["detail"]) == (422, True)
        content = save({"x": x, "y": np.full((2, 10), 5, np.float32)})
        assert api.put(f"/v1/models/{model['id']}/probe", content=content).status_code == 200
        spec = {"kind": "predict", "model": model["id"], "dataset": labelled["id"]}
        job = wait_for(api, api.post("/v1/jobs", json=spec).json()["id"])
        assert (job["state"], job["error"]["type"]) == ("failed", "forward-mismatch")
        assert "scores before a softmax" in job["error"]["detail"]


class TestRefusals:
    @pytest.mark.parametrize("kind", ["capture", "analyze"])
    def test_what_needs_an_autoencoder(self, api, classifier, kind):
        field, why = refused(api, kind=kind, model=classifier["id"])
        assert (field, "is a classifier, and this takes an autoencoder" in why) == ("body.model", True)

    def test_cards_teach_no_classifier(self, api, autoencoder):
        cards = finished(api, kind="capture", model=autoencoder["id"], count=4)["result"]["flashcards"]
        assert refused(api, kind="distill", flashcards=cards, architecture=TINY)[0] == "body.architecture"

    def test_learners_are_autoencoders(self, api, classifier, labelled):
        for body, field in (({"model": classifier["id"]}, "body.model"), ({"architecture": TINY}, "body.architecture")):
            answer = api.post("/v1/learners", json=body)
            assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)
        datasets, strategies = [labelled["id"]] * 2, [{"kind": "naive"}]
        spec = {"kind": "compare", "datasets": datasets, "strategies": strategies, "architecture": TINY}
        assert refused(api, **spec)[0] == "body.architecture"

    def test_a_classifier_has_no_capsule(self, api, classifier):
        answer = api.put(f"/v1/models/{classifier['id']}/capsule", content=b"x")
        assert (answer.status_code, "autoencoder" in answer.json()["detail"]) == (422, True)

    def test_through_a_classifier_nothing_comes_back(self, api, labelled, classifier, autoencoder):
        spec = {"kind": "train", "dataset": labelled["id"], "architecture": TINY}
        assert refused(api, **spec, through=classifier["id"])[0] == "body.through"
        assert refused(api, **spec, through="model_" + "0" * 32)[0] == "body.through"
        assert refused(api, **spec, through=push_model(api)["id"])[0] == "body.through"
        assert refused(api, **spec, through=autoencoder["id"], range=[-1, 1])[0] == "body.range"
        field, why = refused(api, **(spec | {"architecture": "blk_1_fil_4"}), through=autoencoder["id"])
        assert (field, "for classifiers" in why) == ("body.train", True)

    @pytest.mark.parametrize(
        ("labels", "words"),
        [
            (None, "have none"),
            ([0, 1, 0, 10], "go from 0 to 10"),
            ([0, 1, 0, -1], "go from -1 to 1"),
            ([3, 3, 3, 3], "the same label"),
            ([0, 1, 2, 3], "every class has one image"),
        ],
    )
    def test_labels_that_cannot_be_learnt_from(self, api, labels, words):
        arrays = {"x": np.zeros((4, 8, 8), np.uint8)} | ({} if labels is None else {"y": np.array(labels)})
        dataset = push_dataset(api, npz(**arrays))
        field, why = refused(api, kind="train", dataset=dataset["id"], architecture=TINY)
        assert (field, words in why) == ("body.dataset", True)

    def test_test_images_of_classes_that_it_does_not_learn(self, api):
        x = np.zeros((4, 8, 8), np.uint8)
        arrays = {"x_train": x, "y_train": np.array([0, 1, 0, 1]), "x_test": x, "y_test": np.array([0, 1, 2, 12])}
        dataset = push_dataset(api, npz(**arrays))
        field, why = refused(api, kind="train", dataset=dataset["id"], architecture=TINY)
        assert (field, "go from 0 to 12" in why) == ("body.dataset", True)

    def test_labels_that_it_cannot_be_measured_by(self, api, classifier):
        for arrays in ({}, {"y": np.array([0, 11])}):
            dataset = push_dataset(api, npz(x=np.zeros((2, 8, 8), np.uint8), **arrays))
            assert refused(api, kind="evaluate", model=classifier["id"], dataset=dataset["id"])[0] == "body.dataset"

    def test_images_of_other_channels(self, api, classifier):
        dataset = push_dataset(api, npz(x=np.zeros((2, 8, 8, 3), np.uint8), y=np.array([0, 1])))
        for kind in ("evaluate", "predict"):
            field, why = refused(api, kind=kind, model=classifier["id"], dataset=dataset["id"])
            assert (field, "8x8x3" in why) == ("body.dataset", True)

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"limit": 10_000}, "body.predict.limit"),
            ({"rows": list(range(10_000))}, "body.predict.rows"),
            ({"rows": []}, "body.predict.rows"),
            ({"rows": [-1]}, "body.predict.rows.0"),
            ({"rows": [200]}, "body.rows"),
        ],
    )
    def test_more_than_a_few_images(self, api, labelled, classifier, change, field):
        spec = {"kind": "predict", "model": classifier["id"], "dataset": labelled["id"]}
        assert refused(api, **spec, **change)[0] == field

    def test_a_picture_of_twenty_thousand_pixels_a_side(self, api):
        content = npz(x=np.lib.stride_tricks.as_strided(np.zeros(1, np.uint8), (1, 20_000, 200), (0, 0, 0)))
        answer = api.post("/v1/datasets", params={"name": "huge"}, content=content)
        assert (answer.status_code, "sides go from 1 to 1024" in answer.json()["detail"]) == (422, True)
