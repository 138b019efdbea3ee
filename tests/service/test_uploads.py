import socket
import time

import httpx
import pytest
from making import npz, push_dataset, push_model, weights
from service_process import running_service

QUERY = {"name": "net", "architecture": "blk_2_fil_4", "input": "16x16x1"}


def count(api, what) -> int:
    return len(api.get(f"/v1/{what}?limit=200").json()["items"])


@pytest.fixture
def nothing_left(api, service):
    """Whatever the test sends, no row, no blob and no spool file comes of it."""

    def look():
        files = sorted(path.name for folder in ("spool", "store") for path in (service.home / folder).rglob("*"))
        return files, count(api, "models"), count(api, "datasets")

    before = look()
    yield
    assert look() == before


class TestModels:
    def test_a_checkpoint_comes_back_as_it_went(self, api):
        sent = weights()
        made = api.post("/v1/models", params=QUERY, content=sent)
        assert made.status_code == 201
        model = api.get(made.headers["location"]).json()
        assert (model["architecture_name"], model["input"], model["origin"]) == ("blk_2_fil_4", "16x16x1", "upload")
        assert api.get(f"/v1/models/{model['id']}/weights").content == sent

    def test_the_architecture_may_be_json_or_in_the_file(self, api):
        as_json = '{"blocks": 2, "filters": 4, "head": "sigmoid"}'
        made = api.post("/v1/models", params={**QUERY, "architecture": as_json}, content=weights())
        assert made.json()["architecture"]["head"] == "sigmoid"
        metadata = {"flashcards.architecture": "blk_2_fil_4", "flashcards.input": "16x16x1", "flashcards.range": "-1,1"}
        made = api.post("/v1/models", params={"name": "net"}, content=weights(metadata=metadata))
        assert (made.status_code, made.json()["range"]) == (201, [-1.0, 1.0])

    def test_a_chunked_upload_works(self, api):
        sent = weights()
        pieces = (sent[start : start + 100] for start in range(0, len(sent), 100))
        assert api.post("/v1/models", params=QUERY, content=pieces).status_code == 201

    @pytest.mark.parametrize(
        ("change", "content"),
        [
            ({}, b""),
            ({}, weights()[:-7]),
            ({}, b"PK\x03\x04 a zip, perhaps a pickle inside"),
            ({}, weights() + b"!"),
            ({}, weights("blk_2_fil_5")),
            ({"architecture": "blk_3_fil_4"}, weights()),
            ({"input": "17x17x1"}, weights()),
            ({"input": "16x16"}, weights()),
            ({"architecture": "resnet"}, weights()),
            ({"architecture": '{"blocks": 2'}, weights()),
            ({"range": "1,0"}, weights()),
            ({"range": "a,b"}, weights()),
            ({"name": ""}, weights()),
            ({"name": "two\nlines"}, weights()),
        ],
    )
    def test_bad_ones_are_refused_and_leave_nothing(self, api, nothing_left, change, content):
        answer = api.post("/v1/models", params={**QUERY, **change}, content=content)
        assert answer.status_code == 422
        assert answer.json()["detail"]

    def test_delete(self, api):
        net = push_model(api)
        assert api.delete(f"/v1/models/{net['id']}").status_code == 204
        assert api.get(f"/v1/models/{net['id']}").status_code == 404
        assert api.delete(f"/v1/models/{net['id']}").status_code == 404


class TestDatasets:
    def test_it_knows_its_splits(self, api, dataset):
        assert dataset["splits"]["train"]["count"] == 1000
        assert dataset["splits"]["train"]["shape"] == "8x8x1"
        assert dataset["splits"]["test"]["classes"] == 10
        assert api.get(f"/v1/datasets/{dataset['id']}/file").status_code == 200

    @pytest.mark.parametrize("content", [b"", b"not an npz", b"PK\x05\x06" + b"\0" * 18])
    def test_bad_ones_are_refused_and_leave_nothing(self, api, nothing_left, content):
        assert api.post("/v1/datasets", params={"name": "d"}, content=content).status_code == 422

    def test_object_arrays_are_refused(self, api, nothing_left):
        import numpy as np

        objects = npz(x=np.array([{"a": 1}], dtype=object))
        assert api.post("/v1/datasets", params={"name": "d"}, content=objects).status_code == 422

    def test_delete(self, api):
        import numpy as np

        made = push_dataset(api, npz(x=np.zeros((2, 4, 4), np.uint8)))
        assert api.delete(f"/v1/datasets/{made['id']}").status_code == 204
        assert api.get(f"/v1/datasets/{made['id']}").status_code == 404


