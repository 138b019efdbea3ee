from dataclasses import replace

import numpy as np
import pytest

from engine.errors import DatasetUnfit, Stopped
from engine.run import run
from engine.work import CardsInput, ModelInput, Work
from flashcards.contract import capsule
from flashcards.contract.architecture import BlkArchitecture
from flashcards.contract.image import ImageShape
from flashcards.contract.specs import job_spec

NOBODY = "0" * 32


@pytest.fixture(scope="module")
def taught(tmp_path_factory, digits):
    """A network that has learnt digits, its capsule, and what it was taught with."""
    from tests.engine.conftest import Recorder

    folder = tmp_path_factory.mktemp("taught")
    np.savez(folder / "digits.npz", x_train=digits["x_train"][:600], x_test=digits["x_test"][:200])
    out = folder / "out"
    out.mkdir()
    asked = {"architecture": "blk_1_fil_8", "epochs": 12, "batch_size": 20, "learning_rate": 0.01}
    spec = job_spec.validate_python({"kind": "train", "dataset": f"dataset_{NOBODY}"} | asked)
    from engine.work import DatasetInput

    dataset = DatasetInput(path=folder / "digits.npz", digest="d")
    run(Work(spec=spec, out=out, dataset=dataset), Recorder(), lambda: False)
    model = ModelInput(
        path=out / "model.safetensors",
        digest="m",
        architecture=BlkArchitecture(blocks=1, filters=8),
        input=ImageShape(8, 8, 1),
        range=(0.0, 1.0),
        made_here=True,
        capsule=out / "capsule.safetensors",
        capsule_digest="c",
    )
    return model, dataset


@pytest.fixture
def captured(taught, folder, report, never):
    def make(count=600, **fields) -> CardsInput:
        out = folder()
        spec = job_spec.validate_python({"kind": "capture", "model": f"model_{NOBODY}", "count": count} | fields)
        run(Work(spec=spec, out=out, model=taught[0]), report, never)
        return CardsInput(path=out / "cards.npy", digest="f")

    return make


@pytest.fixture
def distill_work(taught, folder, captured):
    def make(cards=None, dataset=None, **fields) -> Work:
        asked = {"architecture": "blk_1_fil_8", "epochs": 12, "batch_size": 20, "learning_rate": 0.01} | fields
        spec = {"kind": "distill", "flashcards": f"flashcards_{NOBODY}"} | asked
        if dataset is not None:
            spec["dataset"] = f"dataset_{NOBODY}"
        return Work(
            spec=job_spec.validate_python(spec),
            out=folder(),
            model=taught[0],
            cards=cards or captured(),
            dataset=dataset,
        )

    return make


def test_a_network_learns_from_cards_alone(distill_work, taught, report, never):
    result = run(distill_work(dataset=taught[1]), report, never).result
    on_cards, on_data = result.compared
    assert (on_cards.on, on_data.on, on_data.images) == ("cards", "dataset", 200)
    assert on_data.ratio == pytest.approx(on_data.child_mae / on_data.parent_mae)
    assert on_data.child_mae < 0.12  # the median image scores 0.2
    assert on_data.agreement_mae < on_data.child_mae + on_data.parent_mae
    assert result.cards == 600


def test_the_child_may_be_of_another_size(distill_work, report, never):
    result = run(distill_work(architecture="blk_2_fil_4", epochs=6), report, never).result
    assert result.parameters == BlkArchitecture(blocks=2, filters=4).parameters(ImageShape(8, 8, 1))
    assert result.parent_parameters == BlkArchitecture(blocks=1, filters=8).parameters(ImageShape(8, 8, 1))


def test_its_capsule_says_that_no_image_was_there(distill_work, report, never):
    work = distill_work()
    outcome = run(work, report, never)
    names = [product.name for product in outcome.products]
    assert names == ["model.safetensors", "reconstructions.png", "capsule.safetensors"]
    assert not any(product.shows_data for product in outcome.products)
    kept = capsule.read((work.out / "capsule.safetensors").read_bytes())
    assert kept.facts.measured_on == "cards"
    assert kept.facts == outcome.result.capsule


def test_cards_of_bytes_teach_as_well(distill_work, captured, taught, report, never):
    result = run(distill_work(cards=captured(dtype="uint8"), dataset=taught[1]), report, never).result
    assert result.compared[1].child_mae < 0.12


