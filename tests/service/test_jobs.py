import json

import pytest
from making import finished, push_dataset, push_model, submit, wait_for

NOBODY = "model_" + "0" * 32


def fields(answer) -> set[str]:
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == answer.status_code
    return {error["field"] for error in body.get("errors", [])}


class TestSubmit:
    def test_the_answer_says_where_the_job_is(self, api, model):
        answer = api.post("/v1/jobs", json={"kind": "capture", "model": model["id"], "count": 4, "r": 2})
        assert answer.status_code == 202
        job = api.get(answer.headers["location"]).json()
        assert job["id"] == answer.json()["id"]
        assert job["spec"]["count"] == 4
        assert job["spec"]["source"] == "auto"

    def test_validate_only_queues_nothing(self, api, model):
        before = [item["id"] for item in api.get("/v1/jobs?limit=1").json()["items"]]
        answer = api.post("/v1/jobs?validate_only=true", json={"kind": "capture", "model": model["id"]})
        assert (answer.status_code, answer.json()["valid"]) == (200, True)
        assert answer.json()["spec"]["r"] == "auto"
        assert [item["id"] for item in api.get("/v1/jobs?limit=1").json()["items"]] == before

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"r": 0, "source": "maze"}, "body.capture"),
            ({"count": 10**12}, "body.capture.count"),
            ({"count": 0}, "body.capture.count"),
            ({"seed": -1}, "body.capture.seed"),
            ({"seed": 2**64}, "body.capture.seed"),
            ({"colour": "red"}, "body.capture.colour"),
            ({"model": NOBODY}, "body.model"),
            ({"model": "../../etc/passwd"}, "body.capture.model"),
            ({"source": "dreams"}, "body.capture.source"),
            ({"labels": {"bad key": "x"}}, "body.capture.labels.bad key.[key]"),
            ({"timeout_seconds": 0}, "body.capture.timeout_seconds"),
            ({"kind": "juggle"}, "body"),
            ({"kind": "shard"}, "body"),
        ],
    )
    def test_nonsense_is_refused_with_the_field(self, api, model, change, field):
        answer = api.post("/v1/jobs", json={"kind": "capture", "model": model["id"], **change})
        assert answer.status_code == 422
        assert fields(answer) == {field}

    @pytest.mark.parametrize("shards", [0, 65, -1, 1.5, "many", None])
    def test_it_is_split_into_some_or_not_at_all(self, api, model, shards):
        answer = api.post("/v1/jobs", json={"kind": "capture", "model": model["id"], "shards": shards})
        assert answer.status_code == 422
        assert {".".join(field.split(".")[:3]) for field in fields(answer)} == {"body.capture.shards"}

    @pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"capture"', b'{"kind": NaN}', b"\xff"])
    def test_what_is_not_a_spec_is_refused(self, api, body):
        answer = api.post("/v1/jobs", content=body, headers={"content-type": "application/json"})
        assert answer.status_code in (400, 422)
        assert answer.headers["content-type"] == "application/problem+json"

    def test_a_body_over_the_limit_is_refused(self, api):
        answer = api.post("/v1/jobs", content=b" " * (1024**2 + 1), headers={"content-type": "application/json"})
        assert (answer.status_code, answer.json()["type"]) == (413, "/problems/too-large")

    def test_cards_that_would_not_fit_are_refused_before_they_are_queued(self, api):
        big = push_model(api, "blk_1_fil_1", "1024x1024x16")
        answer = api.post("/v1/jobs", json={"kind": "capture", "model": big["id"], "count": 10**6})
        assert (answer.status_code, fields(answer)) == (422, {"body.count"})


