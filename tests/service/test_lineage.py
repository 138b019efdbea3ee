import numpy as np
import pytest
from making import finished, push_dataset, push_model, submit, wait_for
from safetensors.numpy import load, save


def answers(api, model_id: str, count: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """What the owner's own network says, computed by torch from the weights as uploaded."""
    import torch

    from engine.models import build
    from flashcards.contract.architecture import architecture_spec
    from flashcards.contract.image import parse_image_shape

    model = api.get(f"/v1/models/{model_id}").json()
    network = build(architecture_spec.validate_python(model["architecture"]), parse_image_shape(model["input"]))
    weights = load(api.get(f"/v1/models/{model_id}/weights").content)
    network.load_state_dict({name: torch.from_numpy(tensor) for name, tensor in weights.items()})
    x = np.random.default_rng(0).random((count, 16, 16, 1), dtype=np.float32)
    with torch.inference_mode():
        y = network(torch.from_numpy(x).permute(0, 3, 1, 2)).permute(0, 2, 3, 1).contiguous().numpy()
    return x, y


def put_probe(api, model_id: str, **tensors):
    return api.put(f"/v1/models/{model_id}/probe", content=save(tensors))


class TestProbe:
    def test_without_one_results_say_so(self, api, model):
        assert finished(api, kind="capture", model=model["id"], count=2, r=1)["result"]["forward_unverified"]

    def test_with_one_that_agrees_they_do_not(self, api):
        net = push_model(api)
        x, y = answers(api, net["id"])
        made = put_probe(api, net["id"], x=x, y=y)
        assert (made.status_code, len(made.json()["probe"])) == (200, 64)
        assert not finished(api, kind="capture", model=net["id"], count=2, r=1)["result"]["forward_unverified"]

    def test_one_that_disagrees_fails_the_job_in_words(self, api):
        net = push_model(api)
        x, y = answers(api, net["id"])
        put_probe(api, net["id"], x=x, y=y + 0.01)
        job = wait_for(api, submit(api, kind="capture", model=net["id"], count=2, r=1)["id"])
        assert (job["state"], job["error"]["type"]) == ("failed", "forward-mismatch")
        assert "off by up to 0.01" in job["error"]["detail"]

    @pytest.mark.parametrize(
        "tensors",
        [
            {"x": np.zeros((2, 16, 16, 1), np.float32)},
            {"x": np.zeros((2, 16, 16, 1), np.float32), "y": np.zeros((3, 16, 16, 1), np.float32)},
            {"x": np.zeros((2, 1, 16, 16), np.float32), "y": np.zeros((2, 1, 16, 16), np.float32)},
            {"x": np.zeros((65, 16, 16, 1), np.float32), "y": np.zeros((65, 16, 16, 1), np.float32)},
            {"x": np.full((2, 16, 16, 1), np.nan, np.float32), "y": np.zeros((2, 16, 16, 1), np.float32)},
        ],
    )
    def test_what_is_no_probe_is_refused(self, api, model, tensors):
        assert put_probe(api, model["id"], **tensors).status_code == 422

    def test_an_unknown_model_is_not_found(self, api):
        assert api.put(f"/v1/models/model_{'0' * 32}/probe", content=b"x").status_code == 404


class TestLineage:
    def test_an_upload_came_from_nowhere(self, api):
        net = push_model(api)
        assert api.get(f"/v1/models/{net['id']}/lineage").json() == {
            "model": net["id"],
            "job": None,
            "made_from": [],
            "flashcards": [],
            "used_by": [],
            "names": {},
            "imported": None,
        }

    def test_a_trained_model_names_its_job_its_data_and_its_cards(self, api, digits):
        from making import npz

        images = push_dataset(api, npz(x=digits["x_train"][:100]))
        train = finished(api, kind="train", dataset=images["id"], architecture="blk_1_fil_8", epochs=15, batch_size=10)
        model_id = train["result"]["model"]
        capture = finished(api, kind="capture", model=model_id, count=2, r=1)
        assert not capture["result"]["forward_unverified"]
        assert api.get(f"/v1/models/{model_id}/lineage").json() == {
            "model": model_id,
            "job": train["id"],
            "made_from": [images["id"]],
            "flashcards": [capture["result"]["flashcards"]],
            "used_by": [capture["id"]],
            "names": {
                images["id"]: "digits",
                train["id"]: "train job, succeeded",
                capture["id"]: "capture job, succeeded",
            },
            "imported": None,
        }
