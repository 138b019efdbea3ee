"""A thread's rounds, one by one, against a real server; the jobs are settled by hand, as a supervisor would."""

import json
import time

import pytest
from making import weights
from servers import running
from sqlalchemy import update
from tracking import MlflowServer, answering_server, params_of, run_of, silent_server, tagged

from flashcards.contract.specs import job_spec
from ledger import artifacts, blobs, events, jobs, lifecycle
from ledger.admission import Admitted
from ledger.artifacts import Product
from ledger.db import Database
from ledger.jobs import Reports
from ledger.migrate import migrate
from ledger.settings import Settings
from ledger.store import hash_file
from ledger.tables import DEFAULT_TENANT, Dataset, Mirror, Model
from worker.mirror import Mirroring
from worker.station import Station

pytestmark = pytest.mark.slow  # a real MLflow server takes long to start

DATASET = "dataset_" + "1" * 32
SPEC = {"kind": "train", "dataset": DATASET, "architecture": "dense_ae_16_4", "epochs": 3, "labels": {"line": "7"}}


@pytest.fixture
def station(tmp_path):
    """Of a worker whose tracking server is at this address."""
    opened = []

    def station(url: str, **settings: object) -> Station:
        quick = {"mlflow_poll_seconds": 0.05, "mlflow_timeout_seconds": 60, "mlflow_url": url}
        chosen = Settings(home=tmp_path / "home", **{**quick, **settings})
        chosen.home.mkdir(exist_ok=True)
        migrate(Database(chosen.database))
        opened.append(Station(chosen))
        return opened[-1]

    yield station
    for each in opened:
        each.close()


@pytest.fixture
def mirror():
    """A thread's own view of a station."""
    opened = []

    def mirror(station: Station) -> Mirroring:
        opened.append(Mirroring(station))
        return opened[-1]

    yield mirror
    for each in opened:
        each.close()


def begin(station: Station, **changes: object) -> lifecycle.Claim:
    spec = job_spec.validate_python({**SPEC, **changes})
    with station.db.write() as session:
        if session.get(Dataset, DATASET) is None:
            facts = {"id": DATASET, "tenant": DEFAULT_TENANT, "name": "line 7", "digest": "0" * 64, "size": 1}
            session.add(Dataset(**facts, format="npz", splits={}, retain=True))
        job = jobs.create(session, DEFAULT_TENANT, spec, Admitted("cpu", [DATASET], None, mirrored=True))
    claim = lifecycle.claim(station.db, "cpu", station.worker_id, 60, job.id)
    assert claim is not None
    return claim


def report(station: Station, claim: lifecycle.Claim, *metrics: tuple[int, dict[str, float]]) -> None:
    progress = {"fraction": 0.5, "step": metrics[-1][0]}
    assert jobs.record(station.db, claim, 60, Reports(progress=progress, metrics=list(metrics)))


def settle(station: Station, claim: lifecycle.Claim, tmp_path, state: str = "succeeded", **what: object) -> None:
    """With a picture that shows the data, one that does not, and a model."""
    products = []
    for name, kind, content, shows in (
        ("sheet.png", "image/png", b"cards", False),
        ("reconstructions.png", "image/png", b"a face", True),
        ("model.safetensors", "application/octet-stream", weights("dense_ae_16_4"), False),
    ):
        path = tmp_path / f"{claim.job_id}-{name}"
        path.write_bytes(content)
        kept = hash_file(path)
        blobs.put(station.db, station.store, DEFAULT_TENANT, kept, path)
        products.append(Product(name, kind, kept, shows))
    with station.db.write() as session:
        assert lifecycle.settle(session, claim, state, **what)
        artifacts.record_products(session, claim.job_id, claim.attempt, products)
        network = job_spec.validate_python(claim.spec).architecture
        made = {"name": "net", "architecture": network.model_dump(mode="json"), "input": "16x16x1", "range": [0, 1]}
        kept = products[-1].kept
        row = Model(id=f"model_{claim.job_id[4:]}", tenant=DEFAULT_TENANT, **made, parameters=1, origin="train")
        row.digest, row.size, row.job_id = kept.digest, kept.size, claim.job_id
        session.add(row)


