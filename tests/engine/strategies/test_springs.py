"""`ewc` and `si`: weights that mattered are held."""

import pytest
import torch

from engine.strategies.springs import Springs, spring_state


def test_the_pull_is_the_gradient_of_the_penalty():
    network = torch.nn.Linear(3, 2)
    generator = torch.Generator().manual_seed(0)
    state = {}
    for name, parameter in network.named_parameters():
        state[f"anchor.{name}"] = torch.randn(parameter.shape, generator=generator)
        state[f"stiffness.{name}"] = torch.rand(parameter.shape, generator=generator)
    penalty = sum(
        (state[f"stiffness.{name}"] * (parameter - state[f"anchor.{name}"]).square()).sum()
        for name, parameter in network.named_parameters()
    )
    expected = torch.autograd.grad(0.7 * penalty, list(network.parameters()))
    for parameter in network.parameters():
        parameter.grad = torch.ones_like(parameter)
    Springs(network, state, weight=0.7).pull()
    for parameter, gradient in zip(network.parameters(), expected, strict=True):
        assert torch.allclose(parameter.grad, 1 + gradient)


def test_springs_add_up_around_the_newest_weights():
    network = torch.nn.Linear(2, 1)
    ones = {name: torch.ones_like(parameter) for name, parameter in network.named_parameters()}
    first = spring_state(network, ones, {})
    torch.nn.init.zeros_(network.weight)
    second = spring_state(network, ones, first)
    assert (second["stiffness.weight"] == 2).all()
    assert (second["anchor.weight"] == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "weights"), [("ewc", (1, 100)), ("si", (0.1, 3))])
def test_the_stiffer_the_less_is_forgotten_and_the_less_is_learnt(new_learner, kind, weights):
    first = new_learner().learn("low", strategy={"kind": kind})
    loose, stiff = (
        first.learn("high", strategy={"kind": kind, "weight": weight})
        for weight in {"ewc": (1, 100), "si": (0.1, 3)}[kind]
    )
    assert stiff.result.forgetting < 0.75 * loose.result.forgetting
    assert stiff.result.measures[1].mae > loose.result.measures[1].mae
    assert stiff.result.memory.state == 2 * stiff.result.memory.network
    assert "state.safetensors" in stiff.names


def test_without_importances_it_is_said_that_nothing_holds(new_learner, new_report):
    first = new_learner().learn("low", strategy={"kind": "ewc"})
    report = new_report()
    first.learn("high", report, strategy={"kind": "si"}, epochs=12)
    assert any("of no use to si" in note for note in report.notes)
    assert any("nothing holds" in note for note in report.notes)