class TestShapesThatDoNotFit:
    def test_a_network_that_halves_too_often(self, api, dataset):
        answer = api.post("/v1/jobs", json={"kind": "train", "dataset": dataset["id"], "architecture": "blk_4_fil_4"})
        assert (answer.status_code, fields(answer)) == (422, {"body.architecture"})
        assert "must divide by 16" in answer.json()["detail"]

    def test_a_model_for_other_images(self, api, dataset, model):
        answer = api.post("/v1/jobs", json={"kind": "evaluate", "model": model["id"], "dataset": dataset["id"]})
        assert (answer.status_code, fields(answer)) == (422, {"body.dataset"})
        assert "16x16x1" in answer.json()["detail"]
        assert "8x8x1" in answer.json()["detail"]

    def test_values_outside_the_network_s_range(self, api):
        import numpy as np
        from making import npz

        far = push_dataset(api, npz(x=np.linspace(-1, 1, 3 * 64, dtype=np.float32).reshape(3, 8, 8)))
        spec = {"kind": "train", "dataset": far["id"], "architecture": "blk_2_fil_4"}
        answer = api.post("/v1/jobs", json=spec)
        assert (answer.status_code, fields(answer)) == (422, {"body.dataset"})
        assert api.post("/v1/jobs?validate_only=true", json={**spec, "range": [-1, 1]}).status_code == 200

    def test_a_split_that_is_not_there(self, api):
        import numpy as np
        from making import npz

        only_train = push_dataset(api, npz(x=np.zeros((3, 16, 16), np.uint8)))
        net = push_model(api)
        spec = {"kind": "evaluate", "model": net["id"], "dataset": only_train["id"], "split": "test"}
        assert fields(api.post("/v1/jobs", json=spec)) == {"body.split"}

    def test_one_image_is_not_enough_to_train(self, api):
        import numpy as np
        from making import npz

        lonely = push_dataset(api, npz(x=np.zeros((1, 8, 8), np.uint8)))
        answer = api.post("/v1/jobs", json={"kind": "train", "dataset": lonely["id"], "architecture": "blk_2_fil_4"})
        assert fields(answer) == {"body.dataset"}