def told(station: Station, claim: lifecycle.Claim, kind: str) -> list[str]:
    with station.db.read() as session:
        return [event.data["text"] for event in events.of_kind(session, claim.job_id, kind)]


def row_of(station: Station, claim: lifecycle.Claim) -> Mirror:
    with station.db.read() as session:
        return session.get_one(Mirror, claim.job_id)


def make_due(station: Station) -> None:
    with station.db.write() as session:
        session.execute(update(Mirror).where(Mirror.due_at.is_not(None)).values(due_at=0.0))


def test_a_job_is_told_as_it_runs_and_whole_when_it_has_ended(station, mirror, mlflow, tmp_path):
    here = station(mlflow.url)
    mirroring, name = mirror(here), f"net-{time.time_ns()}"
    claim = begin(here, tracking={"experiment": name, "register_as": name, "run_name": "mine"})
    report(here, claim, (10, {"mae": 0.5}), (20, {"mae": 0.4, "psnr": 9.0}))
    mirroring.round()
    run = run_of(mlflow.runs(name), claim.job_id)
    assert (run["info"]["status"], run["info"]["run_name"]) == ("RUNNING", "mine")
    assert params_of(run)["epochs"] == "3"
    assert mlflow.history(run["info"]["run_id"], "mae") == [(10, 0.5), (20, 0.4)]

    report(here, claim, (20, {"mae": 0.4}), (30, {"mae": 0.3}))
    settle(here, claim, tmp_path, result={"mae": 0.25, "nested": {"psnr": 3}, "name": "x", "flag": True})
    make_due(here)
    mirroring.round()
    (run,) = mlflow.runs(name)
    assert run["info"]["status"] == "FINISHED"
    run_id = run["info"]["run_id"]
    assert mlflow.history(run_id, "mae") == [(10, 0.5), (20, 0.4), (30, 0.3)]
    assert mlflow.history(run_id, "result.nested.psnr") == [(0, 3.0)]
    assert mlflow.files(run_id) == ["model", "reconstructions.png", "sheet.png"]
    assert json.loads(tagged(run)["flashcards.lineage"])["names"] == {DATASET: "line 7"}
    assert {"model/MLmodel", "model/model.safetensors", "model/model.onnx"} <= set(mlflow.files(run_id, "model"))
    version = mlflow.ask("GET", "model-versions/get", params={"name": name, "version": "1"})["model_version"]
    assert version["run_id"] == run_id
    assert row_of(here, claim).due_at is None
    assert told(here, claim, "warning") == []
    assert len(told(here, claim, "note")) == 1


def test_killed_before_it_took_note_it_tells_the_same_run_again(station, mirror, mlflow, tmp_path):
    here = station(mlflow.url)
    experiment = f"exp-{time.time_ns()}"
    claim = begin(here, tracking={"experiment": experiment, "register_as": experiment})
    report(here, claim, (10, {"mae": 0.5}))
    settle(here, claim, tmp_path)
    mirror(here).round()
    with here.db.write() as session:  # as if its last write had been lost
        fresh = {"due_at": 0.0, "run_id": None, "seq": 0, "told": {}}
        session.execute(update(Mirror).where(Mirror.job_id == claim.job_id).values(**fresh))
    mirror(here).round()
    (run,) = mlflow.runs(experiment)
    assert mlflow.history(run["info"]["run_id"], "mae") == [(10, 0.5)]
    found = mlflow.ask("GET", "model-versions/search", params={"filter": f"name = '{experiment}'"})["model_versions"]
    assert [version["version"] for version in found] == ["1"]


def test_a_picture_of_data_that_is_not_kept_goes_nowhere(station, mirror, mlflow, tmp_path):
    here = station(mlflow.url)
    experiment = f"exp-{time.time_ns()}"
    claim = begin(here, tracking={"experiment": experiment})
    with here.db.write() as session:
        session.get_one(Dataset, DATASET).retain = False
    settle(here, claim, tmp_path)
    mirror(here).round()
    (run,) = mlflow.runs(experiment)
    assert mlflow.files(run["info"]["run_id"]) == ["model", "sheet.png"]


