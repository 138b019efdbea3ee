"""Learners of classes over HTTP: tasks with a head each, sessions with one for all, and what is refused on the way."""

import csv
import hashlib
import io

import numpy as np
import pytest
from making import finished, npz, push_dataset, push_model, wait_for

TINY = "tasknet_width_4_hidden_32_latent_8"
LESSON = {"epochs": 8, "autoencoder_epochs": 16, "batch_size": 16, "learning_rate": 0.004}
CARDS = {"kind": "flashcards", "count": 64, "by_class": True}


def some(digits, classes, most=150, labels=lambda y: y) -> bytes:
    arrays = {}
    for split in ("train", "test"):
        rows = np.flatnonzero(np.isin(digits[f"y_{split}"], classes))[:most]
        arrays |= {f"x_{split}": digits[f"x_{split}"][rows], f"y_{split}": labels(digits[f"y_{split}"][rows])}
    return npz(**arrays)


@pytest.fixture(scope="module")
def parts(api, digits) -> list[dict]:
    """Digits from 0 on, and those from 5 on, numbered through."""
    return [
        push_dataset(api, some(digits, classes), name) for classes, name in (((0, 1, 2), "low"), ((5, 6, 7), "high"))
    ]


@pytest.fixture(scope="module")
def whole(api, digits) -> dict:
    return push_dataset(api, some(digits, range(10)), "all digits")


def create(api, **fields) -> dict:
    answer = api.post("/v1/learners", json={"scenario": "task_incremental", "architecture": TINY} | fields)
    assert answer.status_code == 201, answer.text
    return answer.json()


def post_task(api, learner: dict, dataset: dict, **fields) -> dict:
    body = {**LESSON, "strategy": CARDS, "dataset": dataset["id"], **fields}
    return api.post(f"/v1/learners/{learner['id']}/tasks", json=body)


def learn(api, learner: dict, dataset: dict, **fields) -> dict:
    answer = post_task(api, learner, dataset, **fields)
    assert answer.status_code == 202, answer.text
    return wait_for(api, answer.json()["id"])


def refused(api, learner: dict, dataset: dict, **fields) -> tuple[str, str]:
    """The field, and why."""
    answer = post_task(api, learner, dataset, **fields)
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["errors"]
    return error["field"].removeprefix("body."), error["message"]


@pytest.fixture(scope="module")
def taught(api, parts) -> dict:
    learner = create(api, name="pupil")
    jobs = [learn(api, learner, part) for part in parts]
    assert [job["state"] for job in jobs] == ["succeeded"] * 2, [job["error"] for job in jobs]
    return {**learner, "jobs": jobs}


