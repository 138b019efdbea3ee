"""Reports of jobs that have ended: one file, true to the record, and safe with the words of strangers."""

import re

import pytest
from making import finished, push_model, submit, wait_for

from service.reports.chart import POINTS_AT_MOST, chart, grouped
from service.reports.pictures import caption
from service.reports.told import tell

NASTY = "<script>alert(1)</script> \u202e שלום 🦊"


@pytest.fixture(scope="module")
def captured(api):
    model = push_model(api, name=NASTY)
    return finished(api, kind="capture", model=model["id"], count=16, r=3, source="maze", labels={"note": NASTY})


def report(api, job, form: str):
    return api.get(f"/v1/jobs/{job['id']}/report.{form}")


def test_a_report_is_one_file_with_its_pictures(api, captured):
    answer = report(api, captured, "html")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    page = answer.text
    assert page.count("data:image/png;base64,") == 2
    assert set(re.findall(r'(?:src|href)="(\w+):', page)) == {"data"}
    assert "Cards, as the job left them" in page
    assert captured["result"]["flashcards"] in page
    assert "@page" in page


def test_the_words_of_strangers_stay_words(api, captured):
    answer = report(api, captured, "html")
    assert "<script" not in answer.text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in answer.text
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src" not in policy


def test_the_same_record_makes_the_same_file(api, captured):
    first, second = report(api, captured, "html"), report(api, captured, "html")
    assert first.content == second.content
    path = f"/v1/jobs/{captured['id']}/report.html"
    assert api.get(path, headers={"If-None-Match": first.headers["etag"]}).status_code == 304
    assert api.head(path).headers["etag"] == first.headers["etag"]


def test_numbers_are_those_of_the_record(api, captured):
    told = report(api, captured, "json").json()
    assert told["job"] == api.get(f"/v1/jobs/{captured['id']}").json()
    assert told["names"][captured["spec"]["model"]] == NASTY
    states = [event["data"]["state"] for event in told["history"] if event["kind"] == "state"]
    assert states == ["queued", "running", "succeeded"]


def test_every_end_has_a_report(api, dataset):
    nothing = finished(api, kind="noop")
    assert "succeeded" in report(api, nothing, "html").text
    short = {"epochs": 10**5, "patience": 10**5, "timeout_seconds": 1, "max_attempts": 1}
    failed = submit(api, kind="train", dataset=dataset["id"], architecture="blk_1_fil_4", **short)
    assert report(api, failed, "html").status_code == 409
    assert "once it has ended" in report(api, failed, "json").json()["detail"]
    wait_for(api, failed["id"])
    assert "The job ran out of its time" in report(api, failed, "html").text
    assert report(api, failed, "json").json()["job"]["error"]["type"] == "timeout"
    again = api.post(f"/v1/jobs/{failed['id']}/retry").json()
    api.post(f"/v1/jobs/{again['id']}/cancel")
    wait_for(api, again["id"])
    assert re.search('class="state (failed|cancelled)"', report(api, again, "html").text)


def test_a_picture_that_was_deleted_is_gone_from_the_report(api):
    job = finished(api, kind="capture", model=push_model(api)["id"], count=16, r=1, source="maze")
    api.delete(f"/v1/jobs/{job['id']}/artifacts/source.png")
    page = report(api, job, "html").text
    assert page.count("data:image/png;base64,") == 1
    assert "before the first pass" not in page


def test_a_report_is_for_its_tenant(alice, mallory):
    job = finished(alice, kind="noop")
    assert report(alice, job, "json").status_code == 200
    for form in ("json", "html"):
        assert report(mallory, job, form).status_code == 404


def test_what_is_measured_on_one_scale_is_drawn_together():
    points = [(1, 1.0), (2, 0.5), (4, 0.25)]
    drawn = grouped({"train_mae": points, "validation_mae": points, "lr": points})
    assert [(each.title, len(each.lines)) for each in drawn] == [("mae", 2), ("lr", 1)]
    assert drawn[0].lines[0].path == "0.0,0.0 213.33,133.33 640.0,200.0"
    assert grouped({"once": [(1, 0.5)]}) == []


def test_long_curves_are_thinned_and_keep_their_ends():
    drawn = chart("loss", {"loss": [(step, float(step)) for step in range(10_000)]}, "step")
    places = drawn.lines[0].path.split()
    assert len(places) == POINTS_AT_MOST
    assert (places[0], places[-1]) == ("0.0,200.0", "640.0,0.0")


def test_results_of_kinds_to_come_are_told_by_their_shape():
    told = tell({"accuracy": 0.91, "curve": [3, 2, 1], "rows": [{"a": 1, "b": None}], "odd": {"x": True}}, {})
    assert told.headlines == [("accuracy", "0.91")]
    assert [each.title for each in told.charts] == ["curve"]
    assert [(table.title, table.columns, table.rows) for table in told.tables] == [
        ("rows", ["a"], [["1"]]),
        ("odd", [], [["x", "yes"]]),
    ]


def test_captions_say_what_a_picture_shows():
    assert caption("reconstructions-3.png").startswith("Task 3: images above")
    assert caption("something-new.png") == "something-new.png"


def test_the_steps_of_cards_are_one_drawing():
    told = tell(
        {"gamma1": [3.0, 1.0], "gamma2": [4.0, 2.0], "mean_step": [3.5, 1.5], "recipe": {"count": 5, "r": 2}}, {}
    )
    (drawn,) = told.charts
    assert [(line.name, line.last) for line in drawn.lines] == [("gamma2", "2"), ("mean step", "1.5"), ("gamma1", "1")]
    assert (drawn.first, drawn.last) == ("1", "2")
    assert told.headlines == [("count", "5"), ("r", "2")]
