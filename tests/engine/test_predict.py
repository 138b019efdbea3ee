import numpy as np
import pytest
import torch
from PIL import Image

from engine.errors import DatasetUnfit, Diverged
from engine.run import run
from engine.weights import load_network
from engine.work import Work
from flashcards.contract.architecture import architecture_spec
from flashcards.contract.specs import job_spec

NOBODY = "0" * 32
TINY = architecture_spec.validate_python("tasknet_10_width_2_hidden_8_latent_4")
CPU = torch.device("cpu")


@pytest.fixture
def predict_work(folder, new_model, as_dataset, digits):
    def make(model=None, dataset=None, **fields) -> Work:
        asked = {"kind": "predict", "model": f"model_{NOBODY}", "dataset": f"dataset_{NOBODY}"} | fields
        return Work(
            spec=job_spec.validate_python(asked),
            out=folder(),
            model=model or new_model(),
            dataset=dataset or as_dataset(**digits),
        )

    return make


def test_an_autoencoder_answers_with_reconstructions(predict_work, report, never, digits):
    work = predict_work(rows=[5, 0, 199])
    outcome = run(work, report, never)
    assert outcome.result.split == "test"
    assert [each.row for each in outcome.result.reconstructed] == [5, 0, 199]
    found = np.load(work.out / "reconstructions.npy")
    x = digits["x_test"][[5, 0, 199], :, :, None].astype(np.float32) / 255
    expected = load_network(work.model, CPU)(torch.from_numpy(x).permute(0, 3, 1, 2)).permute(0, 2, 3, 1).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-6)
    errors = [each.mae for each in outcome.result.reconstructed]
    assert errors == pytest.approx(np.abs(x - expected).mean((1, 2, 3)).tolist(), rel=1e-4)
    assert {product.name for product in outcome.products if product.shows_data} == {
        "reconstructions.npy",
        "reconstructions.png",
    }


def test_a_sheet_has_each_image_and_its_answer_below(predict_work, report, never):
    work = predict_work(limit=10)
    run(work, report, never)
    with Image.open(work.out / "reconstructions.png") as picture:
        assert picture.size == (8 * 66 + 2, 4 * 66 + 2)


def test_a_classifier_answers_with_classes(predict_work, new_model, report, never, digits):
    work = predict_work(model=new_model(architecture=TINY), limit=3, split="train")
    outcome = run(work, report, never)
    said = outcome.result.classified
    x = torch.from_numpy(digits["x_train"][:3, None].astype(np.float32) / 255)
    p = load_network(work.model, CPU)(x).softmax(1)
    assert [each.label for each in said] == p.argmax(1).tolist()
    assert [each.confidence for each in said] == pytest.approx(p.max(1).values.tolist(), rel=1e-4)
    assert said[1].scores == pytest.approx(p[1].tolist(), rel=1e-4)
    assert [each.truth for each in said] == digits["y_train"][:3].tolist()
    np.testing.assert_allclose(np.load(work.out / "scores.npy"), p.numpy(), rtol=1e-4)
    assert [product.name for product in outcome.products] == ["scores.npy"]


def test_without_labels_there_is_no_truth(predict_work, new_model, as_dataset, report, never, digits):
    dataset = as_dataset(x=digits["x_train"][:4])
    result = run(predict_work(model=new_model(architecture=TINY), dataset=dataset), report, never).result
    assert (result.split, [each.truth for each in result.classified]) == ("train", [None] * 4)


@pytest.mark.parametrize(
    ("fields", "image", "words"), [({"rows": [200]}, (8, 8, 1), "no row 200"), ({}, (16, 16, 1), "16x16x1")]
)
def test_images_that_are_not_there_or_do_not_fit(predict_work, new_model, report, never, fields, image, words):
    with pytest.raises(DatasetUnfit, match=words):
        run(predict_work(model=new_model(image=image), **fields), report, never)


def test_answers_that_are_no_numbers(predict_work, new_model, report, never):
    broken = new_model(architecture=TINY, spoil=lambda network: network.heads[0].bias.fill_(float("nan")))
    with pytest.raises(Diverged, match="look at its weights"):
        run(predict_work(model=broken), report, never)


def test_a_split_without_images_says_so(predict_work, as_dataset, report, never, digits):
    dataset = as_dataset(x_train=digits["x_train"], x_test=digits["x_test"][:0])
    with pytest.raises(DatasetUnfit, match="test has no images"):
        run(predict_work(dataset=dataset), report, never)
