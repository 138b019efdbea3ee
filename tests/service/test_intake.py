"""Files that are kept in another form than they came in."""

import hashlib
import io
import random
import zipfile

import numpy as np
import pytest
import torch
from making import finished, weights
from PIL import Image
from safetensors.numpy import load, save

from flashcards.contract.architecture import BlkArchitecture
from flashcards.contract.image import ImageShape

QUERY = {"name": "net", "architecture": "blk_2_fil_4", "input": "8x8x1"}
TENSORS = load(weights("blk_2_fil_4", seed=7))


def ordered() -> dict[str, np.ndarray]:
    return {name: TENSORS[name] for name, _ in BlkArchitecture(blocks=2, filters=4).tensors(ImageShape(8, 8, 1))}


def pt(state: dict[str, np.ndarray], **more: object) -> bytes:
    stream = io.BytesIO()
    tensors = {name: torch.from_numpy(array.copy()) for name, array in state.items()}
    torch.save({**more, "state_dict": tensors} if more else tensors, stream)
    return stream.getvalue()


def renamed() -> dict[str, np.ndarray]:
    return {f"layers.{place}": array for place, array in enumerate(ordered().values())}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def stored(service):
    """The names of all that is in the store, and the spool is empty when the test ends."""
    yield lambda: {path.name for path in (service.home / "store").rglob("*")}
    assert not any((service.home / "spool").iterdir())


class TestCheckpoints:
    def test_a_pt_is_kept_as_safetensors_and_only_so(self, api, stored):
        sent = pt(ordered(), epoch=3)
        made = api.post("/v1/models", params=QUERY, content=sent)
        assert made.status_code == 201, made.text
        model = api.get(made.headers["location"]).json()
        assert model["mapping"] is None
        assert model["uploaded_digest"] == digest(sent)
        content = api.get(f"/v1/models/{model['id']}/weights").content
        assert (model["digest"], model["size"]) == (digest(content), len(content))
        assert model["digest"] in stored()
        assert digest(sent) not in stored()
        kept = load(content)
        assert kept.keys() == TENSORS.keys()
        assert all(np.array_equal(kept[name], TENSORS[name]) for name in TENSORS)

    @pytest.mark.parametrize("prefix", ["module.", "_orig_mod."])
    @pytest.mark.parametrize("form", [pt, save])
    def test_a_prefix_is_taken_off_and_said(self, api, prefix, form):
        sent = form({prefix + name: array for name, array in ordered().items()})
        model = api.post("/v1/models", params=QUERY, content=sent).json()
        assert model["mapping"] == {prefix + name: name for name in TENSORS}
        kept = load(api.get(f"/v1/models/{model['id']}/weights").content)
        assert all(np.array_equal(kept[name], TENSORS[name]) for name in TENSORS)

    def test_renamed_layers_in_our_order_are_the_same_network(self, api, dataset):
        ours = api.post("/v1/models", params=QUERY, content=save(TENSORS)).json()
        theirs = api.post("/v1/models", params=QUERY, content=pt(renamed())).json()
        assert theirs["mapping"] == dict(zip(renamed(), ordered(), strict=True))
        assert (ours["mapping"], ours["uploaded_digest"]) == (None, None)
        first, second = (
            finished(api, kind="evaluate", model=model["id"], dataset=dataset["id"])["result"]
            for model in (ours, theirs)
        )
        assert [first[what] for what in ("mae", "psnr", "ssim")] == [second[what] for what in ("mae", "psnr", "ssim")]

    def test_a_shuffled_one_is_refused_with_both_lists(self, api, stored):
        before = stored()
        items = list(renamed().items())
        random.Random(1).shuffle(items)
        answer = api.post("/v1/models", params=QUERY, content=pt(dict(items)))
        assert answer.status_code == 422
        assert answer.json()["title"] == "the tensors can be matched in more than one way"
        lines = answer.json()["detail"].splitlines()
        assert lines[1].split(" | ") == ["ours".ljust(lines[1].index("|") - 1), "theirs"]
        assert len(lines) == 2 + len(TENSORS)
        assert all(name in answer.json()["detail"] for name in [*TENSORS, *renamed()])
        assert stored() == before

    def test_the_same_key_and_file_get_the_same_answer(self, api):
        sent, headers = pt(renamed()), {"Idempotency-Key": digest(b"pt")}
        first, second = (api.post("/v1/models", params=QUERY, content=sent, headers=headers) for _ in range(2))
        assert (first.status_code, second.status_code) == (201, 201)
        assert second.headers["idempotency-replayed"] == "true"
        assert first.json() == second.json()
        other = api.post("/v1/models", params=QUERY, content=pt(ordered()), headers=headers)
        assert other.status_code == 409

    def test_weights_that_are_not_finite_are_found_in_the_conversion(self, api, stored):
        before, broken = stored(), ordered()
        broken["encoder.stem.bias"] = np.array([1, 2, 3, np.nan], np.float32)
        answer = api.post("/v1/models", params=QUERY, content=pt(broken))
        assert (answer.status_code, answer.json()["title"]) == (422, "the weights are not finite")
        assert stored() == before


