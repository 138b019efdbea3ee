"""Models of a real MLflow server, logged by its own package, on their way into the service."""

import subprocess
import sys
from contextlib import closing
from uuid import uuid4

import httpx
import pytest
from making import make_key, weights
from service_process import running_service

from ledger.tracking.mlflow import Mlflow
from ledger.tracking.tracker import Run

pytestmark = pytest.mark.slow  # a real MLflow server takes long to start

#: A process of its own: the package warns of much, and warnings are errors here.
LOG = """
import sys, torch, mlflow
from engine.models import build
from flashcards.contract.architecture import architecture_spec
from flashcards.contract.image import parse_image_shape
mlflow.set_tracking_uri(sys.argv[1])
network = build(architecture_spec.validate_python("blk_2_fil_4"), parse_image_shape("16x16x1"))
torch.save(network.state_dict(), "state_dict.pth")
extra = ["state_dict.pth"] if sys.argv[3] == "with" else None
with mlflow.start_run():
    mlflow.pytorch.log_model(
        network,
        name="model",
        serialization_format="pickle",
        pip_requirements=["torch"],
        extra_files=extra,
        registered_model_name=sys.argv[2],
    )
"""
FITS = {"architecture": "blk_2_fil_4", "input": "16x16x1"}


@pytest.fixture(scope="module")
def tracked(mlflow, tmp_path_factory):
    """A service with keys, whose tracking server is for two of its three tenants."""
    folder = tmp_path_factory.mktemp("tracked")
    settings = {"mlflow_url": mlflow.url, "mlflow_timeout_seconds": 60, "mlflow_tenants": '["default", "alice"]'}
    with running_service(folder / "home", threads=1, admin_key_file=folder / "admin-key", **settings) as running:
        running.admin_key = (folder / "admin-key").read_text().strip()
        yield running


@pytest.fixture(scope="module")
def door(tracked):
    clients = {}

    def door(tenant: str) -> httpx.Client:
        if tenant not in clients:
            admin = httpx.Client(base_url=tracked.url, headers={"Authorization": f"Bearer {tracked.admin_key}"})
            with admin:
                key = make_key(admin, tenant=tenant, scopes=["read", "write"])
            headers = {"Authorization": f"Bearer {key}"}
            clients[tenant] = httpx.Client(base_url=tracked.url, timeout=120, headers=headers)
        return clients[tenant]

    yield door
    for client in clients.values():
        client.close()


def registered(mlflow, tenant: str | None = None, **files: bytes) -> str:
    """A model of these files; its reference."""
    name = f"net-{uuid4().hex}"
    with closing(Mlflow(mlflow.url, "", 60)) as tracker:
        run_id = tracker.begin(Run(f"job_{uuid4().hex}", "imports", "run", 0.0))
        for file, content in files.items():
            tracker.keep(run_id, f"model/{file.replace('__', '.')}", content)
        tracker.register(run_id, name, {} if tenant is None else {"flashcards.tenant": tenant})
    return f"models:/{name}/1"


def logged(mlflow, tmp_path, extra: str) -> str:
    name = f"torch-{uuid4().hex}"
    subprocess.run([sys.executable, "-c", LOG, mlflow.url, name, extra], check=True, timeout=600, cwd=tmp_path)
    return f"models:/{name}/1"


@pytest.mark.timeout(600)  # another library is loaded, and torch with it
def test_a_state_dict_beside_a_pytorch_model(door, mlflow, tmp_path):
    reference = logged(mlflow, tmp_path, "with")
    answer = door("alice").post("/v1/models:import", json={"mlflow": reference, "name": "mine", **FITS})
    assert answer.status_code == 201, answer.text
    model = answer.json()
    assert (model["name"], model["architecture_name"], model["origin"]) == ("mine", "blk_2_fil_4", "upload")
    assert model["uploaded_digest"] is not None
    assert answer.headers["Location"] == f"/v1/models/{model['id']}"
    assert door("default").get(f"/v1/models/{model['id']}").status_code == 404


