"""Data that is not to be kept: when its job has ended there is no row, no object, no picture and no copy of it."""

import time
from contextlib import suppress
from uuid import uuid4

import httpx
import numpy as np
import pytest
from making import npz, push_dataset, submit, wait_for
from service_process import ServiceProcess
from sqlalchemy import update

from ledger.db import Database
from ledger.tables import Dataset

HOPELESS = {"kind": "train", "architecture": "blk_1_fil_2", "epochs": 1}
LONG = {"kind": "train", "architecture": "blk_1_fil_2", "epochs": 100_000}


class Place:
    """A service, and a look at everything that it keeps."""

    def __init__(self, service: ServiceProcess, keys, read) -> None:
        self.service, self.keys, self.read = service, keys, read
        self.db = Database(f"sqlite:///{service.home / 'flashcards.db'}")

    def keep_no_data(self, dataset_id: str) -> None:
        """What the upload route writes down for a key that keeps no data."""
        with self.db.write() as session:
            session.execute(update(Dataset).where(Dataset.id == dataset_id).values(retain=False))

    def holds(self, content: bytes) -> list[str]:
        """Whatever goes while it is looked at holds nothing any more."""
        found = []
        for path in self.service.home.rglob("*"):
            with suppress(FileNotFoundError, IsADirectoryError):
                if content in path.read_bytes():
                    found.append(str(path))
        for key in self.keys():
            with suppress(FileNotFoundError):
                if content in self.read(key):
                    found.append(key)
        return found

    def wait_until_nothing_holds(self, content: bytes) -> None:
        """A moment after the row, and long before the grace of an hour."""
        deadline = time.monotonic() + 10
        while found := self.holds(content):
            assert time.monotonic() < deadline, found
            time.sleep(0.05)


@pytest.fixture(scope="module", params=["folder", pytest.param("s3", marks=pytest.mark.slow)])
def place(request, tmp_path_factory):
    home = tmp_path_factory.mktemp("retention") / "home"
    tempo = {"threads": 1, "reap_seconds": 0.5}
    if request.param == "s3":
        s3, bucket = request.getfixturevalue("s3"), uuid4().hex
        service = ServiceProcess(home, store_url=s3.new_bucket(bucket), **tempo)
        service.environment |= s3.environment
        look = (lambda: s3.keys(bucket), lambda key: s3.content(bucket, key))
    else:
        service = ServiceProcess(home, **tempo)
        look = (list, lambda key: b"")
    service.start()
    place = Place(service, *look)
    yield place
    place.db.close()
    for process in service.tree():
        process.kill()
    service.process.wait()


@pytest.fixture
def api(place):
    with httpx.Client(base_url=place.service.url, timeout=60) as client:
        yield client


def images() -> tuple[bytes, bytes]:
    """An npz, and one image of it as it lies in the file."""
    x = np.random.default_rng().integers(0, 256, (20, 8, 8), np.uint8)
    return npz(x=x), x[7].tobytes()


def wait_until_gone(api, dataset_id: str) -> None:
    deadline = time.monotonic() + 20
    while api.get(f"/v1/datasets/{dataset_id}").status_code != 404:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_when_its_job_has_ended_nothing_of_it_is_left(place, api):
    content, image = images()
    dataset = push_dataset(api, content)
    assert place.holds(image), "the look finds it while it is there"
    place.keep_no_data(dataset["id"])
    job = wait_for(api, submit(api, **HOPELESS, dataset=dataset["id"])["id"])
    assert job["error"]["type"] == "training-collapsed"
    wait_until_gone(api, dataset["id"])
    place.wait_until_nothing_holds(image)

    stored = api.get("/v1/storage", params={"limit": 200}).json()["items"]
    assert dataset["digest"] not in [item["digest"] for item in stored]
    assert [artifact["name"] for artifact in api.get(f"/v1/jobs/{job['id']}").json()["artifacts"]] == [
        "model.safetensors"
    ]
    assert api.get(f"/v1/jobs/{job['id']}/artifacts/reconstructions.png").status_code == 404
    events = api.get(f"/v1/jobs/{job['id']}/events", params={"follow": False}).json()
    assert f"{dataset['id']} and its file were deleted" in events[-1]["data"]["text"]

    refused = api.post(f"/v1/jobs/{job['id']}/retry")
    assert refused.status_code == 422
    assert f"there is no dataset {dataset['id']}" in refused.json()["detail"]


def test_a_job_cancelled_in_the_queue_takes_its_data_with_it(place, api):
    busy = submit(api, **LONG, dataset=push_dataset(api, images()[0])["id"])
    try:
        content, image = images()
        dataset = push_dataset(api, content)
        place.keep_no_data(dataset["id"])
        job = submit(api, **LONG, dataset=dataset["id"])
        assert api.get(f"/v1/datasets/{dataset['id']}").status_code == 200
        assert api.post(f"/v1/jobs/{job['id']}/cancel").json()["state"] == "cancelled"
        assert api.get(f"/v1/datasets/{dataset['id']}").status_code == 404
        place.wait_until_nothing_holds(image)
    finally:
        api.post(f"/v1/jobs/{busy['id']}/cancel")
        wait_for(api, busy["id"])


def test_deleting_it_by_hand_leaves_nothing_either(place, api):
    content, image = images()
    dataset = push_dataset(api, content)
    place.keep_no_data(dataset["id"])
    assert api.delete(f"/v1/datasets/{dataset['id']}").status_code == 204
    assert place.holds(image) == []
