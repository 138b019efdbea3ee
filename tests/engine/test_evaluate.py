import json

import numpy as np
import pytest
import torch
from PIL import Image

from engine.data import hold_out
from engine.errors import DatasetUnfit, Diverged, Stopped
from engine.run import run
from engine.weights import load_network


@pytest.fixture
def by_hand(digits):
    def measure(work, x: np.ndarray) -> np.ndarray:
        x_BCHW = torch.from_numpy(x / np.float32(255))[:, None]
        with torch.inference_mode():
            y_BCHW = load_network(work.model, torch.device("cpu"))(x_BCHW)
        return (y_BCHW - x_BCHW).abs().mean((1, 2, 3)).numpy()

    return measure


def test_it_measures_the_test_split(evaluate_work, as_dataset, digits, report, never, by_hand):
    x = digits["x_test"][:150]
    work = evaluate_work(as_dataset(x_train=digits["x_train"][:20], x_test=x))
    outcome = run(work, report, never)
    result, mae_N = outcome.result, by_hand(work, x)
    assert (result.split, result.images) == ("test", 150)
    assert result.mae == pytest.approx(mae_N.mean(), rel=1e-5)
    assert list(result.mae_quantiles) == ["0.05", "0.25", "0.5", "0.75", "0.95"]
    assert result.mae_quantiles["0.75"] == pytest.approx(np.quantile(mae_N, 0.75), rel=1e-5)
    assert result.constant_mae == pytest.approx(np.abs(x - np.median(x, axis=0)).mean() / 255, rel=1e-5)
    assert 0 < result.psnr < 100
    assert -1 < result.ssim < 1
    assert [told.step for told in report.told] == [64, 128, 150]

    assert [product.name for product in outcome.products] == ["metrics.json", "reconstructions.png"]
    told = json.loads((work.out / "metrics.json").read_text())
    assert told == result.model_dump(exclude={"model", "dataset"})
    with Image.open(work.out / "reconstructions.png") as picture:
        assert picture.size == (10 * 66 + 2, 2 * 66 + 2)


def test_without_a_test_split_it_takes_what_a_training_holds_out(
    evaluate_work, as_dataset, digits, report, never, by_hand
):
    x = digits["x_train"][:100]
    work = evaluate_work(as_dataset(x=x))
    result = run(work, report, never).result
    _, held = hold_out(100, 0.1, seed=0)
    assert (result.split, result.images) == ("held_out", 10)
    assert result.mae == pytest.approx(by_hand(work, x[held]).mean(), rel=1e-5)
    assert "no test split" in report.notes[0]


def test_train_when_asked_for(evaluate_work, as_dataset, digits, report, never):
    work = evaluate_work(as_dataset(x=digits["x_train"][:30], x_test=digits["x_test"][:10]), split="train")
    assert run(work, report, never).result.images == 30


def test_test_when_there_is_none(evaluate_work, as_dataset, digits, report, never):
    with pytest.raises(DatasetUnfit, match="no images in split test"):
        run(evaluate_work(as_dataset(x=digits["x_train"][:30]), split="test"), report, never)


def test_images_of_another_shape(evaluate_work, as_dataset, report, never):
    with pytest.raises(DatasetUnfit, match="takes images of 8x8x1; these are 8x8x3"):
        run(evaluate_work(as_dataset(x_test=np.zeros((3, 8, 8, 3), np.uint8))), report, never)


def test_a_split_with_nothing_in_it(evaluate_work, as_dataset, report, never):
    with pytest.raises(DatasetUnfit, match="test has no images"):
        run(evaluate_work(as_dataset(x_test=np.zeros((0, 8, 8), np.uint8))), report, never)


def test_a_network_without_finite_answers(evaluate_work, as_dataset, digits, new_model, report, never):
    model = new_model(spoil=lambda network: network.decoder.head.bias.fill_(float("nan")))
    with pytest.raises(Diverged, match="20 of 20 images"):
        run(evaluate_work(as_dataset(x_test=digits["x_test"][:20]), model=model), report, never)


def test_stopped(evaluate_work, as_dataset, digits, report):
    asked = iter((False, True))
    with pytest.raises(Stopped, match="64 of 100"):
        run(evaluate_work(as_dataset(x_test=digits["x_test"][:100])), report, lambda: next(asked))
