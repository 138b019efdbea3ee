"""Networks of other frameworks, all the way: what their exporters wrote is uploaded, looked into, captured."""

import hashlib
import io
import json
from pathlib import Path

import httpx
import numpy as np
import pytest
from making import finished, npz, push_dataset, submit, wait_for
from safetensors.numpy import load_file, save

from flashcards.contract.meter import Meter

FILES = Path(__file__).parent.parent / "fixtures" / "onnx"
AUTOENCODERS = {
    "torch_conv": {"input": "8x8x1", "layout": "nchw", "bottleneck": "tanh", "latent": [4, 2, 2], "batch": None},
    "torch_dense": {
        "input": "8x8x1",
        "layout": "nchw",
        "bottleneck": "/encoder/encoder.2/Gemm_output_0",
        "latent": [10],
        "batch": None,
    },
    "torch_fixed_batch": {"input": "8x8x1", "layout": "nchw", "bottleneck": "linear_1", "latent": [10], "batch": 1},
    "keras_conv": {
        "input": "8x8x1",
        "layout": "nhwc",
        "bottleneck": "sequential_2_1/sequential_1/code_1/BiasAdd:0",
        "latent": [12],
        "batch": None,
    },
    "sklearn_mlp": {"input": "1x64x1", "layout": "nd", "bottleneck": "next_activations1", "latent": [9], "batch": None},
}


def push(api, name: str, **query) -> dict:
    content = (FILES / f"{name}.onnx").read_bytes()
    answer = api.post("/v1/models", params={"name": name, **query}, content=content)
    assert answer.status_code == 201, answer.text
    return answer.json()


def answers(name: str) -> dict[str, np.ndarray]:
    return load_file(FILES / f"{name}.safetensors")


@pytest.fixture(scope="module")
def models(api) -> dict[str, dict]:
    return {name: push(api, name) for name in AUTOENCODERS}


@pytest.fixture(scope="module")
def images(api, digits) -> dict[str, dict]:
    """Digits as images, and as rows of a table, by the shape of one."""
    rows = {
        split: (digits[f"x_{split}"][:100].reshape(100, 64) / 255).astype(np.float32) for split in ("train", "test")
    }
    table = push_dataset(api, npz(x_train=rows["train"], x_test=rows["test"]), "table")
    labels = {f"y_{split}": digits[f"y_{split}"][:100] for split in ("train", "test")}
    squares = {f"x_{split}": digits[f"x_{split}"][:100] for split in ("train", "test")}
    return {"1x64x1": table, "8x8x1": push_dataset(api, npz(**squares, **labels), "digits of onnx")}


@pytest.mark.parametrize("name", AUTOENCODERS)
def test_what_an_exporter_wrote_is_read(models, name):
    wanted = AUTOENCODERS[name] | {"family": "onnx"}
    read = models[name]["architecture"] | {"input": models[name]["input"]}
    assert {field: read[field] for field in wanted} == wanted
    assert models[name]["parameters"] == read["weights"] > 1000
    assert models[name]["task"] == "reconstruct"


def test_the_file_is_kept_to_the_byte(api, models):
    content = (FILES / "keras_conv.onnx").read_bytes()
    assert models["keras_conv"]["digest"] == hashlib.sha256(content).hexdigest()
    answer = api.get(f"/v1/models/{models['keras_conv']['id']}/weights")
    assert answer.content == content
    assert answer.headers["content-disposition"].endswith(".onnx")


@pytest.mark.parametrize("name", AUTOENCODERS)
def test_it_answers_as_its_framework_does(api, models, images, name):
    """By a probe of what the framework itself answered: 1e-3 is allowed, and nothing less than the same network."""
    id, held = models[name]["id"], answers(name)
    probe = save({"x": held["x"], "y": held["y"]})
    assert api.put(f"/v1/models/{id}/probe", content=probe).status_code == 200
    result = finished(api, kind="evaluate", model=id, dataset=images[models[name]["input"]]["id"])["result"]
    assert result["forward_unverified"] is False
    assert 0 < result["mae"] < 0.15
    wrong = save({"x": held["x"], "y": held["y"] + 0.01})
    api.put(f"/v1/models/{id}/probe", content=wrong)
    job = wait_for(api, submit(api, kind="evaluate", model=id, dataset=images[models[name]["input"]]["id"])["id"])
    assert job["error"]["type"] == "forward-mismatch"
    assert "evaluation mode" in job["error"]["detail"]
    api.put(f"/v1/models/{id}/probe", content=probe)


