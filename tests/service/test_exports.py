import hashlib

import numpy as np
import onnx
import onnxruntime
import pytest
from making import finished, push_model


@pytest.fixture(scope="module")
def exported(api) -> dict:
    return finished(api, kind="export", model=push_model(api)["id"])


def test_a_model_goes_out_as_onnx(api, exported):
    model_id, result = exported["result"]["model"], exported["result"]
    content = api.get(f"/v1/models/{model_id}/onnx").content
    assert (hashlib.sha256(content).hexdigest(), len(content)) == (result["digest"], result["size"])
    assert content == api.get(f"/v1/jobs/{exported['id']}/artifacts/model.onnx").content
    assert 0 <= result["max_abs_difference"] <= 1e-5 <= result["allowed"]
    assert [each["inputs"] for each in result["parity"]] == ["random", "pattern", "card"]
    said = {entry.key: entry.value for entry in onnx.load_model_from_string(content).metadata_props}
    assert said["flashcards.digest"] == api.get(f"/v1/models/{model_id}").json()["digest"]


def test_the_file_runs_where_there_is_no_torch(api, exported):
    content = api.get(f"/v1/models/{exported['result']['model']}/onnx").content
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    (y,) = session.run(None, {"x": np.zeros((3, 1, 16, 16), np.float32)})
    assert y.shape == (3, 1, 16, 16)


def test_what_was_not_exported_says_how(api):
    model = push_model(api)
    answer = api.get(f"/v1/models/{model['id']}/onnx")
    assert answer.status_code == 409
    assert f'{{"kind": "export", "model": "{model["id"]}", "format": "onnx"}}' in answer.json()["detail"]


def test_it_goes_with_its_job(api):
    done = finished(api, kind="export", model=push_model(api)["id"])
    api.delete(f"/v1/jobs/{done['id']}").raise_for_status()
    assert api.get(f"/v1/models/{done['result']['model']}/onnx").status_code == 409


def test_a_model_that_is_not_there_is_not_exported(api):
    nobody = f"model_{'0' * 32}"
    assert api.get(f"/v1/models/{nobody}/onnx").status_code == 404
    refused = api.post("/v1/jobs", json={"kind": "export", "model": nobody})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "body.model")


def test_another_format_is_refused(api, model):
    refused = api.post("/v1/jobs", json={"kind": "export", "model": model["id"], "format": "tflite"})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "body.export.format")


def test_another_tenant_finds_nothing(alice, mallory):
    done = finished(alice, kind="export", model=push_model(alice)["id"])
    assert mallory.get(f"/v1/models/{done['result']['model']}/onnx").status_code == 404
