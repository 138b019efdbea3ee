"""Jobs of a real service on a real MLflow server: which is there, is killed in the middle, comes back, or hangs."""

import json
import subprocess
import sys
import time

import httpx
import numpy as np
import pytest
import torch
from making import finished, npz, push_dataset, submit, wait_for
from servers import running
from service_process import running_service
from tracking import MlflowServer, params_of, run_of, silent_server, tagged

from engine.models import build
from flashcards.contract.architecture import architecture_spec
from flashcards.contract.image import parse_image_shape

pytestmark = pytest.mark.slow  # a real MLflow server takes long to start

ARRIVES_SECONDS = 300
TRAIN = {"kind": "train", "architecture": "blk_2_fil_8", "epochs": 8, "learning_rate": 0.01}
#: A process of its own: the package warns of much, and warnings are errors here.
LOAD = """
import sys, numpy as np, mlflow
mlflow.set_tracking_uri(sys.argv[1])
x = np.load(sys.argv[3])
loaded = mlflow.pyfunc.load_model(sys.argv[2])
assert loaded.metadata.signature.inputs.inputs[0].shape == (-1, 1, 8, 8), loaded.metadata.signature
answer = loaded.predict({"x": x})
np.save(sys.argv[4], answer["y"] if isinstance(answer, dict) else answer)
assert [end.name for end in mlflow.onnx.load_model(sys.argv[2]).graph.output] == ["y"]
"""


@pytest.fixture
def service(tmp_path):
    """One whose tracking server is at this address."""

    def service(url: str, **settings: object):
        quick = {"threads": 1, "mlflow_poll_seconds": 0.5, "log_format": "json"}
        return running_service(tmp_path / "home", mlflow_url=url, **{**quick, **settings})

    return service


def images(digits) -> bytes:
    return npz(**{name: values[:500] for name, values in digits.items()})


def told(api, job_id: str, kind: str) -> list[str]:
    events = api.get(f"/v1/jobs/{job_id}/events", params={"follow": "false"}).json()
    return [event["data"]["text"] for event in events if event["kind"] == kind]


def until(found, seconds: float = ARRIVES_SECONDS):
    deadline = time.monotonic() + seconds
    while not (answer := found()):
        assert time.monotonic() < deadline, "it did not arrive"
        time.sleep(0.2)
    return answer


def arrived(server: MlflowServer, job: dict, experiment: str = "flashcards") -> dict:
    """The run of a job, once the server knows how it ended."""

    def look() -> dict | None:
        run = run_of(server.runs(experiment), job["id"])
        return run if run and run["info"]["status"] != "RUNNING" else None

    return until(look)


def answers(api, model: dict, x: np.ndarray) -> np.ndarray:
    """Of the network that the weights are of, by torch."""
    from safetensors.torch import load

    network = build(architecture_spec.validate_python(model["architecture"]), parse_image_shape(model["input"]))
    network.load_state_dict(load(api.get(f"/v1/models/{model['id']}/weights").content))
    with torch.inference_mode():
        return network.eval()(torch.from_numpy(x)).numpy()


def test_a_training_is_mirrored_whole_and_its_model_comes_back(service, tmp_path, digits):
    server = MlflowServer(tmp_path / "mlflow")
    with running(server), service(server.url) as live, httpx.Client(base_url=live.url, timeout=120) as api:
        dataset = push_dataset(api, images(digits))
        asked = {"experiment": "line 7", "run_name": "first", "register_as": "digits"}
        job = finished(api, **TRAIN, dataset=dataset["id"], labels={"line": "7"}, tracking=asked)
        until(lambda: told(api, job["id"], "note"))
        _check_run(api, server, arrived(server, job, "line 7"), job)
        _check_loads(api, server, tmp_path, job)
        _check_import(api, job)
        _check_outage(api, server, dataset)


def _check_run(api, server, run, job):
    assert run["info"]["status"] == "FINISHED"
    assert run["info"]["run_name"] == "first"
    params, tags = params_of(run), tagged(run)
    assert (params["kind"], params["epochs"], params["architecture.filters"]) == ("train", "8", "8")
    assert (tags["flashcards.label.line"], tags["flashcards.model"]) == ("7", job["result"]["model"])
    lineage = json.loads(tags["flashcards.lineage"])
    assert lineage == {
        "job": job["id"],
        "made_from": [job["spec"]["dataset"]],
        "names": {job["spec"]["dataset"]: "digits"},
    }
    run_id = run["info"]["run_id"]
    for name, points in api.get(f"/v1/jobs/{job['id']}/metrics").json()["metrics"].items():
        assert server.history(run_id, name) == [(point["step"], point["value"]) for point in points], name
    assert server.history(run_id, "result.parameters") == [(0, job["result"]["parameters"])]
    assert server.files(run_id) == ["model", "reconstructions.png"]
    assert {"model/MLmodel", "model/model.onnx", "model/model.safetensors"} <= set(server.files(run_id, "model"))


