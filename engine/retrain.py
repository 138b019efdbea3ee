"""A new network, taught by cards alone: L1 loss, Adam, a fixed number of epochs, every card in each."""

from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional as F

from engine.data import Images, shuffled
from engine.models import Autoencoder
from engine.resume import Training
from flashcards.contract.specs import LearningSpec


def retrain(spec: LearningSpec, cards: Images, device: torch.device, after_batch: Callable[[int], None]) -> Autoencoder:
    """`after_batch` is told the epoch, and may raise."""
    training = Training.begin(spec, spec.architecture, cards.shape, device)
    network, optimizer = training.network, training.optimizer
    network.train()
    for epoch in range(1, spec.epochs + 1):
        order = shuffled(len(cards), spec.seed, epoch)
        batches = np.split(order, range(spec.batch_size, len(order), spec.batch_size))
        for number, rows in enumerate(batches):
            training.now.epoch, training.now.batch = epoch, number
            training.set_rate(spec, len(batches))
            x_BCHW = cards.batch(rows, device)
            y_BCHW, penalty = network.in_training(x_BCHW, training.generator)
            loss = F.l1_loss(y_BCHW, x_BCHW) + penalty
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            after_batch(epoch)
    return network.requires_grad_(False).eval()
