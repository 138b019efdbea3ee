"""The distill job, Algorithm 3 of the paper: a new network, of any architecture, learns from cards alone.

phi = argmin mean |F_n - g(F_n)| over the cards F_n. What it has learnt is then compared with its parent on cards that
were held out, and on real images where a dataset is lent for it.
"""

from collections.abc import Callable

import numpy as np
import torch

from engine import capsule
from engine.data import Images
from engine.errors import DatasetUnfit
from engine.evaluate import choose_images
from engine.files import digest_of
from engine.lesson import plain_lesson
from engine.measures import mae_B
from engine.pictures import save_reconstructions
from engine.teach import Taught, teach
from engine.weights import WEIGHTS, load_network
from engine.work import Outcome, Product, Report, Work
from flashcards.contract.results import Compared, DistillResult
from flashcards.contract.specs import DistillSpec

MEASURED = 5000  # cards that the child's capsule is measured on


def distill(work: Work, report: Report, stop: Callable[[], bool]) -> Outcome:
    spec: DistillSpec = work.spec
    parent, device = work.model, torch.device(work.device)
    cards = Images(np.load(work.cards.path, mmap_mode="r"), parent.range)
    if (words := spec.architecture.misfit(cards.shape)) is not None:
        raise DatasetUnfit(words)

    def show(taught: Taught) -> list[Product]:
        return [save_reconstructions(work.out, taught.network, cards, taught.validation_rows, device, shows_data=False)]

    taught = teach(work, plain_lesson(spec, cards), report, stop, show)
    parent_network = load_network(parent, device)
    compared = [_compare("cards", parent_network, taught, cards, taught.validation_rows, device)]
    if work.dataset is not None:
        _, images, rows = choose_images(work, report)
        compared.append(_compare("dataset", parent_network, taught, images, rows, device))

    rows = np.arange(min(len(cards), MEASURED))
    meter = capsule.measure(taught.network, cards, rows, taught.chunk, device, taught.stop_if(stop))
    measured = meter.capsule(digest_of(work.out / WEIGHTS.name), measured_on="cards")
    result = DistillResult(
        parameters=spec.architecture.parameters(cards.shape),
        parent_parameters=parent.architecture.parameters(parent.input),
        cards=len(cards),
        compared=compared,
        capsule=measured.facts,
        **taught.told(work),
    )
    return Outcome(result, [*taught.products, capsule.save(work.out, measured)])


@torch.inference_mode()
def _compare(
    on: str, parent: torch.nn.Module, taught: Taught, images: Images, rows: np.ndarray, device: torch.device
) -> Compared:
    parts = []
    for first in range(0, len(rows), taught.chunk):
        x_BCHW = images.batch(rows[first : first + taught.chunk], device)
        f_BCHW, g_BCHW = parent(x_BCHW), taught.network(x_BCHW)
        parts.append(torch.stack([mae_B(x_BCHW, f_BCHW), mae_B(x_BCHW, g_BCHW), mae_B(f_BCHW, g_BCHW)]).cpu().double())
    parent_mae, child_mae, agreement_mae = torch.cat(parts, dim=1).mean(1).tolist()
    return Compared(
        on=on,
        images=len(rows),
        parent_mae=parent_mae,
        child_mae=child_mae,
        ratio=child_mae / max(parent_mae, 1e-12),
        agreement_mae=agreement_mae,
    )
