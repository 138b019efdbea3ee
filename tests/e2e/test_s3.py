"""The same service with its files in a bucket."""

import io
import time
from uuid import uuid4

import httpx
import numpy as np
import pytest
from making import finished, push_dataset, push_model, submit, wait_for, weights
from pieces import PART_BYTES, begin, digest_of, piece, put
from servers import s3_server
from service_process import ServiceProcess, free_port

from flashcards import Client

pytestmark = pytest.mark.slow
TRAINING = {"kind": "train", "architecture": "blk_1_fil_8", "epochs": 4, "learning_rate": 5e-3}
TEMPO = {"threads": 1, "reap_seconds": 0.2, "collect_seconds": 0.3}


def start(service: ServiceProcess, environment: dict[str, str]) -> ServiceProcess:
    service.environment |= environment
    service.start()
    return service


def end(service: ServiceProcess) -> None:
    for process in service.tree():
        process.kill()
    service.process.wait()


@pytest.fixture(scope="module")
def bucket() -> str:
    return uuid4().hex


@pytest.fixture(scope="module")
def remote(tmp_path_factory, s3, bucket):
    home = tmp_path_factory.mktemp("remote") / "home"
    settings = {"store_url": s3.new_bucket(bucket), "upload_part_bytes": PART_BYTES, "collect_grace_seconds": 1}
    service = ServiceProcess(home, **settings, **TEMPO)
    yield start(service, s3.environment)
    end(service)


@pytest.fixture(scope="module")
def client(remote):
    with httpx.Client(base_url=remote.url, timeout=60) as client:
        yield client


def wait_for_keys(s3, bucket: str, digests: set[str]) -> None:
    wanted = {f"some/prefix/default/{digest}" for digest in digests}
    deadline = time.monotonic() + 30
    while set(s3.keys(bucket)) != wanted:
        assert time.monotonic() < deadline, s3.keys(bucket)
        time.sleep(0.1)


def test_from_upload_to_collection(remote, client, s3, bucket, digits_npz, tmp_path):
    assert client.get("/readyz").json()["ready"]
    dataset = push_dataset(client, digits_npz)
    trained = finished(client, **TRAINING, dataset=dataset["id"])
    model = client.get(f"/v1/models/{trained['result']['model']}").json()
    captured = finished(client, kind="capture", model=model["id"], count=40, r=2)
    cards = captured["result"]["flashcards"]

    assert not (remote.home / "store").exists()
    assert client.get(f"/v1/datasets/{dataset['id']}/file").content == digits_npz
    assert client.get(f"/v1/datasets/{dataset['id']}/file", headers={"Range": "bytes=5-9"}).content == digits_npz[5:10]
    whole = np.load(io.BytesIO(client.get(f"/v1/jobs/{captured['id']}/artifacts/cards.npy").content))
    part = client.get(f"/v1/flashcards/{cards}/cards", params={"offset": 30, "limit": 5})
    np.testing.assert_array_equal(np.load(io.BytesIO(part.content))["x"], whole[30:35])
    assert client.get(f"/v1/flashcards/{cards}/sheet.png").content.startswith(b"\x89PNG")

    for path in (f"jobs/{trained['id']}", f"jobs/{captured['id']}", f"flashcards/{cards}", f"datasets/{dataset['id']}"):
        assert client.delete(f"/v1/{path}").status_code == 204
    wait_for_keys(s3, bucket, {model["digest"], model["capsule"]["digest"]})
    assert client.get(f"/v1/models/{model['id']}/weights").status_code == 200
    assert client.delete(f"/v1/models/{model['id']}").status_code == 204
    wait_for_keys(s3, bucket, set())
    assert client.get("/v1/storage").json()["files"] == 0


def test_a_link_to_the_bucket(client, s3):
    model = push_model(client)
    path = f"/v1/models/{model['id']}/weights"
    answer = client.get(path, params={"presign": "true"})
    assert answer.status_code == 307
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["location"].startswith(s3.url)
    assert httpx.get(answer.headers["location"]).content == weights()
    followed = client.get(path, params={"presign": "true"}, headers={"Range": "bytes=0-9"}, follow_redirects=True)
    assert (followed.status_code, followed.content) == (206, weights()[:10])
    assert client.head(path, params={"presign": "true"}).status_code == 200
    assert client.get(path).status_code == 200
    client.delete(f"/v1/models/{model['id']}")


def test_the_client_fetches_straight_from_the_bucket(remote, client, tmp_path):
    model = push_model(client)
    with Client(remote.url, direct_downloads=True) as direct:
        assert direct.models.weights(model["id"], tmp_path).read_bytes() == weights()
    client.delete(f"/v1/models/{model['id']}")


def test_the_runner_has_no_key_to_the_bucket(remote, client, digits_npz):
    dataset = push_dataset(client, digits_npz)
    job = submit(client, **{**TRAINING, "epochs": 100_000}, dataset=dataset["id"])
    try:
        with client.stream("GET", f"/v1/jobs/{job['id']}/events") as events:
            assert any(line == "event: progress" for line in events.iter_lines())
        seen = [runner.environ() for runner in remote.parts("worker.runner")]
        assert seen
        assert [name for environment in seen for name in environment if name.startswith(("AWS", "FLASHCARDS"))] == []
    finally:
        client.post(f"/v1/jobs/{job['id']}/cancel")
        wait_for(client, job["id"])


