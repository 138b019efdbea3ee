from html.parser import HTMLParser

import pytest

from flashcards import Client, show

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>'


class Seen(HTMLParser):
    """What a browser would make of it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.sources: list[str] = []
        self.handlers: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.sources += [value for name, value in attributes if name in ("src", "href")]
        self.handlers += [name for name, _ in attributes if name.startswith("on")]

    def handle_data(self, data):
        self.text += data


def seen(client, thing) -> Seen:
    found = Seen(show(client, thing)._repr_html_())
    assert "script" not in found.tags
    assert found.handlers == []
    assert all(source.startswith("data:image/png;base64,") for source in found.sources)
    return found


@pytest.fixture(scope="module")
def learner(client, digits_id):
    made = client.learners.create(name=HOSTILE, architecture="blk_1_fil_8")
    task = {"dataset": digits_id, "epochs": 4, "learning_rate": 1e-2, "batch_size": 16}
    job = client.jobs.wait(client.learners.learn(made.id, name=HOSTILE, **task).id)
    assert job.state == "succeeded", job.error
    return client.learners.get(made.id)


def test_a_flashcard_set_is_its_contact_sheet(client, captured):
    found = seen(client, captured.result.flashcards)
    assert len(found.sources) == 1
    assert "70 of 8x8x1" in found.text
    assert seen(client, client.flashcards.get(captured.result.flashcards)).text == found.text


def test_a_job_is_its_figures_its_curves_and_its_pictures(client, trained):
    found = seen(client, trained)
    assert "train: succeeded" in found.text
    assert trained.result.model in found.text
    assert found.tags.count("polyline") == 2
    assert "validation_mae" in found.text
    assert found.sources
    summary = next(job for job in client.jobs.each() if job.id == trained.id)
    assert seen(client, summary).text == found.text


def test_a_learner_is_its_matrix(client, learner):
    found = seen(client, learner)
    assert HOSTILE in found.text
    assert found.tags.count("th") == 3
    assert f"{client.learners.matrix(learner.id).matrix[0][0]:.4f}" in found.text


def test_a_learner_that_has_learnt_nothing_says_so(client):
    assert "nothing yet" in seen(client, client.learners.create(architecture="blk_1_fil_8").id).text


def test_a_failed_job_says_why(client, digits_id):
    hostile = {"note": HOSTILE}
    job = client.train(dataset=digits_id, architecture="blk_1_fil_4", epochs=1, learning_rate=10, labels=hostile)
    ended = client.jobs.wait(job.id)
    found = seen(client, ended)
    assert ended.error.detail in found.text
    assert HOSTILE in found.text


def test_what_is_gone_is_told_in_its_place(client, captured):
    cards = client.flashcards.get(captured.result.flashcards)
    gone = cards.model_copy(update={"id": "flashcards_" + "0" * 32, "name": HOSTILE})
    found = seen(client, gone)
    assert HOSTILE in found.text
    assert "there is no" in found.text
    assert "there is no" in seen(client, gone.id).text


def test_nothing_is_asked_before_the_notebook_draws():
    with Client("http://127.0.0.1:1") as nobody:
        view = show(nobody, "job_" + "0" * 32)
        assert repr(view) == "job_" + "0" * 32
        assert "no answer from http://127.0.0.1:1" in seen(nobody, "job_" + "0" * 32).text


@pytest.mark.parametrize(("thing", "error"), [("model_" + "0" * 32, ValueError), (7, TypeError)])
def test_other_things_have_no_view(client, thing, error):
    with pytest.raises(error):
        show(client, thing)
