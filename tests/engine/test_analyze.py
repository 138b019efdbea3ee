import json

import numpy as np
import pytest
import torch
from PIL import Image

from engine.errors import DatasetUnfit, Diverged, NoCapsule, Stopped
from engine.run import run
from engine.sources.maze import mazes
from engine.sweep import first_minimum
from engine.weights import load_network
from flashcards.contract.image import ImageShape

CPU = torch.device("cpu")


@pytest.fixture
def some_digits(digits, as_dataset):
    return as_dataset(x_train=digits["x_train"][:60], x_test=digits["x_test"][:20])


def frechet(z, other) -> float:
    """By the book: the eigenvalues of C1 C2."""
    apart = ((z.mean(0) - other.mean(0)) ** 2).sum()
    c1, c2 = np.cov(z, rowvar=False), np.cov(other, rowvar=False)
    root = np.sqrt(np.maximum(np.linalg.eigvals(c1 @ c2).real, 0)).sum()
    return apart + np.trace(c1) + np.trace(c2) - 2 * root


def distance(z) -> float:
    """Root mean square over all pairs, one by one."""
    squares = ((z[:, None] - z[None]) ** 2).sum(-1)
    return np.sqrt(squares.sum() / (len(z) * (len(z) - 1)))


def first_tile(pixels: np.ndarray) -> np.ndarray:
    """Of a strip: behind the margins and a gap, every pixel enlarged eight times."""
    top, left = 76 + 2, 12 + 2
    return pixels[top + 4 : top + 64 : 8, left + 4 : left + 64 : 8].astype(int)


def test_figures_are_those_of_a_loop_by_hand(analyze_work, some_digits, digits, report, never):
    work = analyze_work(dataset=some_digits, count=20, seed=5)
    result = run(work, report, never).result
    network = load_network(work.model, CPU)

    def tensor(images):
        return torch.from_numpy(images[:, None].astype(np.float32) / 255)

    x = torch.from_numpy(mazes(5, 0, 20, ImageShape(8, 8, 1), (0.0, 1.0))).permute(0, 3, 1, 2)
    real, test = tensor(digits["x_train"][:60]), tensor(digits["x_test"][:20])
    steps, flsd, diversity = [], [], []
    with torch.inference_mode():
        real_z = network.encoder(real).flatten(1).double().numpy()
        for number in range(5):
            z = network.encoder(x).flatten(1).double().numpy()
            flsd.append(frechet(z, real_z))
            diversity.append(distance(z) / distance(real_z))
            y = network(x)
            if number < 4:
                steps.append((y - x).abs().mean((1, 2, 3)).numpy())
            x = y
        errors = (network(real) - real).abs().mean((1, 2, 3))
        test_mae = (network(test) - test).abs().mean().item()
    assert result.gamma1 == pytest.approx([step.min() for step in steps], rel=1e-4)
    assert result.gamma2 == pytest.approx([step.max() for step in steps], rel=1e-4)
    assert result.mean_step == pytest.approx([step.mean() for step in steps], rel=1e-4)
    assert result.flsd == pytest.approx(flsd, rel=0.01, abs=1e-4)
    assert result.diversity == pytest.approx(diversity, rel=1e-3)
    assert result.eps1 == pytest.approx(errors.min().item(), rel=1e-4)
    assert result.reference_mae == pytest.approx(test_mae, rel=1e-4)
    assert (result.against, result.source, result.count, result.retrained) == ("dataset", "maze", 20, None)
    assert result.recommended_r == first_minimum(result.flsd, start=1)
    below = [number for number, step in enumerate(result.gamma2, 1) if step < result.eps1]
    assert result.p1_from == (below[0] if below else None)


def test_without_a_reference_it_is_the_papers_r(analyze_work, report, never):
    outcome = run(analyze_work(max_r=12), report, never)
    result = outcome.result
    assert (result.against, result.flsd, result.diversity, result.eps1, result.p1_from) == (None,) * 5
    assert result.recommended_r == 10
    assert "as in the paper" in result.reason
    assert "latents.png" not in {product.name for product in outcome.products}
    assert any("no picture of latents" in note for note in report.notes)


def test_a_capsule_serves_where_the_data_is_gone(analyze_work, with_capsule, report, never):
    work = analyze_work(model=with_capsule, source="auto")
    result = run(work, report, never).result
    assert (result.against, result.reference_mae) == ("capsule", None)
    assert result.source in ("capsule", "latent")
    assert result.recommended_r == first_minimum(result.flsd)
    assert "draws from the capsule" in json.loads((work.out / "latents.json").read_text())


def test_decoded_latents_need_no_pass(analyze_work, report, never):
    assert run(analyze_work(source="latent"), report, never).result.recommended_r == 0