@pytest.mark.timeout(600)
def test_a_pickled_module_is_refused_like_any_upload(door, mlflow, tmp_path):
    answer = door("alice").post("/v1/models:import", json={"mlflow": logged(mlflow, tmp_path, "without"), **FITS})
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/unfit-file")


def test_safetensors_that_say_what_they_are(door, mlflow):
    told = {"flashcards.architecture": "blk_2_fil_4", "flashcards.input": "16x16x1", "flashcards.range": "0,1"}
    reference = registered(mlflow, model__safetensors=weights(metadata=told))
    answer = door("alice").post("/v1/models:import", json={"mlflow": reference})
    assert answer.status_code == 201, answer.text
    assert answer.json()["name"] == reference.removeprefix("models:/")


def test_a_file_by_its_name(door, mlflow):
    reference = registered(mlflow, other__bin=weights())
    asked = {"mlflow": reference, **FITS}
    missing = door("alice").post("/v1/models:import", json=asked)
    assert missing.status_code == 422
    assert "has no file" in missing.json()["detail"]
    assert door("alice").post("/v1/models:import", json={**asked, "file": "other.bin"}).status_code == 201


def test_what_another_tenant_registered_is_not_there(door, mlflow):
    reference = registered(mlflow, "alice", model__safetensors=weights())
    answer = door("default").post("/v1/models:import", json={"mlflow": reference, **FITS})
    assert answer.status_code == 422
    assert "for you" in answer.json()["detail"]
    assert door("alice").post("/v1/models:import", json={"mlflow": reference, **FITS}).status_code == 201


def test_a_tenant_whose_business_it_is_not(door):
    answer = door("mallory").post("/v1/models:import", json={"mlflow": "models:/net/1"})
    assert answer.status_code == 422
    assert "FLASHCARDS_MLFLOW_URL" in answer.json()["detail"]
    job = {"kind": "noop", "tracking": {"experiment": "theirs"}}
    assert door("mallory").post("/v1/jobs", json=job).json()["errors"][0]["field"] == "body.tracking"


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"mlflow": "http://169.254.169.254/latest/meta-data"},
        {"mlflow": "models:/net"},
        {"mlflow": "models:/net/1/../../2"},
        {"mlflow": "runs:/abc/model"},
        {"mlflow": "file:///etc/passwd"},
        {"mlflow": "models:/net/1", "file": "../../../etc/passwd"},
        {"mlflow": "models:/net/1", "file": "/etc/passwd"},
        {"mlflow": "models:/net/1", "url": "http://127.0.0.1"},
    ],
)
def test_nonsense_is_refused_before_anybody_is_asked(door, asked):
    answer = door("alice").post("/v1/models:import", json=asked)
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/invalid")


def test_a_way_out_of_the_models_folder_leads_nowhere(door, mlflow):
    reference = registered(mlflow, model__safetensors=weights())
    for file in ("a/../../../../mlflow.db", "model.safetensors/../../../x", "a%2e%2e/x"):
        answer = door("alice").post("/v1/models:import", json={"mlflow": reference, "file": file, **FITS})
        assert answer.status_code == 422, file


def test_no_tracking_server_is_said_in_words(api):
    answer = api.post("/v1/models:import", json={"mlflow": "models:/net/1"})
    assert answer.status_code == 422
    assert "FLASHCARDS_MLFLOW_URL" in answer.json()["detail"]
    job = {"kind": "train", "dataset": "dataset_" + "0" * 32, "tracking": {"register_as": "net"}}
    assert "FLASHCARDS_MLFLOW_URL" in api.post("/v1/jobs", json=job).json()["detail"]


def test_only_jobs_that_make_a_model_register_one(api, model):
    job = {"kind": "capture", "model": model["id"], "tracking": {"register_as": "net"}}
    answer = api.post("/v1/jobs", json=job)
    assert answer.status_code == 422
    assert "register_as" in answer.json()["detail"]
