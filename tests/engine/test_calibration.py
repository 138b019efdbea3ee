import pytest
import torch

from engine.calibration import apply, fitted, misplaced
from engine.models.layers import Classifier

SPANS = [(0, 2), (2, 3)]


def scores() -> tuple[torch.Tensor, torch.Tensor]:
    """Of cards of two tasks: the head of the card's own task speaks up for one of its classes."""
    generator = torch.Generator().manual_seed(0)
    task_N = torch.arange(200) % 2
    y_NK = torch.randn(200, 5, generator=generator)
    for row, task in enumerate(task_N.tolist()):
        first, count = SPANS[task]
        y_NK[row, first + row % count] += 4
    return y_NK, task_N


def answers(y_NK: torch.Tensor) -> torch.Tensor:
    return (y_NK.argmax(1) >= 2).long()


def changed(y_NK, scales, shifts):
    return torch.cat([y_NK[:, f : f + n] * a + b for (f, n), a, b in zip(SPANS, scales, shifts, strict=True)], dim=1)


def test_a_head_that_speaks_too_loud_is_brought_to_the_scale_of_the_others():
    y_NK, task_N = scores()
    loud = changed(y_NK, (1.0, 5.0), (0.0, 7.0))
    assert (answers(loud) == task_N).float().mean() < 0.7
    scales, shifts = fitted(loud, task_N, SPANS)
    quiet = changed(loud, scales, shifts)
    assert (answers(quiet) == task_N).float().mean() > 0.95
    # With task id nothing changes.
    for first, count in SPANS:
        own = slice(first, first + count)
        assert torch.equal(loud[:, own].argmax(1), quiet[:, own].argmax(1))


def test_it_is_a_minimum():
    y_NK, task_N = scores()
    scales, shifts = fitted(y_NK, task_N, SPANS)
    held = 1e-3

    def objective(a, b):
        a, b = torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64)
        return float(misplaced(y_NK.double(), task_N, SPANS, a, b) + held * (a.log().square().sum() + b.square().sum()))

    best = objective(scales, shifts)
    for place in range(2):
        for step in (-0.02, 0.02):
            moved = [list(scales), list(shifts)]
            moved[0][place] += step
            assert objective(*moved) > best
            moved = [list(scales), list(shifts)]
            moved[1][place] += step
            assert objective(*moved) > best


def test_the_loss_by_hand():
    y, one, zero = torch.tensor([[0.0, 1.0, 2.0, 0.0, 0.0]]), torch.ones(2), torch.zeros(2)
    p = torch.softmax(y, 1)[0]
    assert misplaced(y, torch.tensor([0]), SPANS, one, zero) == pytest.approx(float(-p[:2].sum().log()))


def test_it_becomes_part_of_the_heads():
    """The first task has two heads, as that of a classifier which a learner began with may have."""
    classifier = Classifier(torch.nn.Flatten(), 3, (2, 2, 3), torch.Generator().manual_seed(0))
    x = torch.rand(4, 3)
    before = classifier(x)
    apply(classifier, [(0, 4), (4, 3)], (2.0, 0.5), (1.0, -1.0))
    after = classifier(x)
    assert torch.allclose(after[:, :4], 2 * before[:, :4] + 1)
    assert torch.allclose(after[:, 4:], 0.5 * before[:, 4:] - 1)