def zip_of(images: dict[str, np.ndarray], format: str = "PNG") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, pixels in images.items():
            picture = io.BytesIO()
            Image.fromarray(pixels).save(picture, format)
            archive.writestr(name, picture.getvalue())
    return stream.getvalue()


class TestImages:
    def test_a_zip_of_images_is_the_dataset_that_the_arrays_are(self, api, dataset, digits, stored):
        files = {
            f"{split}/{label}/{place:04}.png": pixels
            for split in ("train", "test")
            for place, (pixels, label) in enumerate(zip(digits[f"x_{split}"], digits[f"y_{split}"], strict=True))
        }
        sent = zip_of(files)
        made = api.post("/v1/datasets", params={"name": "pictures"}, content=sent)
        assert made.status_code == 201, made.text
        pictures = made.json()
        assert (pictures["format"], pictures["uploaded_digest"]) == ("npz", digest(sent))
        for name, split in pictures["splits"].items():
            assert split == dataset["splits"][name] | {"labels": list("0123456789")}
        assert digest(sent) not in stored()
        self.has_the_images(api, pictures, digits)
        model = api.post("/v1/models", params=QUERY, content=save(TENSORS)).json()
        results = [
            finished(api, kind="evaluate", model=model["id"], dataset=each["id"])["result"]
            for each in (pictures, dataset)
        ]
        assert results[0]["mae"] == pytest.approx(results[1]["mae"], rel=1e-6)

    def has_the_images(self, api, pictures, digits):
        content = api.get(f"/v1/datasets/{pictures['id']}/file").content
        assert digest(content) == pictures["digest"]
        arrays = np.load(io.BytesIO(content))
        for split in ("train", "test"):
            by_label = np.argsort(digits[f"y_{split}"], kind="stable")
            assert np.array_equal(arrays[f"x_{split}"][..., 0], digits[f"x_{split}"][by_label])
            assert np.array_equal(arrays[f"y_{split}"], digits[f"y_{split}"][by_label])

    def test_images_are_brought_to_one_size_when_asked(self, api, stored):
        before = stored()
        files = {"a.png": np.zeros((9, 7, 3), np.uint8), "b.png": np.zeros((20, 20), np.uint8)}
        refused = api.post("/v1/datasets", params={"name": "d"}, content=zip_of(files))
        assert refused.status_code == 422
        assert "'a.png' is 9x7x3, 'b.png' is 20x20x1" in refused.json()["detail"]
        assert stored() == before
        made = api.post("/v1/datasets", params={"name": "d", "input": "8x8x3"}, content=zip_of(files))
        assert made.json()["splits"]["train"]["shape"] == "8x8x3"

    @pytest.mark.parametrize("input", ["8x8", "8x8x2", "8x8x4", "0x8x3", "2000x8x3", "x"])
    def test_a_shape_that_is_none_is_refused(self, api, input):
        answer = api.post("/v1/datasets", params={"name": "d", "input": input}, content=b"x")
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["field"] == "query.input"

    def test_the_same_images_are_one_blob(self, api, stored):
        pixels = np.random.default_rng(3).integers(0, 256, (8, 8, 3), np.uint8)
        first = api.post("/v1/datasets", params={"name": "d"}, content=zip_of({"a.png": pixels}))
        before = stored()
        second = api.post("/v1/datasets", params={"name": "d"}, content=zip_of({"b.webp": pixels}, "PNG"))
        assert first.json()["digest"] == second.json()["digest"]
        assert first.json()["uploaded_digest"] != second.json()["uploaded_digest"]
        assert stored() == before