def test_with_the_bucket_away_everything_says_so_and_comes_back(tmp_path):
    with s3_server() as s3:
        settings = {"store_url": s3.new_bucket("bucket"), "store_patience_seconds": 1}
        service = start(ServiceProcess(tmp_path / "home", **settings, **TEMPO), s3.environment)
        try:
            with httpx.Client(base_url=service.url, timeout=60) as client:
                model = push_model(client)
                s3.stop()
                assert client.get("/readyz").json()["checks"]["store"] is False
                away = [
                    client.get(f"/v1/models/{model['id']}/weights"),
                    client.post("/v1/models", params={"name": "net", "input": "16x16x1"} | ARCHITECTURE, content=OTHER),
                ]
                for answer in away:
                    assert (answer.status_code, answer.json()["type"]) == (503, "/problems/store-away")
                    assert int(answer.headers["retry-after"]) > 0
                    assert "127.0.0.1" not in answer.text
                job = wait_for(client, submit(client, kind="capture", model=model["id"], count=3, r=1)["id"])
                assert (job["state"], job["error"]["type"]) == ("failed", "storage")

                s3.start()
                s3.new_bucket("bucket")
                assert client.get("/readyz").json()["ready"]
                assert push_model(client)["digest"] == model["digest"]
                assert client.post(f"/v1/jobs/{job['id']}/retry").status_code == 202
                assert wait_for(client, job["id"])["state"] == "succeeded"
                assert "Traceback" not in service.log.read_text()
        finally:
            end(service)


class TestStraightIntoTheBucket:
    def links(self, client, upload: dict) -> dict[int, str]:
        answer = client.post(f"/v1/uploads/{upload['id']}/links", json={"parts": upload["missing"]})
        assert answer.status_code == 200, answer.text
        sizes = [link["size"] for link in answer.json()["links"]]
        assert sum(sizes) == upload["size"]
        return {link["part"]: link["url"] for link in answer.json()["links"]}

    def complete(self, client, upload: dict) -> httpx.Response:
        return client.post(
            "/v1/models", params={"name": "net", "input": "16x16x1", "upload": upload["id"]} | ARCHITECTURE
        )

    def is_missing(self, client, upload: dict) -> list[int]:
        return client.get(f"/v1/uploads/{upload['id']}").json()["missing"]

    def landed(self, s3, bucket: str) -> list[str]:
        return [key for key in s3.keys(bucket) if "/uploads/" in key]

    def test_parts_by_link_and_by_the_api(self, client, s3, bucket):
        sent = weights(seed=2)
        upload = begin(client, sent)
        first, *others = upload["missing"]
        for part, url in self.links(client, upload).items():
            assert url.startswith(s3.url)
            assert "a secret" not in url
            if part != first:
                assert httpx.put(url, content=piece(upload, sent, part)).status_code == 200
        assert self.is_missing(client, upload) == [first]
        assert self.complete(client, upload).json()["type"] == "/problems/upload-incomplete"
        assert put(client, upload, first, piece(upload, sent, first)).status_code == 200
        assert self.is_missing(client, upload) == []
        assert len(self.landed(s3, bucket)) == len(others)
        made = self.complete(client, upload)
        assert made.status_code == 201, made.text
        assert client.get(f"{made.headers['location']}/weights").content == sent
        assert self.complete(client, upload).json() == made.json()
        assert self.landed(s3, bucket) == []
        client.delete(made.headers["location"])

    def test_what_lies_there_is_nobodys_word(self, client, s3, bucket):
        sent = weights(seed=3)
        upload = begin(client, sent)
        links = self.links(client, upload)
        for part, url in links.items():
            httpx.put(url, content=piece(upload, sent, part))
        httpx.put(links[1], content=b"x" * (PART_BYTES + 1))
        httpx.put(links[2], content=b"")
        assert self.is_missing(client, upload) == [1, 2]
        httpx.put(links[1], content=b"x" * PART_BYTES)
        httpx.put(links[2], content=piece(upload, sent, 2))
        assert self.is_missing(client, upload) == []
        refused = self.complete(client, upload)
        assert (refused.status_code, refused.json()["type"]) == (422, "/problems/digest-mismatch")
        assert client.delete(f"/v1/uploads/{upload['id']}").status_code == 204
        assert self.landed(s3, bucket) == []

    def test_the_client_by_itself(self, remote, client, tmp_path):
        path = tmp_path / "net.safetensors"
        path.write_bytes(weights(seed=4))
        net = {"architecture": "blk_2_fil_4", "input": "16x16x1"}
        before = remote.log.read_text().count("/parts/")
        with Client(remote.url, parts_above=0, direct_uploads=True) as direct:
            model = direct.models.push(path, **net)
            assert remote.log.read_text().count("/parts/") == before, "no part came to the API"
            assert model.digest == digest_of(path.read_bytes())
            direct.models.delete(model.id)

    def test_where_the_bucket_cannot_be_reached_the_service_can(self, remote, tmp_path):
        path = tmp_path / "net.safetensors"
        path.write_bytes(weights(seed=5))
        before = remote.log.read_text().count("/parts/")
        with Client(remote.url, parts_above=0, direct_uploads=True) as direct:
            direct._http.plain = lambda _: httpx.Client(proxy=f"http://127.0.0.1:{free_port()}")
            model = direct.models.push(path, architecture="blk_2_fil_4", input="16x16x1")
            assert remote.log.read_text().count("/parts/") > before
            direct.models.delete(model.id)


ARCHITECTURE = {"architecture": "blk_2_fil_4"}
OTHER = weights(seed=1)