class TestTasks:
    def test_each_has_a_head_of_its_own(self, api, taught):
        second = taught["jobs"][1]["result"]
        assert (second["architecture"]["heads"], second["classes"], second["task"]) == ([3, 3], 3, 2)
        assert second["autoencoder"]["shares_encoder"]
        assert [(recipe["count"], recipe["by_class"]) for recipe in second["recipes"]] == [(64, True)]
        versions = api.get(f"/v1/learners/{taught['id']}/versions").json()["items"]
        assert [version["architecture"]["heads"] for version in versions] == [[3, 3], [3]]
        assert len({version["autoencoder_digest"] for version in versions}) == 2
        assert all(all(version["capsules"]) for version in versions)

    def test_the_matrix_has_accuracies_with_and_without_task_id(self, api, taught):
        matrix = api.get(f"/v1/learners/{taught['id']}/matrix").json()
        assert matrix["metric"] == "accuracy"
        assert matrix["matrix"][0][1] is None
        assert matrix["matrix"][0][0] > 0.5
        last, without = matrix["matrix"][1], matrix["matrix_without_task_id"][1]
        assert matrix["average"] == pytest.approx(np.mean(last))
        assert matrix["average_without_task_id"] == pytest.approx(np.mean(without))
        assert all(told >= untold for told, untold in zip(last, without, strict=True))
        assert matrix["bwt"] == pytest.approx(last[0] - matrix["matrix"][0][0])
        assert matrix["forgetting"] == pytest.approx(-matrix["bwt"])
        assert matrix["fwt"] is None
        measures = taught["jobs"][1]["result"]["measures"]
        assert [each["label"] for each in measures[1]["per_class"]] == [5, 6, 7]

    def test_and_a_table_of_them(self, api, taught):
        text = api.get(f"/v1/learners/{taught['id']}/matrix", params={"format": "csv"}).text
        rows = list(csv.DictReader(io.StringIO(text)))
        assert [row["task"] for row in rows] == ["low", "high"]
        assert rows[0]["high, without task id"] == ""
        assert float(rows[1]["low, without task id"]) <= float(rows[1]["low"])
        matrix = api.get(f"/v1/learners/{taught['id']}/matrix").json()
        assert [float(row["low, ece"]) for row in rows] == [row[0] for row in matrix["ece"]]
        assert (float(rows[1]["bwt"]), float(rows[1]["forgetting"])) == (matrix["bwt"], matrix["forgetting"])
        assert (rows[0]["average"], rows[1]["fwt"]) == ("", "")

    def test_pictures_show_both(self, api, taught):
        job = taught["jobs"][1]
        names = {artifact["name"] for artifact in job["artifacts"]}
        assert {"model.safetensors", "autoencoder.safetensors", "capsule-2.safetensors", "cards.png"} <= names
        told = api.get(f"/v1/jobs/{job['id']}/artifacts/confusion.json").json()
        assert np.array(told["confusion"]).shape == (6, 6)
        assert told["confusion"] == job["result"]["confusion"]
        for name in ("confusion.csv", "measures.csv", "per_class.csv"):
            answer = api.get(f"/v1/jobs/{job['id']}/artifacts/{name}")
            assert answer.headers["content-type"].startswith("text/csv")
            assert len(answer.text.splitlines()) == {"confusion.csv": 7, "measures.csv": 3, "per_class.csv": 7}[name]
        assert "matrix_without_task_id" in api.get(f"/v1/jobs/{job['id']}/artifacts/matrix.json").json()

    def test_both_networks_of_a_version_can_be_had(self, api, taught, whole):
        path = f"/v1/learners/{taught['id']}/versions/2"
        version = api.get(path).json()
        for network, digest in (("learner", version["digest"]), ("autoencoder", version["autoencoder_digest"])):
            content = api.get(f"{path}/weights", params={"network": network}).content
            assert hashlib.sha256(content).hexdigest() == digest
        classifier, autoencoder = (
            api.post(f"{path}/model", params={"network": network}).json() for network in ("learner", "autoencoder")
        )
        assert (classifier["task"], autoencoder["task"]) == ("classify", "reconstruct")
        cards = finished(api, kind="capture", model=autoencoder["id"], count=8)
        assert cards["state"] == "succeeded"

    def test_without_data_the_accuracy_is_estimated(self, taught):
        first = taught["jobs"][1]["result"]["measures"][0]
        assert 0 <= first["estimated_accuracy"] <= 1


