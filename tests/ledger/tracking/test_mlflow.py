"""Against a real server: what it says today, not what it was read to say."""

import time
from contextlib import closing
from uuid import uuid4

import pytest
from making import weights
from tracking import params_of, run_of, tagged

from flashcards.contract.architecture import architecture_spec
from flashcards.contract.image import parse_image_shape
from ledger.errors import RunGone, TrackerRefused
from ledger.tracking.mlflow import Mlflow
from ledger.tracking.tracker import Point, Run, TrackedModel

pytestmark = pytest.mark.slow  # a real MLflow server takes long to start

BLK, IMAGE = architecture_spec.validate_python("blk_2_fil_4"), parse_image_shape("16x16x1")


@pytest.fixture(scope="module")
def tracker(mlflow):
    with closing(Mlflow(mlflow.url, "", 60)) as opened:
        yield opened


@pytest.fixture
def run():
    return Run(
        f"job_{uuid4().hex}", f"experiment {uuid4().hex}", "a run", time.time() - 60, {"flashcards.tenant": "me"}
    )


@pytest.fixture
def network(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(weights())
    return TrackedModel(BLK, IMAGE, (0.0, 1.0), time.time(), {"model.safetensors": path})


def test_a_job_has_one_run_however_often_it_begins(tracker, mlflow, run):
    first, again = tracker.begin(run), tracker.begin(run)
    assert first == again
    found = run_of(mlflow.runs(run.experiment), run.job_id)
    assert found["info"]["run_name"] == "a run"
    assert found["info"]["start_time"] == round(run.started_at * 1000)
    assert tagged(found)["flashcards.tenant"] == "me"


def test_what_is_told_twice_is_there_once(tracker, mlflow, run):
    run_id = tracker.begin(run)
    points = [Point("mae", 1 / (1 + step), step, run.started_at + step) for step in range(1200)]
    for _ in range(2):
        tracker.tell(run_id, {"epochs": "3", "long": "x" * 9000}, points, {"a": "b", "note": "y" * 9000})
        tracker.end(run_id, "succeeded", run.started_at + 30)
    assert mlflow.history(run_id, "mae") == [(point.step, point.value) for point in points]
    found = run_of(mlflow.runs(run.experiment), run.job_id)
    assert found["info"]["status"] == "FINISHED"
    assert found["info"]["end_time"] == round((run.started_at + 30) * 1000)
    assert params_of(found)["epochs"] == "3"
    assert params_of(found)["long"] == "x" * 500


@pytest.mark.parametrize(("state", "status"), [("failed", "FAILED"), ("cancelled", "KILLED"), ("running", "RUNNING")])
def test_how_it_ended(tracker, mlflow, run, state, status):
    run_id = tracker.begin(run)
    tracker.end(run_id, state, None)
    assert run_of(mlflow.runs(run.experiment), run.job_id)["info"]["status"] == status


def test_a_model_is_registered_once_and_comes_back_to_the_byte(tracker, mlflow, run, network, tmp_path):
    run_id, name = tracker.begin(run), f"net {uuid4().hex}"
    tracker.keep(run_id, "sheet.png", b"a picture")
    for _ in range(2):
        tracker.keep_model(run_id, network)
        assert tracker.register(run_id, name, {"flashcards.tenant": "me", "flashcards.job": run.job_id}) == "1"
    assert mlflow.files(run_id) == ["model", "sheet.png"]
    assert mlflow.files(run_id, "model") == ["model/MLmodel", "model/model.safetensors"]
    for reference in (f"models:/{name}/1", f"models:/{name}/latest"):
        assert tracker.fetch(reference, tmp_path / "back", "me", None, 10**6) == "model.safetensors"
        assert (tmp_path / "back").read_bytes() == network.files["model.safetensors"].read_bytes()
    version = mlflow.ask("GET", "model-versions/get", params={"name": name, "version": "1"})["model_version"]
    assert version["run_id"] == run_id
    assert {tag["key"]: tag["value"] for tag in version["tags"]}["flashcards.job"] == run.job_id


def test_an_alias_is_looked_up(tracker, mlflow, run, network, tmp_path):
    run_id, name = tracker.begin(run), f"net-{uuid4().hex}"
    tracker.keep_model(run_id, network)
    tracker.register(run_id, name, {})
    mlflow.ask("POST", "registered-models/alias", json={"name": name, "alias": "champion", "version": "1"})
    assert tracker.fetch(f"models:/{name}@champion", tmp_path / "back", "anybody", None, 10**6) == "model.safetensors"
    for missing in (f"models:/{name}@nobody", f"models:/{name}/2", f"models:/{uuid4().hex}/latest"):
        with pytest.raises(TrackerRefused):
            tracker.fetch(missing, tmp_path / "none", "anybody", None, 10**6)
    with pytest.raises(TrackerRefused, match=r"has no file other\.bin"):
        tracker.fetch(f"models:/{name}/1", tmp_path / "none", "anybody", "other.bin", 10**6)


def test_what_one_tenant_registered_is_not_there_for_another(tracker, run, network, tmp_path):
    run_id, name = tracker.begin(run), f"net-{uuid4().hex}"
    tracker.keep_model(run_id, network)
    tracker.register(run_id, name, {"flashcards.tenant": "alice"})
    with pytest.raises(TrackerRefused, match="for you"):
        tracker.fetch(f"models:/{name}/1", tmp_path / "none", "mallory", None, 10**6)
    assert not (tmp_path / "none").exists()


def test_a_run_that_the_server_lost_is_said_to_be_gone(tracker):
    with pytest.raises(RunGone):
        tracker.tell(uuid4().hex, {"a": "b"})
    with pytest.raises(RunGone):
        tracker.keep(uuid4().hex, "a", b"b")


def test_a_deleted_experiment_is_a_refusal_in_words(tracker, mlflow, run):
    tracker.begin(run)
    found = mlflow.ask("GET", "experiments/get-by-name", params={"experiment_name": run.experiment})
    mlflow.ask("POST", "experiments/delete", json={"experiment_id": found["experiment"]["experiment_id"]})
    with pytest.raises(TrackerRefused, match="was deleted"):
        tracker.begin(run)