@pytest.mark.parametrize("name", AUTOENCODERS)
@pytest.mark.parametrize("source", ["maze", "noise", "latent"])
def test_cards_start_from_every_source(api, models, name, source):
    model = models[name]
    job = finished(api, kind="capture", model=model["id"], count=70, source=source, r=2 if source != "latent" else 0)
    recipe = job["result"]["recipe"]
    assert recipe["backend"].startswith("onnxruntime-")
    assert recipe["source"] == source
    cards = cards_of(api, job)
    assert cards.shape == (70, *map(int, model["input"].split("x")))
    assert np.isfinite(cards).all()
    assert cards.std(0).mean() > 0.01


def cards_of(api, job: dict) -> np.ndarray:
    route = f"/v1/flashcards/{job['result']['flashcards']}/cards"
    return np.load(io.BytesIO(api.get(route, params={"limit": 100, "format": "npz"}).content))["x"]


def test_the_same_recipe_makes_the_same_cards(api, models):
    spec = {"kind": "capture", "model": models["keras_conv"]["id"], "count": 20, "source": "maze", "r": 3, "seed": 7}
    one, two = (finished(api, **spec)["result"]["cards_digest"] for _ in range(2))
    assert one == two


def test_a_capsule_measured_where_the_data_is_makes_cards(api, models, digits):
    """Without us: the framework's own latents, and an error that it measured."""
    model, held = models["keras_conv"], answers("keras_conv")
    meter = Meter()
    error = np.abs(held["x"] - held["y"]).reshape(12, -1).mean(1)
    meter.add(held["z"], error, held["x"].transpose(0, 3, 1, 2), channel_axis=1)
    content = meter.capsule(model["digest"]).to_bytes()
    answer = api.put(f"/v1/models/{model['id']}/capsule", content=content)
    assert answer.status_code == 200, answer.text
    job = finished(api, kind="capture", model=model["id"], count=32, source="capsule")
    assert job["result"]["recipe"]["capsule_digest"] == answer.json()["capsule"]["digest"]
    assert job["result"]["measures"]["flsd"] > 0
    wrong = api.put(f"/v1/models/{models['torch_conv']['id']}/capsule", content=content)
    assert wrong.status_code == 422
    assert "a latent of 12 numbers, and the model's has 16" in wrong.json()["detail"]


def test_it_is_analyzed_and_asked(api, models, images):
    model, dataset = models["torch_dense"]["id"], images["8x8x1"]["id"]
    result = finished(api, kind="analyze", model=model, dataset=dataset, max_r=3, count=32)["result"]
    assert result["recommended_r"] >= 0
    assert len(result["flsd"]) == 4
    told = finished(api, kind="predict", model=model, dataset=dataset, limit=3)["result"]["reconstructed"]
    assert [each["row"] for each in told] == [0, 1, 2]


def test_its_cards_teach_a_network_that_can_be_trained(api, models, images):
    """And what was ONNX learns on from there."""
    job = finished(api, kind="capture", model=models["torch_conv"]["id"], count=200, source="latent")
    cards, dataset = job["result"]["flashcards"], images["8x8x1"]["id"]
    measured = finished(api, kind="evaluate", flashcards=cards, dataset=dataset)["result"]
    assert measured["privacy"]["verdict"]
    result = finished(
        api, kind="distill", flashcards=cards, architecture="blk_1_fil_8", dataset=dataset, epochs=3, batch_size=20
    )["result"]
    assert result["parent_parameters"] == models["torch_conv"]["parameters"]
    learner = api.post("/v1/learners", json={"name": "goes on", "model": result["model"]})
    assert learner.status_code == 201, learner.text


def refusal(answer: httpx.Response) -> str:
    assert answer.status_code == 422, answer.text
    return json.dumps(answer.json(), ensure_ascii=False)


