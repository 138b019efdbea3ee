"""A learner from Python and from the command line: two tasks, taught once for all tests here."""

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from flashcards.cli import app
from flashcards.errors import Invalid, NotFound


@pytest.fixture(scope="module")
def run(service):
    def run(*words, exit_code: int = 0):
        done = CliRunner().invoke(app, [str(word) for word in words], env={"FLASHCARDS_URL": service.url})
        assert done.exit_code == exit_code, done.output
        assert "Traceback" not in done.output
        return done

    return run


@pytest.fixture(scope="module")
def halves(client, digits) -> list[str]:
    return [
        client.datasets.push(x_train=digits["x_train"][rows], x_test=digits["x_test"][:50], name=name).id
        for name, rows in (("first", slice(0, 200)), ("second", slice(200, 400)))
    ]


@pytest.fixture(scope="module")
def pupil(client, run, halves) -> str:
    """Its first task is posted from Python, its second from the command line."""
    learner = client.learners.create(name="pupil", architecture="blk_1_fil_8")
    job = client.learners.learn(
        learner.id, dataset=halves[0], epochs=4, learning_rate=1e-2, batch_size=16, strategy={"kind": "naive"}
    )
    assert client.jobs.wait(job.id).state == "succeeded"
    options = ("--epochs", 4, "--learning-rate", 0.01, "--batch-size", 16, "--name", "the rest")
    shown = run("learn", learner.id, halves[1], *options, "--strategy", '{"kind":"flashcards","count":50}').stdout
    assert "now at version 2" in shown
    assert "MAE on the rest" in shown
    return learner.id


def test_it_knows_both_tasks(client, pupil):
    learner = client.learners.get(pupil)
    assert (learner.version, learner.tasks) == (2, ["first", "the rest"])
    assert pupil in [each.id for each in client.learners.each()]


def test_versions_and_their_files(client, pupil, tmp_path):
    assert [version.number for version in client.learners.each_version(pupil)] == [2, 1]
    newest = client.learners.version(pupil, 2)
    assert newest.strategy.kind == "flashcards"
    assert client.learners.weights(pupil, 2, tmp_path).stat().st_size == newest.size
    assert client.learners.capsule(pupil, 2, 1, tmp_path).exists()
    with pytest.raises(NotFound):
        client.learners.version(pupil, 9)


def test_the_matrix(client, run, pupil):
    matrix = client.learners.matrix(pupil)
    assert matrix.matrix[0][1] is None
    assert matrix.average == pytest.approx(np.mean(matrix.matrix[1]))
    shown = run("learners", "matrix", pupil).stdout
    assert f"{matrix.bwt:.4f}" in shown
    table = list(csv.reader(run("learners", "matrix", pupil, "--csv").stdout.splitlines()))
    assert [float(cell) for cell in table[2][2:4]] == matrix.matrix[1]


def test_a_version_as_a_model(client, run, pupil):
    model = client.models.get(run("learners", "model", pupil, 2).stdout.strip())
    assert (model.origin, model.digest) == ("learn", client.learners.version(pupil, 2).digest)


def test_back_and_forth(client, run, pupil):
    assert json.loads(run("learners", "rollback", pupil, 1, "--json").stdout)["version"] == 1
    assert client.learners.roll_back(pupil, 2).version == 2
    with pytest.raises(Invalid, match="no version 9"):
        client.learners.roll_back(pupil, 9)


def test_lists(run, pupil):
    assert "pupil" in run("learners", "ls").stdout
    assert "the rest" in run("learners", "show", pupil).stdout
    lines = run("learners", "versions", pupil).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["version", "2", "1"]


def test_from_a_model_and_away(run, trained):
    made = json.loads(run("learners", "create", trained.result.model, "--scenario", "denoising", "--json").stdout)
    assert (made["version"], made["noise"], made["tasks"]) == (0, 0.1, ["small"])
    assert made["id"] in run("learners", "rm", made["id"]).stdout
    assert "there is no learner" in run("learners", "show", made["id"], exit_code=1).stderr


def test_a_strategy_that_is_neither_name_nor_json(run, pupil, halves):
    run("learn", pupil, halves[0], "--strategy", "{naive", exit_code=2)
    assert "strategy" in run("learn", pupil, halves[0], "--strategy", "magic", exit_code=1).stderr