class TestPairs:
    @pytest.mark.slow
    def test_a_classifier_and_its_autoencoder_learn_on_together(self, api, parts):
        pair = {
            "classifier": push_model(api, "tasknet_3_width_4_hidden_32_latent_8", "8x8x1")["id"],
            "autoencoder": push_model(api, "tasknet_ae_width_4_hidden_32_latent_8", "8x8x1")["id"],
        }
        learner = create(api, architecture=None, **pair)
        assert (learner["version"], learner["model"], learner["autoencoder"]) == (0, *pair.values())
        job = learn(api, learner, parts[1], strategy={"kind": "flashcards", "count": 30, "source": "latent"})
        assert job["state"] == "succeeded", job["error"]
        assert job["result"]["architecture"]["heads"] == [3, 3]
        assert job["result"]["recipes"][0]["source"] == "latent"
        assert api.get(f"/v1/learners/{learner['id']}/matrix").json()["matrix"][1][0] is None

    @pytest.mark.parametrize(
        ("fields", "words"),
        [
            ({"architecture": "blk_1_fil_4"}, "is an autoencoder, and a learner of classes is a classifier"),
            ({"autoencoder_architecture": "tasknet_3"}, "is a classifier, and this takes an autoencoder"),
            ({"architecture": None, "classifier": "model_" + "0" * 32}, "together"),
            ({"architecture": None, "model": "model_" + "0" * 32}, "not with `model`"),
            ({"scenario": "denoising", "autoencoder_architecture": "blk_1_fil_4"}, "is one autoencoder"),
        ],
    )
    def test_other_pairs_are_refused(self, api, fields, words):
        answer = api.post("/v1/learners", json={"scenario": "task_incremental", "architecture": TINY} | fields)
        assert answer.status_code == 422
        assert words in answer.text

    def test_networks_for_other_images_are_refused(self, api):
        pair = {
            "classifier": push_model(api, "tasknet_3_width_4_hidden_32_latent_8", "8x8x1")["id"],
            "autoencoder": push_model(api, "blk_1_fil_4", "16x16x1")["id"],
        }
        answer = api.post("/v1/learners", json={"scenario": "task_incremental", **pair})
        assert answer.status_code == 422
        assert "it takes images of 16x16x1 from 0 to 1, and the classifier 8x8x1" in answer.text


class TestRefused:
    def push(self, api, digits, classes=(3, 4), name="x", **arrays) -> dict:
        return push_dataset(api, some(digits, classes) if not arrays else npz(**arrays), name)

    def test_images_without_labels(self, api, digits, taught):
        bare = push_dataset(api, npz(x_train=digits["x_train"][:50]), "bare")
        assert refused(api, taught, bare) == (
            "dataset",
            "a learner of classes needs labels, and these images have none: upload y with x",
        )

    def test_labels_of_test_beyond_those_of_train(self, api, digits, taught):
        arrays = {"x_train": digits["x_train"][:50], "y_train": np.arange(50) % 2}
        odd = push_dataset(api, npz(**arrays, x_test=digits["x_test"][:9], y_test=np.full(9, 7)), "odd")
        assert refused(api, taught, odd) == ("dataset", "the labels of test go from 7 to 7, and the task's are 0 to 1")

    def test_negative_labels(self, api, digits, taught):
        below = push_dataset(api, npz(x_train=digits["x_train"][:50], y_train=np.arange(50) % 3 - 1), "below")
        assert "number them from 0" in refused(api, taught, below)[1]

    def test_one_class(self, api, digits, taught):
        one = push_dataset(api, npz(x_train=digits["x_train"][:50], y_train=np.zeros(50, int)), "one")
        assert "nothing to tell apart" in refused(api, taught, one)[1]

    def test_a_class_with_one_image_fails_and_leaves_the_learner(self, api, digits, taught):
        labels = np.arange(50) % 2
        labels[7] = 2
        rare = push_dataset(api, npz(x_train=digits["x_train"][:50], y_train=labels), "rare")
        before = api.get(f"/v1/learners/{taught['id']}").json()["version"]
        job = learn(api, taught, rare)
        assert (job["state"], job["error"]["type"]) == ("failed", "dataset-unfit")
        assert "class 2 has one image" in job["error"]["detail"]
        assert api.get(f"/v1/learners/{taught['id']}").json()["version"] == before

    def test_more_classes_than_the_head_has(self, api, whole):
        learner = create(api, architecture="tasknet_4_width_4_hidden_32_latent_8")
        assert refused(api, learner, whole) == (
            "dataset",
            "its labels 0 to 9 are 10 classes, and head 1 of tasknet_4_width_4_hidden_32_latent_8 tells 4 apart",
        )

    def test_the_same_images_again(self, api, taught, parts):
        assert refused(api, taught, parts[0]) == (
            "dataset",
            "task 1 was learnt from the same images: its classes have a head already",
        )

    def test_classes_that_overlap_by_number(self, api, digits, taught):
        overlapping = self.push(api, digits, classes=(6, 7, 8))
        assert "its labels 6 to 8 overlap those of task 2, 5 to 7" in refused(api, taught, overlapping)[1]

    def test_another_number_of_channels(self, api, taught):
        coloured = {"x_train": np.zeros((20, 8, 8, 3), np.uint8), "y_train": np.arange(20) % 2}
        words = refused(api, taught, push_dataset(api, npz(**coloured), "coloured"))[1]
        assert words == "the learner takes images of 8x8x1, and the images of this dataset are 8x8x3"

    def test_strategies_of_the_other_kind_of_learner(self, api, taught, parts):
        assert refused(api, taught, parts[0], strategy={"kind": "cl_vae"})[0] == "strategy"
        plain = api.post("/v1/learners", json={"architecture": "blk_1_fil_4"}).json()
        for kind in ("imm", "eeil", "agem"):
            field, words = refused(api, plain, parts[0], strategy={"kind": kind})
            assert (field, "is for learners of classes" in words) == ("strategy", True)

    def test_light_where_there_are_no_sessions(self, api, taught, parts):
        assert refused(api, taught, parts[0], jitter={"brightness": 0.1})[0] == "jitter"

    def test_a_network_without_classes_is_no_model(self, api, whole):
        answer = api.post("/v1/jobs", json={"kind": "train", "dataset": whole["id"], "architecture": "tasknet"})
        assert answer.status_code == 422
        assert "tasknet_10, for one, tells ten apart" in answer.text


