"""What cannot be captured, measured or learnt from: a clear refusal at the door or a failed job with the reason in
words, and nothing lost. Capsules that do not fit are in test_capsules, labels that are missing in test_classifiers."""

import io
import zipfile

import numpy as np
import pytest
from graphs import matrix, model
from making import npz, push_dataset, push_model, submit, wait_for, weights
from onnx import helper
from PIL import Image
from safetensors.numpy import load, save

TRAIN = {"kind": "train", "architecture": "blk_1_fil_4", "epochs": 2}


def refusal(answer) -> str:
    assert 400 <= answer.status_code < 500, answer.text
    problem = answer.json()
    return " ".join([problem["title"], problem["detail"], *(each["message"] for each in problem.get("errors", []))])


def counted(api, what: str) -> list[str]:
    return [each["id"] for each in api.get(f"/v1/{what}", params={"limit": 100}).json()["items"]]


class TestAnAutoencoderThatDoesNotGiveBackWhatItTakes:
    def test_a_head_of_other_channels(self, api):
        before = counted(api, "models")
        tensors = load(weights("blk_1_fil_4", "8x8x3"))
        tensors["decoder.head.weight"] = tensors["decoder.head.weight"][:1]
        tensors["decoder.head.bias"] = tensors["decoder.head.bias"][:1]
        params = {"name": "grey of colour", "architecture": "blk_1_fil_4", "input": "8x8x3"}
        words = refusal(api.post("/v1/models", params=params, content=save(tensors)))
        assert "1x4x3x3" in words.replace(" ", "")
        assert "3x4x3x3" in words.replace(" ", "")
        assert counted(api, "models") == before

    def test_images_that_do_not_halve(self, api):
        params = {"name": "odd", "architecture": "blk_2_fil_4", "input": "18x18x1"}
        assert "divide by 4" in refusal(api.post("/v1/models", params=params, content=weights("blk_2_fil_4")))

    def test_a_graph_with_another_answer(self, api):
        nodes = [helper.make_node("MatMul", ["x", "down"], ["z"]), helper.make_node("MatMul", ["z", "up"], ["y"])]
        constants = [matrix("down", 6, 3), matrix("up", 3, 5)]
        content = model(nodes, constants, ["N", 6], ["N", 5]).SerializeToString()
        words = refusal(api.post("/v1/models", params={"name": "no"}, content=content))
        assert "an autoencoder gives back what it takes" in words


def test_images_of_mixed_sizes(api):
    before = counted(api, "datasets")
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, side in (("a.png", 8), ("b.png", 9)):
            picture = io.BytesIO()
            Image.new("L", (side, side), 7).save(picture, "PNG")
            archive.writestr(name, picture.getvalue())
    answer = api.post("/v1/datasets", params={"name": "mixed"}, content=stream.getvalue())
    words = refusal(answer)
    assert "8x8x1" in words
    assert "9x9x1" in words
    assert counted(api, "datasets") == before
    sized = api.post("/v1/datasets", params={"name": "mixed", "input": "8x8x1"}, content=stream.getvalue())
    assert sized.json()["splits"]["train"]["count"] == 2


@pytest.fixture(scope="module")
def net(api):
    return push_model(api, "blk_1_fil_4", "8x8x1")["id"]


@pytest.fixture(scope="module")
def lonely(api):
    return push_dataset(api, npz(x=np.full((1, 8, 8), 9, np.uint8)), "lonely")["id"]


@pytest.fixture(scope="module")
def flat(api):
    x = np.full((40, 8, 8), 9, np.uint8)
    return push_dataset(api, npz(x_train=x, x_test=x), "flat")["id"]


class TestOneImage:
    @pytest.mark.parametrize("kind", ["train", "analyze", "evaluate"])
    def test_is_too_few(self, api, net, lonely, kind):
        spec = {**TRAIN, "dataset": lonely} if kind == "train" else {"kind": kind, "model": net, "dataset": lonely}
        answer = api.post("/v1/jobs", json=spec)
        if answer.status_code == 202:
            job = wait_for(api, answer.json()["id"])
            assert (job["state"], job["error"]["type"]) == ("failed", "dataset-unfit")
            words = job["error"]["detail"]
        else:
            words = refusal(answer)
        assert "at least 2" in words
        assert api.get(f"/v1/datasets/{lonely}").status_code == 200


class TestConstantImages:
    def test_that_are_not_learnt_are_told_as_a_collapse(self, api, flat):
        job = wait_for(api, submit(api, **TRAIN, dataset=flat)["id"])
        assert (job["state"], job["error"]["type"]) == ("failed", "training-collapsed")
        assert "all images are the same one" in job["error"]["detail"]
        assert api.get(f"/v1/datasets/{flat}").status_code == 200

    def test_cannot_be_compared_with_cards(self, api, net, flat):
        cards = wait_for(api, submit(api, kind="capture", model=net, count=8, r=1, source="maze")["id"])
        job = wait_for(api, submit(api, kind="evaluate", flashcards=cards["result"]["flashcards"], dataset=flat)["id"])
        assert (job["state"], job["error"]["type"]) == ("failed", "dataset-unfit")
        assert "one and the same latent" in job["error"]["detail"]
        assert api.get(f"/v1/flashcards/{cards['result']['flashcards']}").status_code == 200