def test_pictures_lie_beside_their_numbers(analyze_work, some_digits, report, never):
    work = analyze_work(dataset=some_digits, seed=3, max_r=6, retrain=[1], retrain_epochs=1)
    outcome = run(work, report, never)
    maze = np.rint(mazes(3, 0, 1, ImageShape(8, 8, 1), (0.0, 1.0))[0, :, :, 0] * 255)
    stems = ("strip", "latents", "curves")
    names = [f"{stem}.{kind}" for stem in stems for kind in ("png", "json")]
    assert [product.name for product in outcome.products] == [*names, "metrics.json"]
    assert not any(product.shows_data for product in outcome.products)
    told = {stem: json.loads((work.out / f"{stem}.json").read_text()) for stem in stems}
    for stem in stems:
        with Image.open(work.out / f"{stem}.png") as picture:
            assert picture.format == "PNG"
            assert all(300 < side < 2000 for side in picture.size)
            pixels = np.asarray(picture.convert("L"))
            assert pixels.std() > 5
        if stem == "strip":
            assert np.abs(first_tile(pixels) - maze).max() <= 1
    result = outcome.result
    assert told["strip"]["r"] == sorted({0, 1, 2, 5, result.recommended_r})
    assert np.shape(told["strip"]["step"][1]) == (6,)
    groups = {"images of the dataset": 60} | {f"cards, r = {r}": 16 for r in {0, result.recommended_r, 6}}
    assert {name: len(places) for name, places in told["latents"].items()} == groups
    metrics = json.loads((work.out / "metrics.json").read_text())
    assert told["curves"] == metrics
    assert metrics["flsd"] == result.flsd
    assert [step for step, _ in report.metrics] == [1, 2, 3, 4, 5, 6]


def test_networks_are_taught_by_cards_of_each_r_alone(analyze_work, some_digits, report, never):
    work = analyze_work(dataset=some_digits, count=130, retrain=[3, 0, 3, 1], retrain_epochs=2)
    result = run(work, report, never).result
    assert list(result.retrained) == [0, 1, 3]
    assert len(set(result.retrained.values())) == 3
    passes, epochs = ([told for told in report.told if told.unit == unit] for unit in ("passes", "epochs"))
    assert report.told[: len(passes)] == passes
    assert (passes[-1].step, passes[-1].steps) == (4, 4)
    assert (epochs[-1].step, epochs[-1].steps, epochs[-1].epoch) == (5, 6, 2)
    fractions = [told.fraction for told in report.told]
    assert fractions == sorted(fractions)
    assert fractions[-1] == pytest.approx(1)
    assert report.told[0].eta_seconds > 0


def test_the_same_seed_gives_the_same_numbers(analyze_work, some_digits, new_report, never):
    def numbers() -> dict:
        work = analyze_work(dataset=some_digits, seed=1, retrain=[2], retrain_epochs=1)
        result = run(work, new_report(), never).result.model_dump(exclude={"seconds"})
        return result | {"tsne": json.loads((work.out / "latents.json").read_text())}

    assert numbers() == numbers()


class TestStopping:
    def test_between_chunks(self, analyze_work, report):
        asked = iter(range(10**6))
        with pytest.raises(Stopped, match="stopped after 1 of 4 passes") as stopped:
            run(analyze_work(count=130), report, lambda: next(asked) >= 4)  # three chunks a pass
        assert stopped.value.products == []

    def test_while_a_network_is_taught_the_pictures_of_the_cards_stay(self, analyze_work, some_digits, report):
        work = analyze_work(dataset=some_digits, retrain=[1], retrain_epochs=50)

        def stop() -> bool:
            return report.told != [] and report.told[-1].epoch == 3

        with pytest.raises(Stopped, match="stopped after 2 of 50 epochs") as stopped:
            run(work, report, stop)
        names = [product.name for product in stopped.value.products]
        assert names == ["strip.png", "strip.json", "latents.png", "latents.json"]
        assert all((work.out / name).exists() for name in names)


class TestLeavingTheFiniteNumbers:
    def test_passes_count_as_far_as_cards_stay_finite(self, analyze_work, new_model, some_digits, report, never):
        def spoil(network):
            for parameter in network.parameters():
                parameter.mul_(10)  # through six layers: a pass makes a pattern about a million times as large

        model = new_model(spoil=spoil, activation="relu")
        work = analyze_work(model=model, dataset=some_digits, max_r=40, retrain=[1, 40], retrain_epochs=1)
        result = run(work, report, never).result
        last = len(result.gamma2)
        assert 2 < last < 20
        assert len(result.flsd) == len(result.diversity) == last + 1
        assert all(np.isfinite(result.gamma2 + result.flsd + result.diversity))
        assert result.recommended_r <= last
        assert f"left the finite numbers at pass {last + 1}" in result.reason
        assert set(result.retrained) <= {1}
        assert any(f"beyond {last}" in note for note in report.notes)
        json.loads((work.out / "metrics.json").read_text(), parse_constant=pytest.fail)

    def test_at_the_first_pass_there_is_nothing_to_tell(self, analyze_work, new_model, report, never):
        def spoil(network):
            network.encoder.stem.bias.fill_(float("nan"))

        with pytest.raises(Diverged, match=r"card 0 left the finite numbers at pass 1 of 4; .* weights"):
            run(analyze_work(model=new_model(spoil=spoil)), report, never)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"x_test": (9, 8, 8)}, "no training images"),
        ({"x_train": (1, 8, 8)}, "1 training image"),
        ({"x_train": (9, 16, 8)}, "takes images of 8x8x1; those of split train are 16x8x1"),
        ({"x_train": (9, 8, 8), "x_test": (9, 8, 8, 3)}, "those of split test are 8x8x3"),
    ],
)
def test_a_dataset_that_does_not_fit_is_refused_in_words(analyze_work, as_dataset, report, never, arrays, words):
    dataset = as_dataset(**{name: np.zeros(shape, np.uint8) for name, shape in arrays.items()})
    with pytest.raises(DatasetUnfit, match=words):
        run(analyze_work(dataset=dataset), report, never)


def test_source_capsule_needs_a_capsule(analyze_work, report, never):
    with pytest.raises(NoCapsule):
        run(analyze_work(source="capsule"), report, never)
