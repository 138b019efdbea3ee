"""What the first step of a process pays for once: imports that torch puts off (a second and more), native libraries."""

import torch

from engine.device import prepare
from engine.models import build
from flashcards.contract.architecture import BlkArchitecture
from flashcards.contract.image import ImageShape


def warm_up() -> None:
    """One step of a network too small to matter. Not a pass backward: that starts threads, and this is forked from."""
    prepare("cpu", 1)
    network = build(BlkArchitecture(blocks=1, filters=2), ImageShape(8, 8, 1), torch.Generator().manual_seed(0))
    optimizer = torch.optim.Adam(network.parameters(), fused=True)
    with torch.no_grad():
        network(torch.zeros(2, 1, 8, 8)).abs().mean()
    for parameter in network.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
