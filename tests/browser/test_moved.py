"""What came by other doors: ONNX of another framework, a classifier, a bundle, a capture in shards."""

from pathlib import Path

import pytest
from bundling import bundle_of
from making import finished, push_model, submit, wait_for

pytestmark = pytest.mark.slow
FILES = Path(__file__).parent.parent / "fixtures" / "onnx"


def test_an_onnx_file_is_dropped_and_captured(page, api):
    page.open("/models", "Drop an autoencoder here")
    page.choose(FILES / "torch_conv.onnx")
    page.see("ready: torch_conv")
    page.one(".uploads a").click()
    page.see("Capture its knowledge").see("bottleneck")
    assert "Export as ONNX" not in page.text
    page.check()
    page.press("Capture")
    page.see("Open the flashcards", 120)
    page.check()


def test_a_classifier_is_asked_for_answers_and_not_for_cards(page, api, dataset):
    made = push_model(api, "tasknet_10_width_4_hidden_32_latent_8", "8x8x1", name="says digits")
    page.open(f"/models/{made['id']}", "says digits")
    page.see("Let it answer")
    assert dataset["name"] in page.one("select[name=dataset]").text
    assert "Capture its knowledge" not in page.text
    assert "Capsule" not in page.text
    page.check()


def test_the_bundle_of_another_installation_is_dropped(page, api, things):
    page.open("/models", "Drop an autoencoder here")
    page.drop([("model.zip", bundle_of(api, f"models/{things['model']}"))])
    page.see("ready: ")
    page.one(".uploads a").click()
    page.see("Before it came here").see(things["model"])
    page.check()
    page.open("/models", "Drop an autoencoder here")
    page.drop([("pupil.zip", bundle_of(api, f"learners/{things['learner']}/versions/1"))])
    page.see("ready: pupil")
    page.one(".uploads a").click()
    page.see("Timeline").see("Before it came here").see(things["learner"])
    page.check()
    assert page.errors() == []


def test_a_capture_in_shards_shows_them_and_lists_show_the_capture(page, api, things):
    job = submit(api, kind="capture", model=things["model"], count=200, shards=2, source="maze", r=2, name="in parts")
    assert wait_for(api, job["id"])["state"] == "succeeded"
    page.open(f"/jobs/{job['id']}", "Shards")
    assert len(page.all(".rows li")) == 2
    page.check()
    page.one(".rows a.open").click()
    page.see("part of").see("Every field of it")
    assert "The same from a script" not in page.text
    page.check()
    page.open("/jobs", "capture")
    assert "of a capture" not in page.text
    page.one("#parts").click()
    page.see("of a capture")
    page.check()


def test_a_model_that_was_exported_gives_its_file(page, api, things):
    finished(api, kind="export", model=things["model"])
    page.open(f"/models/{things['model']}", "Capture its knowledge")
    file = next(each for each in page.all(".verbs a") if each.text == "ONNX").get_attribute("href")
    assert api.get(file).status_code == 200