def test_away_warns_once_and_what_was_missed_arrives(station, mirror, tmp_path):
    server = MlflowServer(tmp_path / "mlflow")
    here = station(server.url)
    mirroring = mirror(here)
    first, second = begin(here), begin(here)
    report(here, first, (10, {"mae": 0.5}))
    settle(here, first, tmp_path)
    for _ in range(3):
        mirroring.round()
        time.sleep(0.1)
        make_due(here)
    for claim in (first, second):
        (warning,) = told(here, claim, "warning")
        assert "does not answer" in warning
    with running(server):
        deadline = time.monotonic() + 120
        while row_of(here, first).due_at is not None and time.monotonic() < deadline:
            make_due(here)
            mirroring.round()
            time.sleep(0.1)
        runs = server.runs("flashcards")
        done = run_of(runs, first.job_id)
        assert done["info"]["status"] == "FINISHED"
        assert server.history(done["info"]["run_id"], "mae") == [(10, 0.5)]
        assert run_of(runs, second.job_id)["info"]["status"] == "RUNNING"
    assert len(told(here, first, "warning")) == 1
    assert "is back" in told(here, first, "note")[-1]


def test_one_that_hangs_is_asked_once_and_then_left_alone(station, mirror):
    with silent_server() as url:
        here = station(url, mlflow_timeout_seconds=0.5, mlflow_poll_seconds=30)
        mirroring = mirror(here)
        claims = [begin(here) for _ in range(5)]
        began = time.monotonic()
        mirroring.round()
        mirroring.round()
        assert time.monotonic() - began < 5  # not half a second for each of five jobs, twice
    for claim in claims:
        assert len(told(here, claim, "warning")) == 1


@pytest.mark.parametrize("days", [7, 1e-9])
def test_what_it_refuses_is_offered_again_but_not_for_ever(station, mirror, tmp_path, days):
    body = b'{"error_code": "INVALID_PARAMETER_VALUE", "message": "no such colour"}'
    with answering_server(400, body) as (url, asked):
        here = station(url, mlflow_days=days)
        claim = begin(here)
        settle(here, claim, tmp_path)
        time.sleep(0.01)
        mirror(here).round()
        assert asked
    assert told(here, claim, "warning") == ["the tracking server does not take this job: 400 no such colour"]
    assert (row_of(here, claim).due_at is None) == (days < 1)


def test_a_job_that_never_ran_has_no_run(station, mirror, mlflow):
    here = station(mlflow.url)
    spec = job_spec.validate_python({**SPEC, "tracking": {"experiment": "never"}})
    with here.db.write() as session:
        job = jobs.create(session, DEFAULT_TENANT, spec, Admitted("cpu", [], None, mirrored=True))
    with here.db.write() as session:
        lifecycle.request_cancel(session, DEFAULT_TENANT, job.id)
    mirror(here).round()
    with here.db.read() as session:
        assert session.get_one(Mirror, job.id).due_at is None
    assert mlflow.runs("never") == []


def test_a_run_that_was_lost_over_there_is_made_anew(station, mirror, mlflow, tmp_path):
    here = station(mlflow.url)
    experiment = f"exp-{time.time_ns()}"
    claim = begin(here, tracking={"experiment": experiment})
    with here.db.write() as session:
        lost = {"run_id": "0" * 32, "told": {"mae": 10}}
        session.execute(update(Mirror).where(Mirror.job_id == claim.job_id).values(**lost))
    report(here, claim, (10, {"mae": 0.5}), (20, {"mae": 0.4}))
    mirroring = mirror(here)
    mirroring.round()
    make_due(here)
    mirroring.round()
    (run,) = mlflow.runs(experiment)
    assert mlflow.history(run["info"]["run_id"], "mae") == [(10, 0.5), (20, 0.4)]