def _check_loads(api, server, tmp_path, job):
    """By MLflow's own loaders, with the answers of the network."""
    version = server.ask("GET", "model-versions/get", params={"name": "digits", "version": "1"})["model_version"]
    tags = {tag["key"]: tag["value"] for tag in version["tags"]}
    assert tags["flashcards.job"] == job["id"]
    assert tags["flashcards.model"] == job["result"]["model"]
    x = np.random.default_rng(0).random((3, 1, 8, 8), dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    command = [sys.executable, "-c", LOAD, server.url, "models:/digits/1", tmp_path / "x.npy", tmp_path / "y.npy"]
    subprocess.run(command, check=True, timeout=600, cwd=tmp_path)
    model = api.get(f"/v1/models/{job['result']['model']}").json()
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), answers(api, model, x), atol=1e-5)


def _check_import(api, job):
    headers = {"Idempotency-Key": "once"}
    answer = api.post("/v1/models:import", json={"mlflow": "models:/digits/1"}, headers=headers)
    assert answer.status_code == 201, answer.text
    back, ours = answer.json(), api.get(f"/v1/models/{job['result']['model']}").json()
    assert back["name"] == "digits/1"
    assert {name: back[name] for name in ("digest", "architecture", "input", "range")} == {
        name: ours[name] for name in ("digest", "architecture", "input", "range")
    }
    again = api.post("/v1/models:import", json={"mlflow": "models:/digits/1"}, headers=headers)
    assert (again.json()["id"], again.headers["Idempotency-Replayed"]) == (back["id"], "true")
    other = api.post("/v1/models:import", json={"mlflow": "models:/digits/2"}, headers=headers)
    assert other.status_code == 409
    missing = api.post("/v1/models:import", json={"mlflow": "models:/digits/2"})
    assert missing.status_code == 422
    assert missing.json()["errors"][0]["field"] == "body.mlflow"


def _check_outage(api, server, dataset):
    """Killed while a job runs, and back after it has ended."""
    job = submit(api, **{**TRAIN, "epochs": 30}, dataset=dataset["id"])
    run = until(lambda: run_of(server.runs("flashcards"), job["id"]))
    server.kill()
    job = wait_for(api, job["id"], 300)
    assert job["state"] == "succeeded"
    (warning,) = until(lambda: told(api, job["id"], "warning"))
    assert "does not answer" in warning
    server.start()
    back = arrived(server, job)
    assert back["info"]["run_id"] == run["info"]["run_id"]
    assert "model" in server.files(run["info"]["run_id"])
    points = api.get(f"/v1/jobs/{job['id']}/metrics").json()["metrics"]["train_mae"]
    assert server.history(run["info"]["run_id"], "train_mae") == [(point["step"], point["value"]) for point in points]
    until(lambda: [text for text in told(api, job["id"], "note") if "is back" in text])
    assert told(api, job["id"], "warning") == [warning]


def test_a_server_that_hangs_costs_a_job_a_warning_and_nothing_else(service, digits):
    with (
        silent_server() as url,
        service(url, mlflow_timeout_seconds=1) as live,
        httpx.Client(base_url=live.url, timeout=120) as api,
    ):
        dataset = push_dataset(api, images(digits))
        job = finished(api, **TRAIN, dataset=dataset["id"])
        (warning,) = until(lambda: told(api, job["id"], "warning"))
        assert "does not answer in time" in warning
        assert [attempt["outcome"] for attempt in job["attempts"]] == ["succeeded"]
        other = finished(api, **TRAIN, dataset=dataset["id"], tracking={"mirror": False})
        assert told(api, other["id"], "warning") == []
        answer = api.post("/v1/models:import", json={"mlflow": "models:/digits/1"})
        assert (answer.status_code, answer.json()["type"]) == (503, "/problems/tracker-away")
        assert int(answer.headers["Retry-After"]) > 0
