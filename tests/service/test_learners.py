"""Learners at the door. The service runs real tasks; they are few, and shared."""

import csv
import io

import numpy as np
import pytest
from making import make_key, npz, push_dataset, push_model, wait_for

TASK = {"epochs": 5, "batch_size": 16, "learning_rate": 0.01, "strategy": {"kind": "naive"}}
NOWHERE = "learner_" + "0" * 32


@pytest.fixture(scope="module")
def parts(api, digits) -> list[dict]:
    """The digits below five, and the others: two things to learn."""
    small = digits["y_train"][:300] < 5
    test = digits["y_test"][:60] < 5
    return [
        push_dataset(api, npz(x_train=digits["x_train"][:300][rows], x_test=digits["x_test"][:60][held]), name)
        for name, rows, held in (("small digits", small, test), ("large digits", ~small, ~test))
    ]


def create(api, **fields) -> dict:
    answer = api.post("/v1/learners", json={"architecture": "blk_1_fil_8", **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()


def post_task(api, learner: dict, dataset: dict, **fields) -> dict:
    body = {**TASK, "dataset": dataset["id"], **fields}
    answer = api.post(f"/v1/learners/{learner['id']}/tasks", json=body)
    assert answer.status_code == 202, answer.text
    return answer.json()


def head(api, learner: dict) -> dict:
    return api.get(f"/v1/learners/{learner['id']}").json()


@pytest.fixture(scope="module")
def taught(api, parts) -> dict:
    """A learner after two tasks that were posted at once, and the jobs that taught it."""
    learner = create(api, name="pupil")
    posted = [
        post_task(api, learner, parts[0]),
        post_task(api, learner, parts[1], strategy={"kind": "flashcards", "count": 50}, name="the rest"),
    ]
    jobs = [wait_for(api, job["id"]) for job in posted]
    assert [job["state"] for job in jobs] == ["succeeded"] * 2, [job["error"] for job in jobs]
    return {**learner, "jobs": jobs}


class TestTasks:
    def test_two_posted_at_once_run_one_after_the_other(self, taught):
        first, second = taught["jobs"]
        assert first["ended_at"] <= second["started_at"]
        assert [(job["result"]["base_version"], job["result"]["version"]) for job in (first, second)] == [
            (None, 1),
            (1, 2),
        ]

    def test_its_tasks_are_listed_by_their_learner(self, api, taught):
        found = api.get("/v1/jobs", params={"learner": taught["id"], "state": "succeeded"}).json()["items"]
        assert found
        assert {job["result"]["learner"] for job in found} == {taught["id"]}
        assert api.get("/v1/jobs", params={"learner": "learner_" + "0" * 32}).json()["items"] == []

    def test_the_learner_is_at_its_newest_version(self, api, taught):
        now = head(api, taught)
        assert (now["version"], now["tasks"], now["input"]) == (2, ["small digits", "the rest"], "8x8x1")
        memory = now["memory"]
        assert memory["capsules"] > 0
        assert (now["network_mb"], now["external_mb"]) == (memory["network"] / 1e6, memory["capsules"] / 1e6)
        assert not now["keeps_data"]

    def test_versions_say_what_they_came_from(self, api, taught, parts):
        items = api.get(f"/v1/learners/{taught['id']}/versions").json()["items"]
        assert [(item["number"], item["parent"], item["dataset"]) for item in items] == [
            (2, 1, parts[1]["id"]),
            (1, None, parts[0]["id"]),
        ]
        assert [len(item["capsules"]) for item in items] == [2, 1]
        assert items[0]["strategy"]["kind"] == "flashcards"
        assert items[0]["job"] == taught["jobs"][1]["id"]

    def test_versions_come_in_pages(self, api, taught):
        path = f"/v1/learners/{taught['id']}/versions"
        first = api.get(path, params={"limit": 1}).json()
        second = api.get(path, params={"limit": 1, "cursor": first["next_cursor"]}).json()
        assert [page["items"][0]["number"] for page in (first, second)] == [2, 1]
        assert second["next_cursor"] is None
        assert api.get(path, params={"cursor": "bm8"}).status_code == 422

    def test_weights_and_capsules_are_files(self, api, taught):
        version = api.get(f"/v1/learners/{taught['id']}/versions/2").json()
        weights = api.get(f"/v1/learners/{taught['id']}/versions/2/weights")
        assert weights.headers["etag"] == f'"{version["digest"]}"'
        assert len(weights.content) == version["size"]
        capsule = api.get(f"/v1/learners/{taught['id']}/versions/2/capsules/1")
        assert capsule.headers["etag"] == f'"{version["capsules"][0]}"'
        assert api.get(f"/v1/learners/{taught['id']}/versions/2/capsules/3").status_code == 404
        assert api.get(f"/v1/learners/{taught['id']}/versions/7/weights").status_code == 404

    def test_files_outlive_the_job_that_made_them(self, api, taught):
        kept = {name for item in api.get("/v1/storage").json()["items"] for name in item["kept_for"]}
        assert f"{taught['id']}/versions/2" in kept
        assert f"{taught['id']}/versions/2/capsules/1" in kept


class TestMatrix:
    def test_it_is_what_the_jobs_measured(self, api, taught):
        found = api.get(f"/v1/learners/{taught['id']}/matrix").json()
        first, second = (job["result"] for job in taught["jobs"])
        rows = [[measure["mae"] for measure in result["measures"]] for result in (first, second)]
        assert found["tasks"] == ["small digits", "the rest"]
        assert found["matrix"] == [[rows[0][0], None], rows[1]]
        assert found["bwt"] == pytest.approx(rows[0][0] - rows[1][0])
        assert found["fwt"] == pytest.approx(second["random_mae"] - second["before"]["mae"])
        assert found["average"] == pytest.approx(np.mean(rows[1]))

    @pytest.mark.parametrize("asked", [{"params": {"format": "csv"}}, {"headers": {"Accept": "text/csv"}}])
    def test_it_opens_in_a_spreadsheet(self, api, taught, asked):
        answer = api.get(f"/v1/learners/{taught['id']}/matrix", **asked)
        assert answer.headers["content-type"].startswith("text/csv")
        table = list(csv.reader(io.StringIO(answer.text)))
        assert table[0][:4] == ["version", "task", "small digits", "the rest"]
        assert table[1][3] == ""
        assert float(table[2][3]) == taught["jobs"][1]["result"]["measures"][1]["mae"]

    def test_the_spreadsheet_has_all_that_is_measured(self, api, taught):
        found = api.get(f"/v1/learners/{taught['id']}/matrix").json()
        text = api.get(f"/v1/learners/{taught['id']}/matrix", params={"format": "csv"}).text
        first, second = csv.DictReader(io.StringIO(text))
        for figure in ("estimated", "psnr", "ssim"):
            assert float(first[f"small digits, {figure}"]) == found[figure][0][0]
            assert first[f"the rest, {figure}"] == ""
            assert float(second[f"the rest, {figure}"]) == found[figure][1][1]
        assert float(second["before"]) == found["before"][1]
        assert float(second["random"]) == found["random"][1]
        for figure in ("average", "bwt", "fwt", "seconds", "network_mb", "external_mb"):
            assert (first[figure], float(second[figure])) == ("", found[figure])
        assert not any("id" in name or "ece" in name or "forgetting" in name for name in first)

    def test_before_the_first_task_it_is_empty(self, api):
        found = api.get(f"/v1/learners/{create(api)['id']}/matrix").json()
        assert (found["matrix"], found["average"], found["version"]) == ([], None, None)


def test_a_version_becomes_a_model(api, taught):
    answer = api.post(f"/v1/learners/{taught['id']}/versions/1/model")
    assert answer.status_code == 201
    model = answer.json()
    assert (model["origin"], model["input"]) == ("learn", "8x8x1")
    assert model["capsule"]["digest"] == api.get(f"/v1/learners/{taught['id']}/versions/1").json()["capsules"][0]
    assert api.get(answer.headers["location"]).json() == model
    two_tasks = api.post(f"/v1/learners/{taught['id']}/versions/2/model").json()
    assert two_tasks["capsule"] is None
    spec = {"kind": "capture", "model": model["id"]}
    assert api.post("/v1/jobs", json=spec, params={"validate_only": True}).status_code == 200


class TestFailures:
    def test_a_task_that_breaks_its_budget_leaves_the_learner_where_it_was(self, api, taught, digits):
        negatives = push_dataset(api, npz(x=255 - digits["x_train"][:150]))
        job = wait_for(api, post_task(api, taught, negatives, max_forgetting={"absolute": 1e-9})["id"])
        assert (job["state"], job["error"]["type"]) == ("failed", "forgot-too-much"), job["error"]
        assert head(api, taught)["version"] == 2
        assert len(api.get(f"/v1/learners/{taught['id']}/versions").json()["items"]) == 2

    def test_a_task_for_an_older_version_fails_in_words(self, api, taught, parts):
        job = wait_for(api, post_task(api, taught, parts[0], base_version=1)["id"])
        assert (job["state"], job["error"]["type"]) == ("failed", "learner-moved-on")
        assert "version 1, and the newest is 2" in job["error"]["detail"]


class TestRefused:
    @pytest.mark.parametrize(
        ("fields", "field"),
        [
            ({"dataset": "dataset_" + "0" * 32}, "body.dataset"),
            ({"test_dataset": "dataset_" + "0" * 32}, "body.test_dataset"),
            ({"base_version": 9}, "body.base_version"),
            ({"base_version": 2**64}, "body.base_version"),
            ({"strategy": {"kind": "cl_vae"}}, "body.strategy"),
        ],
    )
    def test_what_does_not_go_with_the_learner(self, api, taught, parts, fields, field):
        body = {**TASK, "dataset": parts[0]["id"], **fields}
        answer = api.post(f"/v1/learners/{taught['id']}/tasks", json=body)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["field"] == field

    def test_images_of_another_shape(self, api, taught):
        other = push_dataset(api, npz(x=np.zeros((4, 16, 16), np.uint8)))
        answer = api.post(f"/v1/learners/{taught['id']}/tasks", json={**TASK, "dataset": other["id"]})
        assert "the learner takes images of 8x8x1" in answer.json()["detail"]

    def test_a_test_dataset_of_another_shape(self, api, taught, parts):
        other = push_dataset(api, npz(x=np.zeros((4, 16, 16), np.uint8)))
        body = {**TASK, "dataset": parts[0]["id"], "test_dataset": other["id"]}
        answer = api.post(f"/v1/learners/{taught['id']}/tasks", json=body)
        assert "its images are 16x16x1" in answer.json()["detail"]

    def test_one_image(self, api):
        single = push_dataset(api, npz(x=np.zeros((1, 8, 8), np.uint8)))
        answer = api.post(f"/v1/learners/{create(api)['id']}/tasks", json={**TASK, "dataset": single["id"]})
        assert "at least 2" in answer.json()["detail"]

    def test_an_architecture_that_the_images_do_not_fit(self, api, parts):
        learner = create(api, architecture="blk_4_fil_4")
        answer = api.post(f"/v1/learners/{learner['id']}/tasks", json={**TASK, "dataset": parts[0]["id"]})
        assert answer.json()["errors"][0]["field"] == "body.architecture"

    def test_a_sigmoid_below_zero(self, api):
        body = {"architecture": {"blocks": 2, "filters": 4, "head": "sigmoid"}, "range": [-1, 1]}
        assert api.post("/v1/learners", json=body).status_code == 422

    def test_a_model_and_an_architecture(self, api, model):
        body = {"model": model["id"], "architecture": "blk_2_fil_4"}
        assert api.post("/v1/learners", json=body).status_code == 422

    def test_a_learner_that_is_not_there(self, api, parts):
        assert api.post(f"/v1/learners/{NOWHERE}/tasks", json={**TASK, "dataset": parts[0]["id"]}).status_code == 404
        spec = {"kind": "learn", "learner": NOWHERE, **TASK, "dataset": parts[0]["id"]}
        assert api.post("/v1/jobs", json=spec).json()["errors"][0]["field"] == "body.learner"

    def test_to_keep_images_with_a_key_that_keeps_none(self, admin, knock, digits):
        with knock(make_key(admin, tenant="careful", retain_data=False)) as careful:
            learner = create(careful)
            images = push_dataset(careful, npz(x=digits["x_train"][:20]))
            body = {**TASK, "dataset": images["id"], "strategy": {"kind": "coreset"}}
            answer = careful.post(f"/v1/learners/{learner['id']}/tasks", json=body)
            assert "coreset keeps images of earlier tasks, and this key keeps no data" in answer.json()["detail"]


def test_checking_queues_nothing(api, taught, parts):
    path = f"/v1/learners/{taught['id']}/tasks"
    body = {**TASK, "dataset": parts[0]["id"]}
    before = api.get("/v1/jobs").json()["items"][0]["id"]
    answer = api.post(path, json=body, params={"validate_only": True})
    assert (answer.status_code, answer.json()["spec"]["learner"]) == (200, taught["id"])
    assert api.get("/v1/jobs").json()["items"][0]["id"] == before


class TestFromAModel:
    def test_it_begins_with_what_the_model_knows(self, api):
        model = push_model(api)
        answer = api.post("/v1/learners", json={"model": model["id"], "scenario": "denoising", "noise": 0.2})
        learner = answer.json()
        assert (learner["version"], learner["tasks"], learner["input"]) == (0, ["net"], "16x16x1")
        assert (learner["noise"], learner["clip"], learner["model"]) == (0.2, True, model["id"])
        version = api.get(f"/v1/learners/{learner['id']}/versions/0").json()
        assert (version["digest"], version["parent"], version["capsules"]) == (model["digest"], None, [None])
        assert api.get(f"/v1/learners/{learner['id']}/matrix").json()["matrix"] == [[None]]

    def test_noise_that_is_not_cut_is_said_to_be_so(self, api):
        body = {"model": push_model(api)["id"], "scenario": "denoising", "noise": 0.3, "clip": False}
        learner = api.post("/v1/learners", json=body).json()
        assert (learner["noise"], learner["clip"]) == (0.3, False)
        assert api.get(f"/v1/learners/{learner['id']}").json()["clip"] is False

    def test_a_model_that_is_not_there(self, api):
        assert api.post("/v1/learners", json={"model": "model_" + "0" * 32}).status_code == 422

    def test_its_weights_outlive_the_model(self, api):
        model = push_model(api, name="to go")
        learner = create_from(api, model)
        assert api.delete(f"/v1/models/{model['id']}").status_code == 204
        assert api.get(f"/v1/learners/{learner['id']}/versions/0/weights").status_code == 200


def create_from(api, model: dict) -> dict:
    return api.post("/v1/learners", json={"model": model["id"]}).json()


def test_the_same_key_makes_one_learner(api):
    headers = {"Idempotency-Key": "one learner"}
    first = api.post("/v1/learners", json={"name": "once"}, headers={"Idempotency-Key": "one-learner"})
    again = api.post("/v1/learners", json={"name": "once"}, headers={"Idempotency-Key": "one-learner"})
    assert first.json() == again.json()
    assert again.headers["idempotency-replayed"] == "true"
    assert api.post("/v1/learners", json={}, headers=headers).status_code == 422


def test_the_same_key_posts_one_task(api, parts):
    learner = create(api)
    body = {**TASK, "dataset": parts[0]["id"]}
    answers = [
        api.post(f"/v1/learners/{learner['id']}/tasks", json=body, headers={"Idempotency-Key": "one-task"})
        for _ in range(2)
    ]
    assert answers[0].json()["id"] == answers[1].json()["id"]
    assert answers[0].headers["location"] == f"/v1/jobs/{answers[0].json()['id']}"
    assert api.delete(f"/v1/learners/{learner['id']}").status_code == 409
    assert api.post(f"/v1/learners/{learner['id']}/rollback", json={"version": 0}).status_code == 409
    wait_for(api, answers[0].json()["id"])
    assert api.delete(f"/v1/learners/{learner['id']}").status_code == 204
    assert api.get(f"/v1/learners/{learner['id']}").status_code == 404


class TestRollback:
    """Last, since it moves the shared learner."""

    def test_the_next_task_starts_from_there(self, api, taught, parts):
        path = f"/v1/learners/{taught['id']}"
        for nowhere in (9, 2**64, -1):
            assert api.post(f"{path}/rollback", json={"version": nowhere}).status_code == 422
        back = api.post(f"{path}/rollback", json={"version": 1})
        assert (back.status_code, back.json()["version"], back.json()["tasks"]) == (200, 1, ["small digits"])
        job = wait_for(api, post_task(api, taught, parts[0], base_version=1)["id"])
        assert (job["result"]["base_version"], job["result"]["version"]) == (1, 3)
        versions = api.get(f"{path}/versions").json()["items"]
        assert [(each["number"], each["parent"], each["repeated"]) for each in versions] == [
            (3, 1, True),
            (2, 1, False),
            (1, None, False),
        ]
        assert api.get(f"{path}/matrix").json()["versions"] == [1, 3]

    def test_a_dataset_that_was_learnt_may_go(self, api, taught, parts):
        assert api.delete(f"/v1/datasets/{parts[0]['id']}").status_code == 204
        job = wait_for(api, post_task(api, taught, parts[1])["id"])
        assert job["state"] == "succeeded"
        assert [measure["mae"] is None for measure in job["result"]["measures"]] == [True, True, False]
