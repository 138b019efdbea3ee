"""Jobs, cards and learners that can be asked further, and uploads and jobs that show how far they are."""

import numpy as np
import pytest
import torch

from flashcards import Client
from flashcards.errors import Invalid, JobFailed, NothingMade


def test_from_a_model_to_cards_in_one_line(client, trained, capsys):
    model = client.models.get(trained.result.model)
    cards = client.capture(model, count=70, r=3).wait(progress=True).cards()
    assert cards.shape == (70, 8, 8, 1)
    assert capsys.readouterr().err == "capture [########################] 100% succeeded\n"


def test_cards_come_as_tensors_too(client, captured):
    arrays, tensors = captured.cards(), captured.cards("torch")
    assert isinstance(tensors, torch.Tensor)
    assert tensors.shape == (70, 1, 8, 8)
    assert np.array_equal(tensors.numpy()[:, 0], arrays[..., 0])
    assert torch.equal(captured.flashcards().cards("torch"), tensors)
    with pytest.raises(ValueError, match="jax"):
        captured.cards("jax")


def test_a_job_knows_what_it_made(client, trained, captured):
    assert trained.model().name == "small"
    assert captured.flashcards().id == captured.result.flashcards
    with pytest.raises(NothingMade, match="no flashcards"):
        trained.cards()


@pytest.mark.slow
def test_a_job_that_fails_says_why_where_it_is_waited_for(client, digits_id):
    job = client.train(
        digits_id, architecture="blk_1_fil_4", epochs=10**5, patience=10**5, timeout_seconds=1, max_attempts=1
    )
    with pytest.raises(JobFailed, match="ran out of its time") as failed:
        job.wait()
    assert failed.value.job.state == "failed"
    assert failed.value.job.error.type == "timeout"
    assert job.refresh().state == "failed"


def test_a_job_is_cancelled_and_told_of(client, busy):
    job = client.train(busy.spec.dataset, architecture="blk_1_fil_4")
    assert job.cancel().state == "cancelled"
    with pytest.raises(JobFailed, match=f"{job.id} was cancelled"):
        job.wait()
    assert [event.data["state"] for event in job.events()] == ["queued", "cancelled"]


@pytest.mark.slow
def test_a_learner_is_taught_by_itself(client, digits_id):
    learner = client.learners.create(name="pupil", architecture="blk_1_fil_4")
    learner.learn(dataset=client.datasets.get(digits_id), epochs=2, batch_size=8, learning_rate=0.01).wait()
    assert learner.refresh().version == 1
    assert len(learner.matrix().tasks) == 1


def test_a_refusal_has_the_fields_of_its_problem(client):
    with pytest.raises(Invalid) as refused:
        client.capture("model_" + "0" * 32, count=-1)
    assert (refused.value.type, refused.value.status) == ("/problems/invalid", 422)
    assert refused.value.errors[0].field.endswith("count")
    assert refused.value.request_id


def test_an_upload_shows_how_far_it_is(service, digits, tmp_path, capsys):
    np.savez(tmp_path / "images.npz", x=digits["x_test"])
    with Client(service.url) as client:
        client.datasets.push(tmp_path / "images.npz", progress=True)
    size = (tmp_path / "images.npz").stat().st_size
    assert capsys.readouterr().err == f"images.npz [########################] 100% {size:,} bytes\n"


def test_things_are_shown_by_themselves_in_a_notebook(client, captured):
    assert "data:image/png;base64" in captured._repr_html_()
    assert "contact sheet" in captured.flashcards()._repr_html_()
    learner = client.learners.create(name="<b>pupil</b>", architecture="blk_1_fil_4")
    assert "&lt;b&gt;pupil" in learner._repr_html_()


def test_a_job_has_a_report(client, captured, tmp_path):
    report = captured.report()
    assert report.job.id == captured.id
    assert report.names[captured.spec.model] == "small"
    page = client.jobs.save_report(captured.id, tmp_path)
    assert page.name == f"{captured.id}-report.html"
    assert "data:image/png;base64," in page.read_text()
