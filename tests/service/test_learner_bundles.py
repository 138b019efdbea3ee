"""A learner that moves: it stands elsewhere where it stood at home, and goes on from there."""

import json

import pytest
from bundling import bundle_of, changed, opened, refusal, take
from making import npz, push_dataset, push_model, wait_for

LESSON = {"epochs": 5, "batch_size": 16, "learning_rate": 0.01}


def learn(api, learner_id: str, dataset: dict, **fields) -> dict:
    body = {**LESSON, "dataset": dataset["id"], "strategy": {"kind": "flashcards", "count": 50}, **fields}
    answer = api.post(f"/v1/learners/{learner_id}/tasks", json=body)
    assert answer.status_code == 202, answer.text
    job = wait_for(api, answer.json()["id"])
    assert job["state"] == "succeeded", job
    return job


@pytest.fixture(scope="module")
def parts(digits) -> list[bytes]:
    rows = [digits["y_train"][:300] % 3 == rest for rest in range(3)]
    held = [digits["y_test"][:60] % 3 == rest for rest in range(3)]
    arrays = [
        {"x_train": digits["x_train"][:300][a], "x_test": digits["x_test"][:60][b]}
        for a, b in zip(rows, held, strict=True)
    ]
    return [npz(**each) for each in arrays]


@pytest.fixture(scope="module")
def pupil(api, parts) -> dict:
    learner = api.post("/v1/learners", json={"name": "pupil", "architecture": "blk_1_fil_8"}).json()
    for place, part in enumerate(parts[:2]):
        learn(api, learner["id"], push_dataset(api, part, f"part {place}"))
    return learner


@pytest.fixture(scope="module")
def moved(api, elsewhere, pupil) -> dict:
    return take(elsewhere, bundle_of(api, f"learners/{pupil['id']}/versions/2"))["learner"]


def test_it_stands_where_it_stood(api, elsewhere, pupil, moved):
    assert (moved["name"], moved["version"], moved["tasks"]) == ("pupil", 2, ["part 0", "part 1"])
    for field in ("matrix", "estimated", "average", "bwt", "fwt", "tasks"):
        home, here = (
            client.get(f"/v1/learners/{id}/matrix").json()[field]
            for client, id in ((api, pupil["id"]), (elsewhere, moved["id"]))
        )
        assert home == here
    for number in (1, 2):
        home, here = (
            client.get(f"/v1/learners/{id}/versions/{number}").json()
            for client, id in ((api, pupil["id"]), (elsewhere, moved["id"]))
        )
        assert (home["digest"], home["capsules"]) == (here["digest"], here["capsules"])
        assert (here["job"], here["dataset"]) == (None, None)


def test_it_says_where_it_learnt(api, elsewhere, pupil, moved):
    lineage = elsewhere.get(f"/v1/learners/{moved['id']}/lineage").json()
    story = lineage["imported"]
    assert (lineage["made_from"], story["id"]) == ([], pupil["id"])
    assert {each["name"] for each in story["lineage"]["datasets"]} == {"part 0", "part 1"}
    assert [each["kind"] for each in story["lineage"]["jobs"]] == ["learn", "learn"]


@pytest.mark.slow
def test_it_goes_on_learning_as_it_would_have_at_home(api, elsewhere, pupil, moved, parts):
    results = [
        learn(client, id, push_dataset(client, parts[2], "part 2"))["result"]
        for client, id in ((api, pupil["id"]), (elsewhere, moved["id"]))
    ]
    assert [result["version"] for result in results] == [3, 3]
    assert results[0]["validation_mae"] == results[1]["validation_mae"]
    for field in ("before", "random_mae", "recipes"):
        assert results[0][field] == results[1][field]
    assert results[0]["measures"][-1] == results[1]["measures"][-1]
    estimates = [[measure["estimated_mae"] for measure in result["measures"]] for result in results]
    assert estimates[0] == estimates[1]
    home, here = (
        client.get(f"/v1/learners/{id}/versions/3").json()
        for client, id in ((api, pupil["id"]), (elsewhere, moved["id"]))
    )
    assert (home["digest"], home["capsules"]) == (here["digest"], here["capsules"])


def test_it_can_be_rolled_back_and_deleted(api, elsewhere, pupil):
    learner = take(elsewhere, bundle_of(api, f"learners/{pupil['id']}/versions/2"))["learner"]
    answer = elsewhere.post(f"/v1/learners/{learner['id']}/rollback", json={"version": 1})
    assert answer.json()["tasks"] == ["part 0"]
    assert elsewhere.delete(f"/v1/learners/{learner['id']}").status_code == 204


def test_versions_that_do_not_follow_are_refused(api, pupil):
    content = bundle_of(api, f"learners/{pupil['id']}/versions/2")
    learner = json.loads(opened(content)["bundle.json"])["learner"]
    learner["versions"][1]["parent"] = None
    assert "does not follow" in refusal(api, changed(content, learner=learner))["detail"]
    learner["versions"][1]["parent"] = 1
    learner["scenario"] = "task_incremental"
    assert "do not go together" in refusal(api, changed(content, learner=learner))["detail"]


def test_a_learner_of_classes_moves_with_both_of_its_networks(api, elsewhere):
    classifier, autoencoder = push_model(api, "tasknet_10_width_2_hidden_8_latent_4"), push_model(api)
    body = {"scenario": "task_incremental", "classifier": classifier["id"], "autoencoder": autoencoder["id"]}
    learner = api.post("/v1/learners", json=body).json()
    moved = take(elsewhere, bundle_of(api, f"learners/{learner['id']}/versions/0"), name="moved")["learner"]
    same = ("scenario", "architecture", "autoencoder_architecture", "input", "range", "version", "tasks")
    assert {field: moved[field] for field in same} == {field: learner[field] for field in same}
    for network, model in (("learner", classifier), ("autoencoder", autoencoder)):
        answer = elsewhere.get(f"/v1/learners/{moved['id']}/versions/0/weights", params={"network": network})
        assert answer.headers["ETag"] == f'"{model["digest"]}"'
    story = elsewhere.get(f"/v1/learners/{moved['id']}/lineage").json()["imported"]
    assert {each["id"] for each in story["lineage"]["models"]} == {classifier["id"], autoencoder["id"]}
