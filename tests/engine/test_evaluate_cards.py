import json

import numpy as np
import pytest
import torch
from PIL import Image

from engine.data import hold_out
from engine.errors import CardsUnfit, DatasetUnfit, Diverged, Stopped
from engine.gaussian import between
from engine.neighbours import precision_recall
from engine.run import run
from engine.weights import load_network
from flashcards.contract.results import EvaluateCardsResult


@pytest.fixture
def both(as_dataset, digits):
    return as_dataset(x_train=digits["x_train"][:300], x_test=digits["x_test"])


@pytest.fixture
def cards(digits):
    return digits["x_train"][700:800, ..., None]


def latents(work, x_NHWC: np.ndarray) -> np.ndarray:
    x_BCHW = torch.from_numpy(x_NHWC.reshape(-1, 1, 8, 8) / np.float32(255))
    with torch.inference_mode():
        return load_network(work.model, torch.device("cpu")).encoder(x_BCHW).flatten(1).numpy()


def test_cards_are_measured_against_the_test_split(evaluate_cards_work, both, cards, digits, report, never):
    work = evaluate_cards_work(cards, both)
    outcome = run(work, report, never)
    result = outcome.result
    assert isinstance(result, EvaluateCardsResult)
    assert (result.split, result.cards, result.images) == ("test", 100, 200)
    z, z_real = latents(work, cards), latents(work, digits["x_test"])
    assert result.flsd == pytest.approx(between(z, z_real), rel=1e-3)
    hand = precision_recall(torch.from_numpy(z), torch.from_numpy(z_real))
    assert (result.precision, result.recall) == pytest.approx(hand, abs=0.02)
    assert result.diversity == pytest.approx(np.sqrt(z.var(0, ddof=1).sum() / z_real.var(0, ddof=1).sum()), rel=1e-4)
    assert (result.privacy.cards, result.privacy.images) == (100, 200)
    assert report.told[-1].fraction == pytest.approx(1)

    products = {product.name: product.shows_data for product in outcome.products}
    assert products == {"metrics.json": False, "neighbours.png": True}
    told = json.loads((work.out / "metrics.json").read_text())
    assert told == result.model_dump(mode="json", exclude={"flashcards", "dataset"})


def test_the_images_themselves_are_perfect_cards_and_warned_about(evaluate_cards_work, both, digits, report, never):
    work = evaluate_cards_work(digits["x_train"][:300, ..., None], both, split="train")
    result = run(work, report, never).result
    assert (result.split, result.images) == ("train", 300)
    assert result.flsd == pytest.approx(0, abs=1e-3)
    assert (result.precision, result.recall, result.diversity) == (1.0, 1.0, pytest.approx(1.0))
    assert any(note.startswith("Warning: 300 cards are almost equal") for note in report.notes)

    with Image.open(work.out / "neighbours.png") as picture:
        assert picture.size == (8 * 66 + 2, 3 * 66 + 2)
        pixels = np.asarray(picture)
    assert np.array_equal(pixels[2:66], pixels[68:132])
    assert not np.array_equal(pixels[2:66], pixels[134:198])


def test_collapsed_cards_are_told_by_recall_and_diversity(evaluate_cards_work, both, cards, report, never):
    result = run(evaluate_cards_work(np.repeat(cards[:1], 50, 0), both), report, never).result
    assert result.diversity == pytest.approx(0, abs=1e-6)
    assert result.recall == 0


def test_floats_and_bytes_are_the_same_cards(evaluate_cards_work, both, cards, new_model, new_report, never):
    model = new_model(range=(-1.0, 1.0))
    floats = cards / np.float32(255) * 2 - 1
    one, other = (
        run(evaluate_cards_work(x, both, model), new_report(), never).result for x in (cards, floats.astype("<f4"))
    )
    assert one.flsd == pytest.approx(other.flsd, rel=1e-4)
    assert one.privacy.ratio == pytest.approx(other.privacy.ratio, rel=1e-4)


