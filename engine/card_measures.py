"""What a set of cards looks like to the network that made it."""

import numpy as np
import torch

from engine import gaussian
from engine.data import Images
from engine.gaussian import spread
from engine.measures import mae_B
from flashcards.contract.capsule import Capsule
from flashcards.contract.results import CardMeasures

SAMPLE = 1024
SAMPLE_NUMBERS = 2**26  # latents kept in memory
COLLAPSED = 0.3  # of the capsule's spread


@torch.inference_mode()
def measure_cards(
    network: torch.nn.Module, cards: Images, chunk: int, capsule: Capsule | None, device: torch.device
) -> CardMeasures:
    """Of the first cards, which are as good as any: card i depends on its number alone."""
    latents, errors, most = [], [], SAMPLE
    rows = np.arange(min(len(cards), SAMPLE))
    for first in range(0, len(rows), chunk):
        if first >= most:
            break
        x_BCHW = cards.batch(rows[first : first + chunk], device)
        z = network.encoder(x_BCHW)
        errors.append(mae_B(x_BCHW, network.decoder(z)).cpu().numpy())
        latents.append(z.flatten(1).cpu().numpy())
        most = max(chunk, SAMPLE_NUMBERS // latents[0].shape[1])
    z_ND, error_N = np.concatenate(latents), np.concatenate(errors)
    return CardMeasures(
        sample=len(z_ND),
        card_error=float(error_N.mean()),
        spread=spread(z_ND),
        diversity=None if capsule is None else spread(z_ND) / max(1e-12, np.sqrt(2 * capsule.total_variance())),
        flsd=None if capsule is None else gaussian.of_capsule(capsule).frechet(z_ND),
        failing_p1=None if capsule is None else float((error_N >= capsule.facts.eps1).mean()),
    )


def in_words(measures: CardMeasures) -> str | None:
    """What a user should know before these cards stand in for data."""
    if measures.diversity is None or measures.diversity >= COLLAPSED or measures.sample < 2:
        return None
    return (
        f"the cards are alike: two of them lie {measures.diversity:.2f} times as far apart as two real images do, so "
        "the passes have driven them onto a few attractors; take source capsule or latent, or fewer passes"
    )