class TestLists:
    def test_pages_meet_without_gap_or_overlap(self, api, model):
        made = [
            submit(api, kind="capture", model=model["id"], count=1, r=1, labels={"batch": "pages"})["id"]
            for _ in range(5)
        ]
        seen, cursor = [], None
        while True:
            params = {"limit": 2, "label": "batch=pages", **({"cursor": cursor} if cursor else {})}
            page = api.get("/v1/jobs", params=params).json()
            seen += [job["id"] for job in page["items"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert seen == made[::-1]

    def test_filters(self, api, model):
        job = finished(api, kind="capture", model=model["id"], count=1, r=1, labels={"who": "me=you", "n": "1"})
        found = api.get("/v1/jobs", params={"label": ["who=me=you", "n=1"], "state": "succeeded", "kind": "capture"})
        assert [item["id"] for item in found.json()["items"]] == [job["id"]]
        assert api.get("/v1/jobs", params={"label": "who=me=you", "kind": "train"}).json()["items"] == []

    def test_the_oldest_come_first_where_that_is_asked_for(self, api):
        ids = [submit(api, kind="noop", labels={"batch": "oldest"})["id"] for _ in range(3)]
        params = {"label": "batch=oldest", "order": "oldest", "limit": 2}
        first = api.get("/v1/jobs", params=params).json()
        second = api.get("/v1/jobs", params={**params, "cursor": first["next_cursor"]}).json()
        assert [job["id"] for job in first["items"] + second["items"]] == ids
        assert second["next_cursor"] is None

    @pytest.mark.parametrize("cursor", ["x", "====", "bW9kZWxfMDAw", "\u00e9", "a" * 201])
    def test_a_bad_cursor_is_refused(self, api, cursor):
        for path in ("/v1/jobs", "/v1/models", "/v1/datasets", "/v1/flashcards"):
            assert api.get(path, params={"cursor": cursor}).status_code == 422

    @pytest.mark.parametrize("query", ["limit=0", "limit=201", "limit=x", "state=asleep", "label=novalue"])
    def test_a_bad_filter_is_refused(self, api, query):
        assert api.get(f"/v1/jobs?{query}").status_code == 422


@pytest.fixture(scope="module")
def job(api, model):
    return finished(api, kind="capture", model=model["id"], count=3, r=2)


class TestEvents:
    def read(self, api, job, **headers):
        events = []
        with api.stream("GET", f"/v1/jobs/{job['id']}/events", headers=headers) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    events.append(json.loads(line[6:]))
        return events

    def test_the_stream_replays_from_the_start_and_ends_with_the_job(self, api, job):
        events = self.read(api, job)
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        assert [event["data"]["state"] for event in events if event["kind"] == "state"] == [
            "queued",
            "running",
            "succeeded",
        ]

    def test_who_comes_back_goes_on_where_they_left(self, api, job):
        everything = self.read(api, job)
        assert self.read(api, job, **{"Last-Event-ID": "2"}) == everything[2:]
        assert self.read(api, job, **{"Last-Event-ID": str(len(everything))}) == []

    def test_without_follow_it_is_json(self, api, job):
        got = api.get(f"/v1/jobs/{job['id']}/events?follow=false&after=1").json()
        assert got == self.read(api, job)[1:]

    @pytest.mark.parametrize("bad", ["x", "-1", "1.5", "9" * 30])
    def test_a_bad_event_id_is_refused(self, api, job, bad):
        assert api.get(f"/v1/jobs/{job['id']}/events", headers={"Last-Event-ID": bad}).status_code == 422

    def test_logs_and_metrics_are_there(self, api, job):
        assert api.get(f"/v1/jobs/{job['id']}/logs").headers["content-type"].startswith("text/plain")
        assert api.get(f"/v1/jobs/{job['id']}/metrics").json() == {"metrics": {}}


class TestDelete:
    def test_a_finished_job_goes_and_what_it_made_stays(self, api, model):
        job = finished(api, kind="capture", model=model["id"], count=2, r=1)
        assert api.delete(f"/v1/jobs/{job['id']}/artifacts/source.png").status_code == 204
        assert api.get(f"/v1/jobs/{job['id']}/artifacts/source.png").status_code == 404
        assert api.delete(f"/v1/jobs/{job['id']}").status_code == 204
        assert api.get(f"/v1/jobs/{job['id']}").status_code == 404
        assert api.get(f"/v1/flashcards/{job['result']['flashcards']}/cards").status_code == 200

    def test_an_unfinished_one_stays(self, api, model):
        slow = submit(api, kind="capture", model=model["id"], count=200_000, r=50)
        assert api.delete(f"/v1/jobs/{slow['id']}").status_code == 409
        assert api.delete(f"/v1/models/{model['id']}").status_code == 409
        assert api.post(f"/v1/jobs/{slow['id']}/cancel").status_code == 202
        assert wait_for(api, slow["id"])["state"] == "cancelled"

    def test_resume_points_are_not_artifacts(self, api, model):
        job = finished(api, kind="capture", model=model["id"], count=2, r=1)
        assert api.get(f"/v1/jobs/{job['id']}/artifacts/00000001.safetensors").status_code == 404
        assert api.get(f"/v1/jobs/{job['id']}/artifacts/..%2f..%2fetc").status_code == 404


class TestCancelAndRetry:
    def test_a_queued_job_is_cancelled_and_can_be_retried(self, api, model):
        slow = submit(api, kind="capture", model=model["id"], count=200_000, r=50)
        waiting = submit(api, kind="capture", model=model["id"], count=2, r=1)
        assert api.get(f"/v1/jobs/{waiting['id']}").json()["queue_position"] in (1, 2)
        assert api.post(f"/v1/jobs/{waiting['id']}/cancel").json()["state"] == "cancelled"
        assert api.post(f"/v1/jobs/{waiting['id']}/cancel").status_code == 202
        api.post(f"/v1/jobs/{slow['id']}/cancel")
        assert api.post(f"/v1/jobs/{waiting['id']}/retry").json()["state"] == "queued"
        assert wait_for(api, waiting["id"])["state"] == "succeeded"
        assert api.post(f"/v1/jobs/{waiting['id']}/retry").status_code == 409
        assert api.post(f"/v1/jobs/{waiting['id']}/cancel").status_code == 409

    def test_a_retry_whose_model_is_gone_is_refused(self, api):
        net = push_model(api)
        slow = submit(api, kind="capture", model=net["id"], count=200_000, r=50)
        api.post(f"/v1/jobs/{slow['id']}/cancel")
        assert wait_for(api, slow["id"])["state"] == "cancelled"
        assert api.delete(f"/v1/models/{net['id']}").status_code == 204
        assert api.post(f"/v1/jobs/{slow['id']}/retry").status_code == 422
        assert api.get(f"/v1/jobs/{slow['id']}").json()["state"] == "cancelled"

    @pytest.mark.parametrize("verb", ["cancel", "retry"])
    def test_an_unknown_job_is_not_found(self, api, verb):
        assert api.post(f"/v1/jobs/job_{'0' * 32}/{verb}").status_code == 404


def test_a_job_past_its_time_fails_and_says_so(api, model):
    job = wait_for(api, submit(api, kind="capture", model=model["id"], count=500_000, r=50, timeout_seconds=1)["id"])
    assert (job["state"], job["error"]["type"]) == ("failed", "timeout")


def test_a_device_that_no_worker_has_is_refused(api, model):
    answer = api.post("/v1/jobs", json={"kind": "capture", "model": model["id"], "device": "gpu"})
    assert (answer.status_code, fields(answer)) == (422, {"body.device"})