def test_without_a_test_split_there_is_no_word_on_privacy(
    evaluate_cards_work, as_dataset, cards, digits, report, never
):
    work = evaluate_cards_work(cards, as_dataset(x=digits["x_train"][:100]))
    outcome = run(work, report, never)
    assert (outcome.result.split, outcome.result.images) == ("held_out", len(hold_out(100, 0.1, 0)[1]))
    assert outcome.result.privacy is None
    assert [product.name for product in outcome.products] == ["metrics.json"]
    assert "tenth of train" in report.notes[0]
    assert "privacy was not measured" in report.notes[1]


def test_long_latents_make_a_smaller_sample(evaluate_cards_work, both, cards, report, never, monkeypatch):
    monkeypatch.setattr("engine.evaluate_cards.MOST_NUMBERS", 64 * 30)  # 4 x 4 x 4 numbers a latent
    result = run(evaluate_cards_work(cards, both), report, never).result
    assert (result.cards, result.images) == (30, 30)
    assert result.flsd > 0


@pytest.mark.parametrize(
    ("spoilt", "words"),
    [
        (np.zeros((5, 8, 8, 3), np.uint8), "takes images of 8x8x1; the cards are 8x8x3"),
        (np.zeros((3, 8, 8, 1), np.uint8), "there are 3 cards; at least 4"),
        (np.zeros((0, 8, 8, 1), np.uint8), "there are 0 cards"),
        (np.zeros((5, 8, 8), np.uint8), "uint8 with 3 axes"),
        (np.zeros((5, 8, 8, 1)), "float64 with 4 axes"),
    ],
)
def test_cards_that_cannot_be_used(evaluate_cards_work, both, report, never, spoilt, words):
    with pytest.raises(CardsUnfit, match=words):
        run(evaluate_cards_work(spoilt, both), report, never)


def test_a_file_of_cards_that_is_cut_off(evaluate_cards_work, both, cards, report, never):
    work = evaluate_cards_work(cards, both)
    work.cards.path.write_bytes(work.cards.path.read_bytes()[:500])
    with pytest.raises(CardsUnfit, match="cannot be read"):
        run(work, report, never)


def test_cards_that_are_not_finite(evaluate_cards_work, both, cards, report, never):
    spoilt = cards.astype(np.float32)
    spoilt[7, 0, 0, 0] = np.nan
    with pytest.raises(Diverged, match="1 of 100 cards have latents that are not finite"):
        run(evaluate_cards_work(spoilt, both), report, never)


@pytest.mark.parametrize(
    ("arrays", "split", "words"),
    [
        ({"x": np.zeros((30, 8, 8), np.uint8)}, "test", "no images in split test"),
        ({"x_test": np.zeros((0, 8, 8), np.uint8)}, "auto", "no images in split test or train"),
        ({"x_test": np.zeros((1, 8, 8), np.uint8)}, "auto", "test has 1 image; at least 4"),
        ({"x": np.zeros((1, 8, 8), np.uint8)}, "auto", "1 training image; at least 2"),
        ({"x_test": np.zeros((5, 8, 8, 3), np.uint8)}, "auto", "takes images of 8x8x1; these are 8x8x3"),
        ({"x_test": np.full((5, 8, 8), np.nan, np.float32)}, "auto", "not finite"),
        ({"x_test": np.zeros((5, 8, 8), np.uint8)}, "auto", "one and the same latent"),
    ],
)
def test_images_that_cannot_be_used(evaluate_cards_work, as_dataset, cards, report, never, arrays, split, words):
    with pytest.raises(DatasetUnfit, match=words):
        run(evaluate_cards_work(cards, as_dataset(**arrays), split=split), report, never)


@pytest.mark.parametrize("after", range(9))
def test_stopped_anywhere(evaluate_cards_work, both, cards, report, after):
    """Two chunks of cards, four of images, three searches."""
    asked = iter([False] * after + [True])
    with pytest.raises(Stopped, match=f"{[64, 100, 164, 228, 292, 300, 300, 300, 300][after]} of 300"):
        run(evaluate_cards_work(cards, both), report, lambda: next(asked))