def test_broken_off_and_taken_up_it_ends_with_the_same_weights(distill_work, captured, new_report, never):
    cards = captured(count=100)
    whole, broken = distill_work(cards=cards, epochs=3), distill_work(cards=cards, epochs=3)
    run(whole, new_report(), never)
    asked = iter(range(10**6))
    stopped = new_report()
    with pytest.raises(Stopped):
        run(broken, stopped, lambda: next(asked) >= 7)
    resumed = distill_work(cards=cards, epochs=3)
    object.__setattr__(resumed, "resume", stopped.points[-1])
    run(resumed, new_report(), never)
    assert (resumed.out / "model.safetensors").read_bytes() == (whole.out / "model.safetensors").read_bytes()


def test_an_architecture_that_does_not_fit_says_so(distill_work, report, never):
    with pytest.raises(DatasetUnfit, match="blk_4_fil_2"):
        run(distill_work(architecture="blk_4_fil_2"), report, never)


class TestChoosing:
    """What `auto` comes to."""

    def capture(self, taught, folder, report, never, with_capsule=True, **fields):
        model = taught[0]
        if not with_capsule:
            model = ModelInput(**{**model.__dict__, "capsule": None, "capsule_digest": None})
        spec = {"kind": "capture", "model": f"model_{NOBODY}", "count": 300} | fields
        work = Work(spec=job_spec.validate_python(spec), out=folder(), model=model)
        return run(work, report, never).result

    def test_with_a_capsule_its_gaussian_is_the_closest(self, taught, folder, report, never):
        result = self.capture(taught, folder, report, never)
        assert (result.recipe.source, result.recipe.r, result.recipe.capsule_digest) == ("capsule", 0, "c")
        assert (result.p1, result.p2, result.gamma2) == (None, None, [])
        assert result.measures.diversity > 0.7
        assert any("FLSD" in note for note in report.notes)

    def test_without_one_latents_are_drawn(self, taught, folder, report, never):
        result = self.capture(taught, folder, report, never, with_capsule=False)
        assert (result.recipe.source, result.recipe.r) == ("latent", 0)
        assert result.recipe.latent_scale > 0
        assert (result.p1, result.p2, result.measures.flsd) == (None, None, None)

    def test_mazes_take_the_passes_that_bring_them_closest(self, taught, folder, report, never):
        result = self.capture(taught, folder, report, never, source="maze")
        assert 1 <= result.recipe.r <= 20
        assert result.p2
        assert len(result.flsd_by_pass) == result.recipe.r + 1
        assert min(result.flsd_by_pass[1:]) == result.flsd_by_pass[-1]

    def test_without_a_capsule_mazes_take_the_paper_s_ten(self, taught, folder, report, never):
        assert self.capture(taught, folder, report, never, with_capsule=False, source="maze").recipe.r == 10

    def test_a_decoder_that_draws_one_picture_leaves_mazes(self, new_model, capture_work, report, never):
        def spoil(network):
            network.decoder.stem.weight.zero_()

        result = run(capture_work(model=new_model(spoil=spoil), source="auto", r="auto"), report, never).result
        assert (result.recipe.source, result.recipe.r) == ("maze", 10)

    def test_p1_is_the_paper_s(self, taught, folder, report, never):
        result = self.capture(taught, folder, report, never, source="maze", r=3)
        eps1 = capsule.read(taught[0].capsule.read_bytes()).facts.eps1
        assert result.p1 == (result.gamma2[-1] < eps1)

    def test_cards_that_are_all_alike_are_told(self, taught, new_model, capture_work, report, never):
        def spoil(network):
            network.decoder.stem.weight.zero_()

        dull = replace(new_model(filters=8, spoil=spoil), capsule=taught[0].capsule, capsule_digest="c")
        result = run(capture_work(model=dull, r=1), report, never).result
        assert result.measures.diversity < 0.01
        assert any("alike" in note for note in report.notes)

    def test_cards_that_differ_are_not(self, taught, folder, report, never):
        assert self.capture(taught, folder, report, never).measures.diversity > 0.7
        assert not any("alike" in note for note in report.notes)

    def test_a_recipe_alone_has_the_digest_of_its_cards(self, taught, folder, report, never):
        kept = self.capture(taught, folder, report, never)
        bare = self.capture(taught, folder, report, never, materialise=False)
        assert (bare.cards_digest, bare.cards_size) == (kept.cards_digest, kept.cards_size)
        assert bare.cards_size == 128 + 300 * 64 * 4