class TestHangUp:
    def test_a_client_that_hangs_up_leaves_nothing(self, api, service, nothing_left):
        with socket.create_connection(("127.0.0.1", service.port)) as line:
            line.sendall(
                b"POST /v1/datasets?name=half HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50000000\r\n\r\n"
                + b"x" * 3_000_000
            )
            assert wait_until(lambda: any((service.home / "spool").iterdir()))
        assert wait_until(lambda: not any((service.home / "spool").iterdir()))

    def test_its_idempotency_key_is_free_again(self, api, service):
        with socket.create_connection(("127.0.0.1", service.port)) as line:
            head = "POST /v1/models?name=x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\n"
            line.sendall(f"{head}Idempotency-Key: hung-up\r\n\r\n".encode() + b"x" * 2_000_000)
            assert wait_until(lambda: any((service.home / "spool").iterdir()))
        assert wait_until(lambda: not any((service.home / "spool").iterdir()))
        time.sleep(0.3)
        again = api.post("/v1/models", params=QUERY, content=weights(), headers={"Idempotency-Key": "hung-up"})
        assert again.status_code == 201


def wait_until(holds, seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.02)
    return False


@pytest.mark.slow
def test_an_upload_over_the_limit_is_refused_announced_or_not(tmp_path):
    with running_service(tmp_path / "home", threads=1, max_upload_bytes=100_000) as small:
        with httpx.Client(base_url=small.url, timeout=60) as api:
            announced = api.post("/v1/datasets", params={"name": "d"}, content=b"x" * 100_001)
            pieces = (b"x" * 10_000 for _ in range(20))
            streamed = api.post("/v1/datasets", params={"name": "d"}, content=pieces)
            assert (announced.status_code, streamed.status_code) == (413, 413)
            assert announced.json()["type"] == streamed.json()["type"] == "/problems/too-large"
        assert not any((small.home / "spool").iterdir())


class TestPreparation:
    def test_it_is_recorded_with_the_dataset(self, api, digits_npz):
        params = {"name": "d", "input": "16x16x3", "invert": "true"}
        made = api.post("/v1/datasets", params=params, content=digits_npz).json()
        done = {"input": "16x16x3", "resize": "bilinear", "channels": "copied", "invert": True}
        assert made["preparation"] == done
        assert api.get(f"/v1/datasets/{made['id']}").json() == made
        assert {split["shape"] for split in made["splits"].values()} == {"16x16x3"}
        assert made["uploaded_digest"] != made["digest"]

    def test_it_is_null_where_nothing_was_done(self, api, digits_npz):
        params = {"name": "d", "input": "8x8x1", "invert": "false"}
        made = api.post("/v1/datasets", params=params, content=digits_npz).json()
        assert (made["preparation"], made["uploaded_digest"]) == (None, None)

    @pytest.mark.parametrize(
        "query", [{"input": "32x32"}, {"input": "32x32x2"}, {"input": "0x1x1"}, {"invert": "no way"}]
    )
    def test_what_cannot_be_asked_for_names_its_field(self, api, digits_npz, query):
        answer = api.post("/v1/datasets", params={"name": "d", **query}, content=digits_npz)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["field"] == f"query.{next(iter(query))}"

    @pytest.mark.parametrize("pixels", [[[7]], [[[0] * 4] * 4], [[[9] * 4] * 4] * 3])
    def test_one_image_and_constant_images(self, api, pixels):
        import numpy as np

        images = np.array(pixels, np.uint8).reshape(-1, *np.shape(pixels)[-2:])
        assert push_dataset(api, npz(x=images))["splits"]["train"]["count"] == len(images)

    def test_labels_are_as_many_as_images(self, api):
        import numpy as np

        content = npz(x=np.zeros((3, 4, 4), np.uint8), y=np.arange(2))
        for query in ({}, {"input": "8x8x3"}):
            answer = api.post("/v1/datasets", params={"name": "d", **query}, content=content)
            assert (answer.status_code, "one label for each" in answer.json()["detail"]) == (422, True)
