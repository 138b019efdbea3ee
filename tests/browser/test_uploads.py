"""Files by hand and by drop, and names that strangers write."""

import io

import numpy as np
import pytest
from making import npz, weights
from PIL import Image

NASTY = [
    "<script>document.title='owned'</script><img src=x onerror=alert(1)>",
    "🦊" * 50,
    "שלום עולם ‮ مرحبا",
    "a" * 200,
]


def test_a_model_comes_in_and_a_bad_file_says_why(page, tmp_path):
    page.open("/models", "Drop an autoencoder here")
    good, bad = tmp_path / "brought along.safetensors", tmp_path / "broken.safetensors"
    good.write_bytes(weights())
    bad.write_bytes(b"not a network at all")
    page.one("#architecture").send_keys("blk_2_fil_4")
    page.one("#input").send_keys("16x16x1")
    page.choose(good)
    page.see("ready: brought along")
    assert page.errors() == []
    page.choose(bad)
    page.see("safetensors", 30)
    page.wait(lambda: page.all(".uploads [role=alert] .why"), "the file was not refused")
    assert all("422" in message for message in page.errors())


def png(grey: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("L", (8, 8), grey).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.slow
def test_two_hundred_images_become_one_dataset(page, api):
    page.open("/datasets", "Drop images here")
    page.drop([(f"{number % 150} é.png", png(number)) for number in range(200)])  # two folders, some names twice
    page.see("ready: 200 images")
    (dataset,) = [each for each in api.get("/v1/datasets").json()["items"] if each["name"] == "200 images"]
    assert dataset["splits"]["train"]["count"] == 200
    assert dataset["splits"]["train"]["shape"] == "8x8x1"
    content = api.get(f"/v1/datasets/{dataset['id']}/file").content
    with np.load(io.BytesIO(content)) as found:
        assert {int(image.max()) for image in found["x_train"]} == set(range(200))
    assert page.errors() == []


def test_two_hundred_other_files_are_refused_in_words(page):
    page.open("/datasets", "Drop images here")
    page.drop([(f"{number}.txt", b"x") for number in range(200)])
    page.see("Those are 200 files").see("Nothing was sent")
    assert page.errors() == []


@pytest.mark.slow
def test_a_name_of_three_hundred_characters_is_cut(page, api, digits):
    page.open("/datasets", "Drop images here")
    page.drop([("n" * 300, npz(x=digits["x_test"][:4]))])
    page.see("ready: nnnnn")
    page.check()
    assert "n" * 200 in [each["name"] for each in api.get("/v1/datasets").json()["items"]]


def test_names_from_strangers_stay_text(page, api, digits):
    ids = []
    for name in NASTY:
        answer = api.post("/v1/datasets", params={"name": name}, content=npz(x=digits["x_test"][:4]))
        assert answer.status_code == 201, answer.text
        ids.append(answer.json()["id"])
    page.open("/datasets", "<script>document.title=")
    page.check()
    for id, name in zip(ids, NASTY, strict=True):
        page.open(f"/datasets/{id}", name[:20])
        page.check()
        assert page.run("return document.title") != "owned"
    page.run("return document.body.scrollWidth")
    api.post("/v1/jobs", json={"kind": "noop", "labels": {"note": NASTY[0][:200]}})
    page.open("/jobs", "note: <script>")
    page.check()
