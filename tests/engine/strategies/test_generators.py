"""`vae_replay`, `cl_vae` and `lwf`: what is replayed was never an image."""

from types import SimpleNamespace

import pytest

from engine.aims import Reconstruct
from engine.errors import StrategyUnfit
from engine.run import run
from engine.strategies.vae_replay import GenerativeReplay, generator_of
from flashcards.contract.architecture import architecture_spec
from flashcards.contract.image import ImageShape


def forgets_at_all(first):
    """What there is to lose from this version."""
    return first.learn("high", strategy={"kind": "naive"}).result.forgetting


@pytest.mark.slow
def test_a_generator_beside_the_learner_draws_what_it_replays(new_learner):
    strategy = {"kind": "vae_replay", "count": 200}
    first = new_learner().learn("low", strategy=strategy)
    learnt = first.learn("high", strategy=strategy)
    assert learnt.result.forgetting < 0.6 * forgets_at_all(first)
    assert {"cards.png", "state.safetensors"} <= learnt.names
    assert learnt.result.memory.state > learnt.result.memory.network


@pytest.mark.slow
def test_a_variational_learner_draws_for_itself(new_learner):
    strategy = {"kind": "cl_vae", "count": 200}
    first = new_learner(architecture="vae_2_fil_8").learn("low", strategy=strategy)
    learnt = first.learn("high", strategy=strategy)
    assert learnt.result.forgetting < 0.8 * forgets_at_all(first)
    assert learnt.result.memory.state == 0


def test_a_learner_without_a_prior_is_refused(new_learner, report, never):
    with pytest.raises(StrategyUnfit, match=r"blk_2_fil_8 has none.*vae_4_fil_32"):
        run(new_learner().task("low", strategy={"kind": "cl_vae"}), report, never)


@pytest.mark.slow
def test_lwf_holds_on_to_its_answers(new_learner):
    first = new_learner().learn("low")
    learnt = first.learn("high", strategy={"kind": "lwf", "weight": 0.5})
    assert learnt.result.forgetting < 0.9 * forgets_at_all(first)


@pytest.mark.parametrize(
    ("learner", "image", "generator"),
    [
        ("blk_3_fil_16", ImageShape(32, 32, 3), "vae_3_fil_16"),
        ("conv_ae_8_16", ImageShape(32, 32, 3), "vae_4_fil_32"),
        ("dense_ae_32_8", ImageShape(12, 12, 1), "vae_2_fil_32"),
    ],
)
def test_generators_are_as_the_learner_or_as_the_images_allow(learner, image, generator):
    assert generator_of(architecture_spec.validate_python(learner), image).name == generator


@pytest.mark.parametrize(("optimizer", "beside"), [("adam", 0.02), ("sgd", 0.001)])
def test_the_rate_of_sgd_is_none_for_the_generator(new_learner, setting_of, optimizer, beside):
    told = {"optimizer": optimizer, "learning_rate": 0.02}
    strategy = GenerativeReplay(setting_of(new_learner().task("low", strategy={"kind": "vae_replay"}, **told)))
    lesson = SimpleNamespace(noise=None, aim=Reconstruct(), train_rows=[])
    strategy.begin(SimpleNamespace(network=None, generator=None), lesson)
    assert strategy.optimizer.param_groups[0]["lr"] == beside
    strategy.begin_step(0.01)  # half of what it was, for both
    assert strategy.optimizer.param_groups[0]["lr"] == pytest.approx(beside / 2)


def test_vectors_have_no_generator():
    with pytest.raises(StrategyUnfit, match="take flashcards"):
        generator_of(architecture_spec.validate_python("dense_ae_32_8"), ImageShape(1, 30, 1))