class TestSessions:
    def test_one_head_serves_them_all(self, api, whole):
        learner = create(api, scenario="new_instance", autoencoder_architecture="blk_1_fil_4")
        jobs = [
            learn(api, learner, whole, name=f"session {number}", jitter={"brightness": light})
            for number, light in enumerate((0.0, -0.2), start=1)
        ]
        assert [job["state"] for job in jobs] == ["succeeded"] * 2, [job["error"] for job in jobs]
        assert [job["result"]["architecture"]["heads"] for job in jobs] == [[10], [10]]
        assert not jobs[1]["result"]["autoencoder"]["shares_encoder"]
        matrix = api.get(f"/v1/learners/{learner['id']}/matrix").json()
        assert (matrix["matrix_without_task_id"], matrix["average_without_task_id"]) == (None, None)
        assert matrix["fwt"] is not None
        assert matrix["matrix"][1][0] == matrix["matrix"][1][1]  # the test images stay as they are

    def test_a_session_with_other_classes_is_refused(self, api, digits, parts):
        learner = create(api, scenario="new_instance", architecture="tasknet_4_width_4_hidden_32_latent_8")
        assert "its labels go from 5 to 7, and the learner's classes are 0 to 3" in refused(api, learner, parts[1])[1]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_strategy_of_the_paper_is_named_in_one_comparison(api, parts):
    kinds = ["naive", "joint", "flashcards", "coreset", "ewc", "si", "lwf", "vae_replay", "imm", "eeil", "agem"]
    strategies = [{"kind": kind} for kind in kinds]
    strategies += [{"kind": "imm", "merge": "mean"}, {"kind": "coreset", "size": 50}]
    for strategy in strategies:
        strategy |= {"count": 64} if strategy["kind"] in ("flashcards", "vae_replay") else {}
    body = {"kind": "compare", "scenario": "task_incremental", "architecture": TINY, "strategies": strategies}
    job = api.post("/v1/jobs", json={**body, **LESSON, "datasets": [part["id"] for part in parts]}).json()
    done = wait_for(api, job["id"], seconds=800)
    assert done["state"] == "succeeded", done["error"]
    table = done["result"]["table"]
    assert done["result"]["metric"] == "accuracy"
    assert [row["kind"] for row in table] == [*kinds, "imm", "coreset"]
    assert all(row["failed"] == [] for row in table)
    assert all(0 <= row["average_without_task_id"]["mean"] <= row["average"]["mean"] <= 1 for row in table)
