"""What each strategy does to a classifier, on problems small enough to follow by hand.

Images are of one row of two pixels, the latent is a linear map of them, and two tasks have two classes each.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from engine.aims import Classify
from engine.data import Images
from engine.models.layers import Classifier
from engine.resume import Standing
from engine.strategies.agem import AveragedGradients, turned_aside
from engine.strategies.base import Strategy
from engine.strategies.class_flashcards import ClassFlashcards
from engine.strategies.coreset import CoresetReplay
from engine.strategies.distilling import distilled, padded
from engine.strategies.eeil import EndToEnd
from engine.strategies.ewc import ElasticWeights
from engine.strategies.exemplars import herded
from engine.strategies.fisher import information
from engine.strategies.imm import MomentMatching
from engine.strategies.joint import Joint
from engine.strategies.lwf import LearningWithoutForgetting
from engine.strategies.naive import Naive
from engine.strategies.replay import Replay
from engine.strategies.setting import Classes, Setting
from engine.strategies.si import SynapticIntelligence
from engine.strategies.vae_replay import old_answers
from flashcards.contract.heads import Place
from flashcards.contract.strategies import strategy_spec

CPU = torch.device("cpu")


def network(heads=(2, 2), seed=0) -> Classifier:
    generator = torch.Generator().manual_seed(seed)
    encoder = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(2, 3))
    torch.nn.init.normal_(encoder[1].weight, generator=generator)
    torch.nn.init.normal_(encoder[1].bias, generator=generator)
    return Classifier(encoder, 3, heads, generator)


def pixels(count: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 1, 2, 1)).astype(np.float32)


@pytest.fixture
def setting(report):
    """Eight new images of classes 2 and 3; six old ones of classes 0 and 1 were kept."""

    def make(strategy: dict, state=None, number: int = 2, kept=True, base=None) -> Setting:
        images = Images(pixels(8), (-9.0, 9.0))
        spec = SimpleNamespace(seed=0, batch_size=4, epochs=4, validation_share=0.1)
        tasks = [SimpleNamespace(name=f"task {n}") for n in range(1, number)]
        old = {"x_1": pixels(6, seed=2), "y_1": np.array([0, 1, 0, 1, 0, 1])}
        place = Place((2, 2), 2, 2, 0) if number > 1 else Place((2,), 0, 2, 0)
        labels = np.arange(8) % 2 + place.first
        return Setting(
            work=SimpleNamespace(spec=spec, learner=SimpleNamespace(tasks=tasks)),
            config=strategy_spec.validate_python(strategy),
            base=(base or network((2,), seed=5)).requires_grad_(False) if number > 1 else None,
            images=images,
            train_rows=np.arange(8),
            validation_rows=np.arange(0),
            own_rows=np.arange(8),
            noise=None,
            chunk=64,
            device=CPU,
            report=report,
            between=lambda: None,
            state=state or {},
            kept_images=old if kept and number > 1 else {},
            classes=Classes(labels, place, [(0, 2)][: number - 1], None),
        )

    return make


def begun(strategy: Strategy, taught: Classifier, span=None) -> Strategy:
    """Before the first batch of the first epoch."""
    optimizer = torch.optim.SGD(taught.parameters(), lr=0.1)
    training = SimpleNamespace(network=taught, generator=None, optimizer=optimizer)
    material = strategy.material()
    lesson = SimpleNamespace(noise=None, aim=Classify(material.labels_N, span), train_rows=material.train_rows)
    strategy.begin(training, lesson)
    strategy.begin_epoch(1)
    return strategy


def batch(setting: Setting) -> tuple[torch.Tensor, torch.Tensor]:
    rows = np.arange(4)
    return setting.images.batch(rows, CPU), torch.from_numpy(setting.classes.labels_N[rows])


def gradient(loss: torch.Tensor, taught: Classifier) -> list[torch.Tensor]:
    return list(torch.autograd.grad(loss, list(taught.parameters())))


def test_naive_tells_the_new_classes_apart_among_themselves(setting):
    found, taught = setting({"kind": "naive"}), network()
    strategy = begun(Naive(found), taught, span=(2, 2))
    x, labels = batch(found)
    loss, error = strategy.loss(x, labels, Standing())
    assert loss == error
    assert torch.allclose(loss, F.cross_entropy(taught(x)[:, 2:], labels - 2))
    loss.backward()
    assert (taught.heads[0].weight.grad == 0).all()
    assert (taught.heads[1].weight.grad != 0).any()
    assert not strategy.sees_old


def test_joint_learns_the_union_with_its_labels(setting):
    strategy = Joint(setting({"kind": "joint"}))
    material = strategy.material()
    assert material.labels_N.tolist() == [2, 3] * 4 + [0, 1] * 3
    assert len(material.images) == 14
    assert strategy.sees_old
    kept = strategy.end(network()).images
    assert kept["y_1"].tolist() == [0, 1] * 3
    assert kept["y_2"].tolist() == [2, 3] * 4


def test_coreset_replays_images_with_their_labels(setting):
    found, taught = setting({"kind": "coreset", "size": 4, "weight": 0.5}), network()
    strategy = begun(CoresetReplay(found), taught)
    x, labels = batch(found)
    loss, error = strategy.loss(x, labels, Standing())
    rows = strategy.replay.order[:4]
    old = torch.from_numpy(found.kept_images["x_1"][rows]).permute(0, 3, 1, 2)
    answers = torch.from_numpy(found.kept_images["y_1"][rows])
    assert torch.allclose(error, F.cross_entropy(taught(x), labels))
    assert torch.allclose(loss, error + 0.5 * F.cross_entropy(taught(old), answers))
    kept = strategy.end(taught).images
    assert (len(kept["x_1"]), len(kept["x_2"]), len(kept["y_1"]), len(kept["y_2"])) == (2, 2, 2, 2)
    for x, label in zip(kept["x_2"], kept["y_2"], strict=True):
        (row,) = np.flatnonzero((found.images.x_NHWC == x).all((1, 2, 3)))
        assert found.classes.labels_N[row] == label


def test_old_answers_are_held_task_by_task_at_a_temperature():
    y, old = torch.tensor([[1.0, 0.0, 3.0]]), torch.tensor([[0.0, 2.0]])
    warm = torch.softmax(torch.tensor([0.0, 1.0]), 0)
    said = torch.log_softmax(torch.tensor([0.5, 0.0]), 0)
    assert torch.allclose(distilled(y, old, [(0, 2)], 2.0), -4 * (warm * said).sum())
    assert distilled(y, torch.tensor([[1.0, 0.0]]), [(0, 2)], 1.0) == pytest.approx(
        -(torch.softmax(y[0, :2], 0) * torch.log_softmax(y[0, :2], 0)).sum()
    )


def test_lwf_adds_the_distance_to_the_old_answers(setting):
    found, taught = setting({"kind": "lwf", "weight": 0.3}), network()
    strategy = begun(LearningWithoutForgetting(found), taught, span=(2, 2))
    x, labels = batch(found)
    loss, error = strategy.loss(x, labels, Standing())
    p = torch.softmax(found.base(x) / 2, 1)
    held = -4 * (p * torch.log_softmax(taught(x)[:, :2] / 2, 1)).sum(1).mean()
    assert torch.allclose(loss, error + 0.3 * held)


def test_the_fisher_information_is_the_mean_of_squared_gradients(setting):
    found, taught = setting({"kind": "ewc"}), network()
    aim = Classify(found.classes.labels_N, (2, 2))
    told = information(found, taught, aim)
    taught.requires_grad_()
    parameters = list(taught.parameters())
    squares = [torch.zeros_like(parameter) for parameter in parameters]
    for row in range(8):
        x, label = found.images.batch(np.array([row]), CPU), found.classes.labels_N[row] - 2
        log_p = torch.log_softmax(taught(x)[0, 2:], 0)[label]
        gradients = torch.autograd.grad(log_p, parameters, allow_unused=True, materialize_grads=True)
        for square, part in zip(squares, gradients, strict=True):
            square += part**2 / 8
    for (name, _), square in zip(taught.named_parameters(), squares, strict=True):
        assert torch.allclose(told[name], square, atol=1e-7)
    assert (told["heads.0.weight"] == 0).all()


def test_the_pull_of_ewc_is_the_gradient_of_its_penalty(setting):
    """0.5 lambda sum F (theta - theta*)^2, over the weights that there were."""
    generator = torch.Generator().manual_seed(3)
    state = {}
    for name, parameter in network((2,)).named_parameters():
        state[f"anchor.{name}"] = torch.randn(parameter.shape, generator=generator)
        state[f"stiffness.{name}"] = torch.rand(parameter.shape, generator=generator)
    found, taught = setting({"kind": "ewc", "weight": 7.0}, state), network()
    strategy = begun(ElasticWeights(found), taught, span=(2, 2))
    x, labels = batch(found)
    loss, _ = strategy.loss(x, labels, Standing())
    named = dict(taught.named_parameters())
    penalty = sum(
        (state[f"stiffness.{name}"] * (named[name] - state[f"anchor.{name}"]) ** 2).sum()
        for name in named
        if f"anchor.{name}" in state
    )
    expected = gradient(loss + 0.5 * 7.0 * penalty, taught)
    strategy.loss(x, labels, Standing())[0].backward()
    strategy.after_backward()
    for parameter, each in zip(taught.parameters(), expected, strict=True):
        assert torch.allclose(parameter.grad, each, atol=1e-5)


def test_si_credits_each_weight_with_the_fall_it_brought_about(setting):
    found, taught = setting({"kind": "si", "damping": 0.1}), network()
    strategy = begun(SynapticIntelligence(found), taught, span=(2, 2))
    x, labels = batch(found)
    start = [parameter.detach().clone() for parameter in taught.parameters()]
    path = [torch.zeros_like(each) for each in start]
    for _ in range(3):
        strategy.loss(x, labels, Standing())[0].backward()
        strategy.after_backward()
        steps = [-0.1 * parameter.grad for parameter in taught.parameters()]
        for way, parameter, step in zip(path, taught.parameters(), steps, strict=True):
            way -= parameter.grad * step
        with torch.no_grad():
            for parameter, step in zip(taught.parameters(), steps, strict=True):
                parameter += step
        strategy.after_step()
        taught.zero_grad()
    strategy.keep_best()
    state = strategy.end(taught).state
    for (name, end), began, way in zip(taught.named_parameters(), start, path, strict=True):
        expected = way.clamp_min(0) / ((end - began) ** 2 + 0.1)
        assert torch.allclose(state[f"stiffness.{name}"], expected, atol=1e-6)


class TestImm:
    def test_mean_gives_each_task_an_equal_share(self, setting):
        found, taught = setting({"kind": "imm", "merge": "mean"}), network()
        strategy = begun(MomentMatching(found), taught, span=(2, 2))
        old, new = found.base.state_dict(), {name: each.clone() for name, each in taught.state_dict().items()}
        merged = strategy.merge(taught)
        assert torch.allclose(merged["heads.0.weight"], (old["heads.0.weight"] + new["heads.0.weight"]) / 2)
        assert torch.equal(merged["heads.1.weight"], new["heads.1.weight"])
        assert strategy.end(taught).state == {}

    def test_mode_weighs_each_weight_by_its_information(self, setting):
        names = dict(network((2,)).named_parameters())
        state = {name: torch.full_like(parameter, 3.0) for name, parameter in names.items()}
        found, taught = setting({"kind": "imm", "merge": "mode"}, state), network()
        strategy = begun(MomentMatching(found), taught, span=(2, 2))
        old, new = found.base.state_dict(), {name: each.clone() for name, each in taught.state_dict().items()}
        merged, now = strategy.merge(taught), strategy.information
        for name in names:
            expected = (3 * old[name] + now[name] * new[name]) / (3 + now[name])
            assert torch.allclose(merged[name], expected, atol=1e-5)
        assert torch.equal(merged["heads.1.bias"], new["heads.1.bias"])
        kept = strategy.end(taught).state
        assert torch.allclose(kept["heads.0.weight"], 3 + now["heads.0.weight"])

    def test_while_it_learns_it_is_held_near_the_old_weights(self, setting):
        found, taught = setting({"kind": "imm", "weight": 0.5}), network()
        strategy = begun(MomentMatching(found), taught, span=(2, 2))
        x, labels = batch(found)
        old, named = found.base.state_dict(), dict(taught.named_parameters())
        loss, _ = strategy.loss(x, labels, Standing())
        apart = sum(((named[name] - old[name]) ** 2).sum() for name in old)
        expected = gradient(loss + 0.25 * apart, taught)
        strategy.loss(x, labels, Standing())[0].backward()
        strategy.after_backward()
        for parameter, each in zip(taught.parameters(), expected, strict=True):
            assert torch.allclose(parameter.grad, each, atol=1e-5)


class TestAgem:
    def test_a_step_against_the_memory_is_turned_aside(self):
        g, r = [torch.tensor([1.0, 1.0])], [torch.tensor([-2.0, 0.0])]
        (turned,) = turned_aside(g, r)
        assert turned.tolist() == [0.0, 1.0]

    def test_one_that_agrees_is_left_alone(self):
        g, r = [torch.tensor([1.0, 1.0])], [torch.tensor([2.0, -1.0])]
        assert turned_aside(g, r) is g

    def test_the_memory_never_speaks_against_what_is_left(self, setting):
        found = setting({"kind": "agem", "size": 4})
        turns = 0
        for seed in range(12):
            taught = network(seed=seed)
            strategy = begun(AveragedGradients(found), taught)
            x, labels = batch(found)
            strategy.loss(x, labels, Standing())[0].backward()
            before = [parameter.grad.clone() for parameter in taught.parameters()]
            strategy.after_backward()
            rows = strategy.replay.order[:4]
            old = torch.from_numpy(found.kept_images["x_1"][rows]).permute(0, 3, 1, 2)
            r = gradient(F.cross_entropy(taught(old), torch.from_numpy(found.kept_images["y_1"][rows])), taught)
            after = [parameter.grad for parameter in taught.parameters()]
            along = float(sum((g * m).sum() for g, m in zip(after, r, strict=True)))
            assert along > -1e-4
            turns += not all(torch.equal(*pair) for pair in zip(before, after, strict=True))
        assert turns > 0


class TestEeil:
    def test_labels_and_old_answers_of_new_and_kept_images(self, setting):
        found, taught = setting({"kind": "eeil", "weight": 0.5, "temperature": 2.0}), network()
        strategy = begun(EndToEnd(found), taught)
        x, labels = batch(found)
        loss, error = strategy.loss(x, labels, Standing())
        rows = strategy.replay.order[:4]
        both = torch.cat([x, torch.from_numpy(found.kept_images["x_1"][rows]).permute(0, 3, 1, 2)])
        old_labels = torch.from_numpy(found.kept_images["y_1"][rows])
        y, p = taught(both), torch.softmax(found.base(both) / 2, 1)
        held = -4 * (p * torch.log_softmax(y[:, :2] / 2, 1)).sum(1).mean()
        assert torch.allclose(error, F.cross_entropy(y[:4], labels))
        assert torch.allclose(loss, error + F.cross_entropy(y[4:], old_labels) + 0.5 * held)

    def test_the_end_is_in_balance_and_slower(self, setting):
        strategy = begun(EndToEnd(setting({"kind": "eeil", "balanced": 0.5})), network())
        assert not strategy.in_balance
        strategy.begin_epoch(3)
        strategy.begin_step(0.1)
        assert strategy.in_balance
        assert strategy.optimizer.param_groups[0]["lr"] == pytest.approx(0.01)
        labels = strategy.setting.classes.labels_N[strategy.balance]
        assert np.bincount(labels).tolist() == [0, 0, 3, 3]  # as many of each new class as exemplars of an old one

    def test_exemplars_are_in_balance_over_classes(self, setting):
        strategy = begun(EndToEnd(setting({"kind": "eeil", "size": 8})), network())
        kept = strategy.end(network()).images
        assert np.bincount(np.concatenate([kept["y_1"], kept["y_2"]])).tolist() == [2, 2, 2, 2]

    def test_herding_follows_the_mean(self, setting):
        """Latents on a circle: the first chosen points the way of the mean, both together more so than one."""
        found = setting({"kind": "eeil"})
        angles = np.array([0.0, 1.0, 0.45, 2.0])
        look_N = np.stack([np.cos(angles), np.sin(angles)], 1)
        found = Setting(**{**vars(found), "images": Images(look_N[:, None, :, None].astype(np.float32), (-1.0, 1.0))})
        taught = SimpleNamespace(encoder=torch.nn.Flatten())
        chosen = herded(found, taught, np.arange(4), np.zeros(4, int), 2)
        mean = look_N.mean(0)
        far = [np.linalg.norm(look_N[row] - mean) for row in range(4)]
        assert chosen[0] == int(np.argmin(far)) == 1
        pairs = [np.linalg.norm((look_N[1] + look_N[row]) / 2 - mean) if row != 1 else np.inf for row in range(4)]
        assert chosen[1] == int(np.argmin(pairs))


class TestFlashcards:
    @pytest.fixture
    def cards(self):
        return Images(pixels(8, seed=9), (-9.0, 9.0))

    def made(self, found: Setting, taught: Classifier, cards: Images) -> ClassFlashcards:
        strategy = ClassFlashcards.__new__(ClassFlashcards)
        strategy.setting, strategy.weight, strategy.fresh = found, found.config.weight, False
        strategy.sources = [SimpleNamespace(make=lambda epoch: cards.x_NHWC)]
        strategy.heads_KL = torch.cat([head.weight for head in found.base.heads])
        strategy._make(0)
        return begun(strategy, taught)

    def test_soft_labels_and_latents_of_cards_are_held(self, setting, cards):
        found, taught = setting({"kind": "flashcards", "weight": 0.5, "loss": "soft_labels"}), network()
        strategy = self.made(found, taught, cards)
        x, labels = batch(found)
        loss, error = strategy.loss(x, labels, Standing())
        c = cards.batch(strategy.replay.order[:4], CPU)
        p = padded(torch.softmax(found.base(c), 1), 4)
        assert (p[:, 2:] == 0).all()
        soft = -(p * torch.log_softmax(taught(c), 1)).sum(1).mean()
        drift = ((taught.encoder(c) - found.base.encoder(c)) ** 2).mean()
        assert torch.allclose(error, F.cross_entropy(taught(x), labels))
        assert torch.allclose(loss, error + 0.5 * (soft + drift), atol=1e-6)

    @pytest.mark.parametrize(("told", "ratio"), [({}, 1), ({"ratio": 2.0}, 2)])
    def test_transplant_gives_every_other_card_what_is_fine_in_a_new_image(self, setting, cards, told, ratio):
        found, taught = setting({"kind": "flashcards", "weight": 0.5, **told}), network()
        maker = torch.nn.AvgPool2d(3, stride=1, padding=1)  # what it leaves out is what is fine
        found = replace(found, classes=replace(found.classes, autoencoder=maker))
        strategy = self.made(found, taught, cards)
        assert strategy.kind == "transplant"
        x, labels = batch(found)
        loss, error = strategy.loss(x, labels, Standing())
        c = cards.batch(strategy.replay.order[: 4 * ratio], CPU).clone()
        c[::2] += (x - maker(x))[[0, 2] * ratio]
        c = c.clamp(*found.images.range)
        soft = -(padded(torch.softmax(found.base(c), 1), 4) * torch.log_softmax(taught(c), 1)).sum(1).mean()
        drift = ((taught.encoder(c) - found.base.encoder(c)) ** 2).mean()
        held = distilled(taught(x), found.base(x), found.classes.spans, 2.0)
        assert torch.allclose(error, F.cross_entropy(taught(x), labels))
        assert torch.allclose(loss, error + 0.5 * (soft + drift + held), atol=1e-6)

    def test_sessions_of_the_same_classes_learn_cards_as_in_the_paper(self, setting, cards):
        found = setting({"kind": "flashcards"})
        same = replace(found.classes, place=Place((2,), 0, 2, 0))
        strategy = self.made(replace(found, classes=same), network(), cards)
        assert strategy.kind == "soft_labels"

    def test_local_distill_lets_heads_alone_tell_tasks_apart(self, setting, cards):
        found, taught = setting({"kind": "flashcards", "weight": 0.5, "loss": "local_distill"}), network()
        strategy = self.made(found, taught, cards)
        x, labels = batch(found)
        loss, error = strategy.loss(x, labels, Standing())
        c = cards.batch(strategy.replay.order[:4], CPU)
        p, z = torch.softmax(found.base(c), 1), taught.encoder(c)
        local = F.cross_entropy(taught(x)[:, 2:], labels - 2)
        kept = -(p * torch.log_softmax(taught(c)[:, :2], 1)).sum(1).mean()
        drift = ((z - found.base.encoder(c)) @ found.base.heads[0].weight.T).square().mean()
        apart = F.cross_entropy(taught(x), labels) - (padded(p, 4) * torch.log_softmax(taught(c), 1)).sum(1).mean()
        assert torch.allclose(error, local)
        assert torch.allclose(loss, local + 0.5 * (kept + drift) + apart, atol=1e-6)
        encoder = list(taught.encoder.parameters())
        found_gradient = torch.autograd.grad(loss, encoder, retain_graph=True)
        expected = torch.autograd.grad(local + 0.5 * (kept + drift), encoder)
        for each, other in zip(found_gradient, expected, strict=True):
            assert torch.allclose(each, other, atol=1e-6)

    def test_what_a_generator_draws_is_answered_as_the_old_network_does(self, setting, cards):
        found, taught = setting({"kind": "vae_replay"}), network()
        strategy = Strategy()
        strategy.setting, strategy.weight = found, 0.5
        strategy.replay, strategy.answers_NK = Replay(cards, 0, 4), old_answers(found, cards)
        begun(strategy, taught)
        x, labels = batch(found)
        loss, error = strategy.loss(x, labels, Standing())
        c = cards.batch(strategy.replay.order[:4], CPU)
        p = padded(torch.softmax(found.base(c), 1), 4)
        assert torch.allclose(loss, error - 0.5 * (p * torch.log_softmax(taught(c), 1)).sum(1).mean(), atol=1e-6)
