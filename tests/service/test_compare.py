"""One small comparison, from the request to the table; then what is refused."""

import csv
import io

import pytest
from making import npz, push_dataset, submit, wait_for

BODY = {
    "kind": "compare",
    "architecture": "blk_1_fil_8",
    "epochs": 5,
    "batch_size": 16,
    "learning_rate": 0.01,
    "strategies": [{"kind": "naive"}, {"kind": "flashcards", "count": 50}],
}
THREE = [{"kind": "naive"}, {"kind": "joint"}, {"kind": "lwf"}]


@pytest.fixture(scope="module")
def parts(api, digits) -> list[str]:
    small, test = digits["y_train"][:200] < 5, digits["y_test"][:40] < 5
    return [
        push_dataset(api, npz(x_train=digits["x_train"][:200][rows], x_test=digits["x_test"][:40][held]), name)["id"]
        for name, rows, held in (("small digits", small, test), ("large digits", ~small, ~test))
    ]


@pytest.fixture(scope="module")
def compared(api, parts) -> dict:
    job = submit(api, **BODY, datasets=parts, labels={"for": "test"})
    assert job["state"] == "waiting"
    found = wait_for(api, job["id"])
    assert found["state"] == "succeeded", found["error"]
    return found


def test_the_table_has_a_row_a_strategy(compared):
    table = compared["result"]["table"]
    assert [row["label"] for row in table] == ["naive", "flashcards count=50"]
    assert compared["result"]["tasks"] == ["small digits", "large digits"]
    for row in table:
        assert 0 < row["average"]["mean"] < 1
        assert row["average"]["deviation"] is None
        assert (row["seeds"], row["failed"], row["keeps_data"]) == ([0], [], False)
    assert table[1]["memory"] > 0, "its capsules"


def test_its_numbers_are_those_of_its_learners(api, compared):
    learners = api.get("/v1/learners", params={"compare": compared["id"]}).json()["items"]
    assert [learner["compare"] for learner in learners] == [compared["id"]] * 2
    averages = [api.get(f"/v1/learners/{learner['id']}/matrix").json()["average"] for learner in learners]
    assert [row["average"]["mean"] for row in compared["result"]["table"]] == averages[::-1]


def test_its_learners_are_in_no_other_list_and_nobody_elses(api, compared, parts):
    mine = api.get("/v1/learners", params={"compare": compared["id"]}).json()["items"][0]["id"]
    assert mine not in [learner["id"] for learner in api.get("/v1/learners?limit=200").json()["items"]]
    assert api.delete(f"/v1/learners/{mine}").status_code == 409
    assert api.post(f"/v1/learners/{mine}/rollback", json={"version": 1}).status_code == 409
    assert api.post(f"/v1/learners/{mine}/tasks", json={"dataset": parts[0]}).status_code == 422


def test_its_children_are_jobs(api, compared):
    children = api.get("/v1/jobs", params={"parent": compared["id"]}).json()["items"]
    listed = {job["id"] for job in api.get("/v1/jobs", params={"parent": "none", "limit": 200}).json()["items"]}
    assert compared["id"] in listed
    assert not listed & {child["id"] for child in children}
    assert [child["id"] for child in children][::-1] == compared["result"]["children"]
    assert {(child["kind"], child["parent"], child["state"]) for child in children} == {
        ("learn", compared["id"], "succeeded")
    }
    assert api.delete(f"/v1/jobs/{children[0]['id']}").status_code == 409


def test_its_events_say_how_far_it_was(api, compared):
    events = api.get(f"/v1/jobs/{compared['id']}/events", params={"follow": False}).json()
    states = [event["data"]["state"] for event in events if event["kind"] == "state"]
    assert states == ["waiting", "queued", "running", "succeeded"]
    told = [event["data"]["fraction"] for event in events if event["kind"] == "progress"]
    assert told[0] < 1
    assert told == sorted(told)
    assert told[-1] == 1


def test_table_and_pictures_are_files(api, compared):
    path = f"/v1/jobs/{compared['id']}/artifacts"
    rows = list(csv.DictReader(io.StringIO(api.get(f"{path}/table.csv").text)))
    assert float(rows[0]["average_mean"]) == compared["result"]["table"][0]["average"]["mean"]
    for name in ("comparison.png", "matrices.png"):
        assert api.get(f"{path}/{name}").headers["content-type"] == "image/png"


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"datasets": ["dataset_" + "0" * 32] * 2}, "datasets", "there is no dataset"),
        ({"seeds": [1, 2, 1]}, "compare", "1 is there twice in seeds"),
        ({"strategies": [{"kind": "naive"}] * 2}, "compare", "naive is there twice in strategies"),
        ({"seeds": list(range(100)), "strategies": THREE}, "compare", "600 trainings"),
        ({"architecture": "blk_4_fil_8"}, "architecture", "8x8"),
        ({"seeds": []}, "seeds", "at least 1"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_words(api, parts, changes, field, words):
    answer = api.post("/v1/jobs", json={**BODY, "datasets": parts, **changes}, params={"validate_only": True})
    assert answer.status_code == 422
    (problem,) = answer.json()["errors"]
    assert field in problem["field"]
    assert words in problem["message"]


def test_cancel_stops_it_and_delete_takes_all_of_it(api, parts):
    job = submit(api, **{**BODY, "epochs": 5000, "patience": 5000}, datasets=parts)
    assert api.delete(f"/v1/jobs/{job['id']}").status_code == 409
    assert api.post(f"/v1/jobs/{job['id']}/cancel").json()["state"] == "cancelled"
    children = [child["id"] for child in api.get("/v1/jobs", params={"parent": job["id"]}).json()["items"]]
    assert [wait_for(api, child)["state"] for child in children] == ["cancelled"] * 4
    assert api.delete(f"/v1/jobs/{job['id']}").status_code == 204
    assert api.get("/v1/learners", params={"compare": job["id"]}).json()["items"] == []
    assert api.get(f"/v1/jobs/{children[0]}").status_code == 404
