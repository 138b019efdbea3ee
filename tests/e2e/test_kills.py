"""kill -9 in the middle of a training, then look at what is left: the same weights to the last bit, once."""

import time

import httpx
import psutil
import pytest
from making import finished, push_dataset, submit, wait_for
from service_process import running_service
from sqlalchemy import func, select

from ledger.db import Database
from ledger.tables import Artifact, Model

#: Long enough to be killed three times half-way, short enough to be run for every kind of kill.
TRAINING = {"kind": "train", "architecture": "blk_2_fil_8", "epochs": 60, "patience": 60, "batch_size": 32}


@pytest.fixture(scope="module")
def killable(tmp_path_factory):
    home = tmp_path_factory.mktemp("killable") / "home"
    with running_service(home, threads=1, resume_seconds=0.3, lease_seconds=10, reap_seconds=1) as service:
        yield service


@pytest.fixture(scope="module")
def patient(killable):
    """A client that outlives restarts."""
    with httpx.Client(base_url=killable.url, timeout=60, transport=httpx.HTTPTransport(retries=20)) as client:
        yield client


@pytest.fixture(scope="module")
def images(patient, digits_npz):
    return push_dataset(patient, digits_npz)


@pytest.fixture(scope="module")
def unbroken(patient, images):
    """The same training, left alone."""
    job = finished(patient, **TRAINING, dataset=images["id"])
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["succeeded"]
    return digest_of_weights(job)


def digest_of_weights(job) -> str:
    (found,) = [artifact["digest"] for artifact in job["artifacts"] if artifact["name"] == "model.safetensors"]
    return found


def wait_for_resume_point(client, job_id, after: int = 0, seconds: float = 60) -> int:
    """The step of a resume point later than `after`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        events = client.get(f"/v1/jobs/{job_id}/events", params={"follow": False}).json()
        steps = [event["data"]["step"] for event in events if event["kind"] == "resume_point"]
        if steps and steps[-1] > after:
            return steps[-1]
        assert events[-1]["data"].get("state") not in ("succeeded", "failed"), events[-1]
        time.sleep(0.05)
    raise TimeoutError(f"no resume point after step {after}")


def assert_one_set_of_artifacts(service, job) -> None:
    db = Database(f"sqlite:///{service.home / 'flashcards.db'}")
    with db.read() as session:
        assert session.scalar(select(func.count()).where(Model.job_id == job["id"])) == 1
        names = session.scalars(select(Artifact.name).where(Artifact.job_id == job["id"], Artifact.role == "product"))
        assert sorted(names) == ["model.safetensors", "reconstructions.png"]
    db.close()
    assert not list((service.home / "work").glob("*/job_*")), "an attempt's folder was left behind"


def kill_runner(service):
    """The one that works, not the spare: it is the busiest."""
    runners = service.parts("worker.runner")
    max(runners, key=lambda process: sum(process.cpu_times()[:2])).kill()


def kill_worker(service):
    service.part("worker").kill()


def kill_everything(service):
    service.kill_tree()
    service.start()


@pytest.mark.parametrize("kill", [kill_runner, kill_worker, kill_everything])
def test_a_killed_training_ends_with_the_same_weights(killable, patient, images, unbroken, kill):
    job_id = submit(patient, **TRAINING, dataset=images["id"])["id"]
    step = wait_for_resume_point(patient, job_id)
    kill(killable)
    wait_for_resume_point(patient, job_id, after=step)
    kill(killable)
    job = wait_for(patient, job_id)
    assert job["state"] == "succeeded", job["error"]
    assert len(job["attempts"]) >= 3
    assert digest_of_weights(job) == unbroken
    assert_one_set_of_artifacts(killable, job)


def test_a_stopped_service_gives_its_job_back_and_goes_on_later(killable, patient, images, unbroken):
    """SIGTERM, as a deploy sends it: nothing is lost, and it costs no try."""
    job_id = submit(patient, **TRAINING, dataset=images["id"], max_attempts=1)["id"]
    wait_for_resume_point(patient, job_id)
    assert killable.stop() == 0
    killable.start()
    job = wait_for(patient, job_id)
    assert job["state"] == "succeeded", job["error"]
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["released", "succeeded"]
    assert digest_of_weights(job) == unbroken


def test_a_runner_does_not_outlive_its_worker(killable, patient, images):
    job_id = submit(patient, **TRAINING, dataset=images["id"])["id"]
    wait_for_resume_point(patient, job_id)
    orphans = killable.parts("worker.runner")
    assert orphans
    killable.part("worker").kill()
    for orphan in orphans:
        orphan.wait(timeout=5)
    patient.post(f"/v1/jobs/{job_id}/cancel")
    assert wait_for(patient, job_id)["state"] == "cancelled"


def test_the_parts_do_not_outlive_serve(tmp_path):
    with running_service(tmp_path / "home", threads=1) as service:
        while len(service.tree()) < 4:  # serve, API, worker, and the spare runner when it comes up
            time.sleep(0.1)
        top, *parts = service.tree()
        top.kill()
        service.process.wait()
        left = psutil.wait_procs(parts, timeout=20)[1]
        assert not left
