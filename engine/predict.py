"""The predict job: a few images in, what the network says to them out."""

import io
import time
from collections.abc import Callable

import numpy as np
import torch

from engine import pictures
from engine.class_measures import log_probabilities, scores
from engine.class_plots import called
from engine.data import Images, has_labels, load_labels
from engine.errors import DatasetUnfit, Diverged
from engine.evaluate import open_split
from engine.evaluate_classifier import TOLD_CLASSES, refuse_infinite
from engine.files import write_whole
from engine.measures import mae_B
from engine.models import Network, chunk_size
from engine.probe import forward_unverified
from engine.weights import load_network
from engine.work import Outcome, Product, Report, Work
from flashcards.contract.class_results import Classified, PredictResult, Reconstructed
from flashcards.contract.specs import PredictSpec

ANSWERS = Product("reconstructions.npy", "application/octet-stream", shows_data=True)
SCORES = Product("scores.npy", "application/octet-stream")


def predict(work: Work, report: Report, stop: Callable[[], bool]) -> Outcome:
    began = time.monotonic()
    model, device = work.model, torch.device(work.device)
    network = load_network(model, device)
    unverified = forward_unverified(network, model, device)
    split, images, rows = _choose(work, report)
    answer = _classify if model.architecture.task == "classify" else _reconstruct
    said, products = answer(work, network, split, images, rows, device)
    result = PredictResult(forward_unverified=unverified, split=split, **said, seconds=time.monotonic() - began)
    return Outcome(result, products)


def _choose(work: Work, report: Report) -> tuple[str, Images, np.ndarray]:
    spec: PredictSpec = work.spec
    split, images = open_split(work, spec.split, report)
    rows = np.arange(min(spec.limit, len(images))) if spec.rows is None else np.array(spec.rows)
    if rows.max() >= len(images):
        raise DatasetUnfit(f"there is no row {rows.max()}: split {split} has {len(images):,} images")
    return split, images, rows


@torch.inference_mode()
def _reconstruct(
    work: Work, network: Network, split: str, images: Images, rows: np.ndarray, device: torch.device
) -> tuple[dict[str, object], list[Product]]:
    """The sheet has an image and what became of it below each other, eight to a row."""
    chunk, answers, errors = chunk_size(work.model.architecture, work.model.input), [], []
    for first in range(0, len(rows), chunk):
        x_BCHW = images.batch(rows[first : first + chunk], device)
        y_BCHW = network(x_BCHW)
        errors += mae_B(x_BCHW, y_BCHW).tolist()
        answers.append(y_BCHW.permute(0, 2, 3, 1).cpu().numpy())
    y_NHWC = np.concatenate(answers)
    if not np.isfinite(errors).all():
        raise Diverged("the network gives no finite answer to some of these images: look at its weights")
    _save_array(work, ANSWERS, y_NHWC)
    picture = pictures.save_pairs(work.out, images, rows, y_NHWC)
    told = [Reconstructed(row=int(row), mae=error) for row, error in zip(rows, errors, strict=True)]
    return {"reconstructed": told}, [ANSWERS, picture]


def _classify(
    work: Work, network: Network, split: str, images: Images, rows: np.ndarray, device: torch.device
) -> tuple[dict[str, object], list[Product]]:
    architecture, names, path = work.model.architecture, work.dataset.labels, work.dataset.path
    y_NK = scores(network, images, rows, chunk_size(architecture, work.model.input), device)
    refuse_infinite(y_NK)
    p_NK = np.exp(log_probabilities(y_NK))
    truths = load_labels(path, split)[rows].tolist() if has_labels(path, split) else [None] * len(rows)
    _save_array(work, SCORES, p_NK.astype(np.float32))
    told = [
        Classified(
            row=int(row),
            label=int(p_K.argmax()),
            name=called(names, int(p_K.argmax())),
            confidence=float(p_K.max()),
            scores=p_K.tolist() if len(p_K) <= TOLD_CLASSES else None,
            truth=truth,
        )
        for row, p_K, truth in zip(rows, p_NK, truths, strict=True)
    ]
    return {"classified": told}, [SCORES]


def _save_array(work: Work, product: Product, array: np.ndarray) -> None:
    buffer = io.BytesIO()
    np.save(buffer, array)
    write_whole(work.out / product.name, buffer.getvalue())