def test_what_would_train_it_is_refused_in_words(api, models, images):
    model, dataset = models["torch_conv"], images["8x8x1"]["id"]
    words = "cannot be trained: capture its cards and distill them"
    for body in (
        {"kind": "train", "dataset": dataset, "architecture": model["architecture"]},
        {"kind": "analyze", "model": model["id"], "dataset": dataset, "max_r": 2, "retrain": [1]},
        {
            "kind": "compare",
            "scenario": "reconstruction",
            "architecture": model["architecture"],
            "datasets": [dataset, dataset],
            "strategies": [{"kind": "naive"}],
        },
    ):
        assert words in refusal(api.post("/v1/jobs", params={"validate_only": True}, json=body))
    assert words in refusal(api.post("/v1/learners", json={"name": "no", "model": model["id"]}))
    asked = {"name": "no", "architecture": model["architecture"]}
    assert words in refusal(api.post("/v1/learners", json=asked))


def test_cards_are_not_distilled_into_a_file(api, models):
    job = finished(api, kind="capture", model=models["torch_conv"]["id"], count=10, source="noise", r=1)
    body = {"kind": "distill", "flashcards": job["result"]["flashcards"]}
    body |= {"architecture": models["torch_conv"]["architecture"]}
    assert "cannot be trained" in refusal(api.post("/v1/jobs", json=body))


def test_the_latent_can_be_named(api):
    model = push(api, "torch_conv", bottleneck="silu")
    assert (model["architecture"]["bottleneck"], model["architecture"]["latent"]) == ("silu", [8, 4, 4])
    job = finished(api, kind="capture", model=model["id"], count=10, source="latent")
    assert np.isfinite(cards_of(api, job)).all()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"bottleneck": "val_8"}, "not everything passes through 'val_8'; it does through: 'conv2d_1' (16 numbers)"),
        ({"bottleneck": "nothing"}, "not everything passes through 'nothing'"),
        ({"architecture": "blk_2_fil_4"}, "leave ?architecture= out"),
        ({"input": "16x16x1"}, "?input=16x16x1 does not go with Nx1x8x8 of its input"),
        ({"task": "classify"}, "a classifier answers with one float32 tensor, N x classes; 'conv2d_3' is Nx1x8x8"),
    ],
)
def test_what_does_not_go_with_the_graph(api, query, words):
    content = (FILES / "torch_conv.onnx").read_bytes()
    assert words in refusal(api.post("/v1/models", params={"name": "no", **query}, content=content))


def test_of_other_files_a_latent_is_not_named(api):
    tensors = save({"w": np.zeros(3, np.float32)})
    params = {"name": "no", "architecture": "blk_2_fil_4", "input": "16x16x1", "bottleneck": "z"}
    assert "bottleneck and task are asked of ONNX files" in refusal(
        api.post("/v1/models", params=params, content=tensors)
    )


def test_rows_of_a_table_may_be_images(api):
    assert push(api, "sklearn_mlp", input="8x8x1")["input"] == "8x8x1"


def test_a_classifier_is_evaluated_and_not_trained(api, images, digits):
    model = push(api, "torch_classifier", task="classify")
    assert (model["task"], model["architecture_name"]) == ("classify", "onnx_classifier_10")
    held, dataset = answers("torch_classifier"), images["8x8x1"]["id"]
    assert api.put(f"/v1/models/{model['id']}/probe", content=save(held)).status_code == 200
    result = finished(api, kind="evaluate", model=model["id"], dataset=dataset)["result"]
    assert result["accuracy"] > 0.8
    assert result["forward_unverified"] is False
    body = {"kind": "train", "dataset": dataset, "architecture": model["architecture"]}
    assert "cannot be trained" in refusal(api.post("/v1/jobs", json=body))
    body = {"kind": "capture", "model": model["id"], "count": 3}
    assert "is a classifier" in refusal(api.post("/v1/jobs", json=body))


def test_a_dataset_that_is_a_graph_is_called_what_it_is(api):
    answer = api.post("/v1/datasets", params={"name": "no"}, content=(FILES / "torch_conv.onnx").read_bytes())
    assert "an ONNX file" in refusal(answer)
