import io

import numpy as np
import pytest
from making import finished, push_model
from PIL import Image


@pytest.fixture(scope="module")
def job(api, model):
    return finished(api, kind="capture", model=model["id"], source="maze", count=70, r=3, seed=5, name="seventy")


@pytest.fixture(scope="module")
def cards(api, job):
    return api.get(f"/v1/flashcards/{job['result']['flashcards']}").json()


def load(answer) -> np.ndarray:
    assert answer.status_code == 200, answer.text
    return np.load(io.BytesIO(answer.content))["x"]


def test_the_recipe_is_there(cards, model, job):
    recipe = cards["recipe"]
    assert (recipe["r"], recipe["count"], recipe["seed"], recipe["source"]) == (3, 70, 5, "maze")
    assert recipe["model_digest"] == model["digest"]
    assert (cards["model"], cards["job"], cards["name"]) == (model["id"], job["id"], "seventy")


def test_sets_are_listed_by_their_model(api, cards, model):
    of_it = api.get("/v1/flashcards", params={"model": model["id"], "limit": 200}).json()["items"]
    assert cards["id"] in [each["id"] for each in of_it]
    assert {each["model"] for each in of_it} == {model["id"]}
    assert api.get("/v1/flashcards", params={"model": "model_" + "0" * 32}).json()["items"] == []


def test_the_lineage_of_a_model_says_what_its_jobs_and_cards_are(api, model):
    newest = finished(api, kind="capture", model=model["id"], source="maze", count=1, r=1, name="newest")
    told = api.get(f"/v1/models/{model['id']}/lineage").json()["names"]
    assert told[newest["id"]] == "capture job, succeeded"
    assert told[newest["result"]["flashcards"]] == "newest"


def test_slices_meet(api, cards, job):
    url = f"/v1/flashcards/{cards['id']}/cards"
    whole = np.load(io.BytesIO(api.get(f"/v1/jobs/{job['id']}/artifacts/cards.npy").content))
    assert whole.shape == (70, 16, 16, 1)
    slices = [load(api.get(url, params={"offset": offset, "limit": 30})) for offset in (0, 30, 60)]
    assert [len(part) for part in slices] == [30, 30, 10]
    np.testing.assert_array_equal(np.concatenate(slices), whole)


def test_pictures(api, cards, job):
    for url in (
        f"/v1/flashcards/{cards['id']}/sheet.png",
        f"/v1/flashcards/{cards['id']}/cards?format=png&limit=9",
        f"/v1/jobs/{job['id']}/artifacts/source.png",
    ):
        answer = api.get(url)
        assert answer.headers["content-type"] == "image/png"
        assert min(Image.open(io.BytesIO(answer.content)).size) > 64


def test_a_browser_may_keep_a_sheet_for_its_key(api, cards):
    headers = api.get(f"/v1/flashcards/{cards['id']}/sheet.png").headers
    assert headers["cache-control"] == "private, max-age=31536000, immutable"
    assert headers["vary"] == "Authorization, Cookie"


@pytest.mark.parametrize(
    "query", ["offset=70", "offset=-1", "limit=0", "limit=1000000", "format=gif", "format=png&limit=101"]
)
def test_bad_slices_are_refused(api, cards, query):
    assert api.get(f"/v1/flashcards/{cards['id']}/cards?{query}").status_code == 422


def test_a_slice_can_be_uploaded_as_a_dataset(api, cards):
    content = api.get(f"/v1/flashcards/{cards['id']}/cards?limit=20").content
    answer = api.post("/v1/datasets", params={"name": "cards"}, content=content)
    assert answer.status_code == 201
    assert answer.json()["splits"]["train"]["count"] == 20


def test_the_same_recipe_gives_the_same_bytes(api, model, cards):
    again = finished(api, kind="capture", model=model["id"], source="maze", count=70, r=3, seed=5)
    other = finished(api, kind="capture", model=model["id"], source="maze", count=70, r=3, seed=6)
    digest = [api.get(f"/v1/flashcards/{job['result']['flashcards']}").json()["digest"] for job in (again, other)]
    assert digest[0] == cards["digest"] != digest[1]


def test_uint8_cards_are_a_quarter_of_the_size(api, model, cards):
    job = finished(api, kind="capture", model=model["id"], source="maze", count=70, r=3, seed=5, dtype="uint8")
    small = api.get(f"/v1/flashcards/{job['result']['flashcards']}").json()
    assert small["size"] - 128 == (cards["size"] - 128) / 4
    assert load(api.get(f"/v1/flashcards/{small['id']}/cards")).dtype == np.uint8


def test_a_model_is_kept_while_its_cards_are(api):
    net = push_model(api)
    job = finished(api, kind="capture", model=net["id"], count=2, r=1)
    assert api.delete(f"/v1/models/{net['id']}").status_code == 409
    assert api.delete(f"/v1/flashcards/{job['result']['flashcards']}").status_code == 204
    assert api.delete(f"/v1/models/{net['id']}").status_code == 204


def test_an_unknown_set_is_not_found(api):
    for suffix in ("", "/cards", "/sheet.png"):
        assert api.get(f"/v1/flashcards/flashcards_{'0' * 32}{suffix}").status_code == 404
