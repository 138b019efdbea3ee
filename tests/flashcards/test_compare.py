"""A comparison from Python and from the command line. What it comes to is tested at the door."""

import json

import pytest
from typer.testing import CliRunner

from flashcards.cli import app
from flashcards.cli.watch import result_facts
from flashcards.contract.results import CompareResult, FailedUnit, Spread, StrategyRow
from flashcards.errors import Invalid


@pytest.fixture
def run(service):
    def run(*words, exit_code: int = 0):
        done = CliRunner().invoke(app, [str(word) for word in words], env={"FLASHCARDS_URL": service.url})
        assert done.exit_code == exit_code, done.output
        return done

    return run


@pytest.fixture
def end(client):
    """Stopped and taken away, with all that belongs to it."""

    def end(id: str) -> None:
        client.jobs.cancel(id)
        for child in client.jobs.each(parent=id):
            client.jobs.wait(child.id)
        client.jobs.delete(id)

    return end


def test_the_command_line_says_it_as_the_contract_does(client, run, busy, digits_id, end):
    few = '{"kind":"flashcards","count":50}'
    data = ("--data", digits_id, "--data", digits_id)
    asked = (
        "--strategy",
        "naive",
        "--strategy",
        few,
        "--seeds",
        "3,4",
        "--architecture",
        "blk_1_fil_8",
        "--noise",
        0.2,
    )
    id = run("compare", *data, *asked, "--scenario", "denoising", "--epochs", 7, "--detach").stdout.strip()
    job = client.jobs.get(id)
    assert (job.kind, job.state, job.queue_position) == ("compare", "waiting", None)
    assert [(each.kind, getattr(each, "count", None)) for each in job.spec.strategies] == [
        ("naive", None),
        ("flashcards", 50),
    ]
    assert (job.spec.seeds, job.spec.epochs, job.spec.scenario, job.spec.noise) == ([3, 4], 7, "denoising", 0.2)
    assert len(json.loads(run("jobs", "ls", "--parent", id, "--json").stdout)) == 8
    assert len(json.loads(run("learners", "ls", "--compare", id, "--json").stdout)) == 4
    assert "progress" in run("jobs", "show", id).stdout
    end(id)


def test_python_does_too(client, busy, digits_id, end):
    job = client.compare(datasets=[digits_id] * 2, strategies=[{"kind": "naive"}], architecture="blk_1_fil_8")
    (learner,) = client.learners.of_compare(job.id)
    assert (learner.compare, learner.name) == (job.id, "naive, seed 0")
    end(job.id)
    assert list(client.learners.of_compare(job.id)) == []


def test_one_dataset_is_no_sequence(client, digits_id):
    with pytest.raises(Invalid, match="at least 2"):
        client.compare(datasets=[digits_id], strategies=[{"kind": "naive"}])


def test_a_table_in_words(client, busy, digits_id, end):
    job = client.compare(datasets=[digits_id] * 2, strategies=[{"kind": "naive"}], architecture="blk_1_fil_8")
    shared = {"strategy": {"kind": "naive"}, "kind": "naive", "architecture": "blk_1_fil_8"}
    done = StrategyRow(
        **shared, label="naive", seeds=[0, 1], average=Spread(mean=0.25, deviation=0.01), memory=2000, seconds=9
    )
    failed = StrategyRow(**shared, label="other", seeds=[], failed=[FailedUnit(seed=1, reason="no memory")])
    result = CompareResult(tasks=["a", "b"], table=[done, failed], notes=["a note"])
    facts = dict(result_facts(job.model_copy(update={"result": result})))
    assert facts["naive"] == "AvgMAE 0.2500 ± 0.0100   BWT -   keeps 2.0 kB beside the network   9 s"
    assert (facts["other"], facts["failed: other"], facts["note"]) == ("failed", "no memory", "a note")
    end(job.id)
