"""Heads of different tasks on one scale, found on cards of all tasks alike.

Each head learnt among its own classes, on images where the others saw cards: without task id the head that happens to
speak the loudest would win. Once the autoencoder knows the new task too, cards of every task are to be had, equally
many and equally blurred. With y_t the scores of task t's head, a and b are chosen by which task a card c is of:

    y_t' = a_t y_t + b_t,    a, b = argmin mean_c -log sum_{k of the card's task} softmax(y'(c))_k + e (log(a)^2 + b^2)

Within a head nothing changes places, so what is answered with task id stays as it is. a and b become part of the head.
"""

from collections.abc import Sequence

import numpy as np
import torch

from engine.models import Classifier

CARDS = 512  # a task
ROUNDS = 100
HELD = 1e-3  # e: where cards say nothing, heads stay as they are
Spans = Sequence[tuple[int, int]]


def fitted(y_NK: torch.Tensor, task_N: torch.Tensor, spans: Spans) -> tuple[list[float], list[float]]:
    """a and b of each task; `task_N` is the task of each card, 0 being the first."""
    y_NK = y_NK.double()
    scale_T = torch.zeros(len(spans), dtype=torch.float64, requires_grad=True)  # log a
    shift_T = torch.zeros(len(spans), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([scale_T, shift_T], max_iter=ROUNDS, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = misplaced(y_NK, task_N, spans, scale_T.exp(), shift_T)
        loss = loss + HELD * (scale_T.square().sum() + shift_T.square().sum())
        loss.backward()
        return loss

    optimizer.step(closure)
    return scale_T.detach().exp().tolist(), shift_T.tolist()


def misplaced(
    y_NK: torch.Tensor, task_N: torch.Tensor, spans: Spans, scale_T: torch.Tensor, shift_T: torch.Tensor
) -> torch.Tensor:
    """Mean of -log p of the task that a card is of."""
    # log sum exp of the scores of each task: their softmax is the probability of a task.
    weights = [
        torch.logsumexp(scale_T[task] * y_NK[:, first : first + count] + shift_T[task], dim=1)
        for task, (first, count) in enumerate(spans)
    ]
    return torch.nn.functional.cross_entropy(torch.stack(weights, dim=1), task_N)


@torch.no_grad()
def apply(classifier: Classifier, spans: Spans, scales: Sequence[float], shifts: Sequence[float]) -> None:
    """Into the weights of the heads. A task may have several: those of a classifier that a learner began with."""
    first = 0
    for head in classifier.heads:
        task = next(place for place, (start, count) in enumerate(spans) if start <= first < start + count)
        head.weight.mul_(scales[task])
        head.bias.mul_(scales[task]).add_(shifts[task])
        first += len(head.bias)


def cards_of(starts: Sequence[object], chunk: int, classifier: Classifier) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores of cards of every task, and their tasks. `starts` make them: (first card, how many) -> x_BCHW."""
    scores, tasks = [], []
    with torch.inference_mode():
        for task, start in enumerate(starts):
            for first in range(0, CARDS, chunk):
                y_BK = classifier(start(first, chunk))[: CARDS - first]
                scores.append(y_BK.cpu())
                tasks.append(np.full(len(y_BK), task))
    return torch.cat(scores).clone(), torch.from_numpy(np.concatenate(tasks))
