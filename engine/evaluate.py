"""What a network keeps of images it has not been taught: MAE, PSNR and SSIM, beside the best constant image."""

import json
import time
from collections.abc import Callable

import numpy as np
import torch

from engine.data import Images, hold_out, hold_out_of_each, load_images, load_labels
from engine.errors import DatasetUnfit, Diverged, Stopped
from engine.files import write_whole
from engine.measures import mae_B, mean_error, psnr_B, ssim_B
from engine.models import chunk_size
from engine.pictures import save_reconstructions
from engine.probe import forward_unverified
from engine.weights import load_network
from engine.work import Outcome, Product, Report, Work
from flashcards.contract.resources import Progress
from flashcards.contract.results import EvaluateResult
from flashcards.contract.specs import EvaluateSpec

METRICS = Product("metrics.json", "application/json")
QUANTILES = ("0.05", "0.25", "0.5", "0.75", "0.95")
HELD_OUT_SHARE, HELD_OUT_SEED = 0.1, 0  # the defaults of a training: what such a training never learnt from


@torch.inference_mode()
def evaluate(work: Work, report: Report, stop: Callable[[], bool]) -> Outcome:
    began = time.monotonic()
    model, device = work.model, torch.device(work.device)
    network = load_network(model, device)
    unverified = forward_unverified(network, model, device)
    split, images, rows = choose_images(work, report)
    chunk = chunk_size(model.architecture, model.input)

    parts = []
    for first in range(0, len(rows), chunk):
        if stop():
            raise Stopped(f"stopped after {first} of {len(rows)} images")
        x_BCHW = images.batch(rows[first : first + chunk], device)
        y_BCHW = network(x_BCHW)
        pair = (x_BCHW, y_BCHW)
        measured_3B = torch.stack([mae_B(*pair), psnr_B(*pair, model.range), ssim_B(*pair, model.range)])
        parts.append(measured_3B.cpu().double().numpy())
        tell(report, first + len(x_BCHW), len(rows), time.monotonic() - began)
    mae_N, psnr_N, ssim_N = np.concatenate(parts, axis=1)
    infinite = int((~np.isfinite(mae_N)).sum())
    if infinite:
        raise Diverged(f"the network gives no finite answer to {infinite} of {len(rows)} images: look at its weights")

    median_CHW = images.median(rows).to(device)
    result = EvaluateResult(
        forward_unverified=unverified,
        split=split,
        images=len(rows),
        mae=float(mae_N.mean()),
        psnr=float(psnr_N.mean()),
        ssim=float(ssim_N.mean()),
        mae_quantiles={q: float(np.quantile(mae_N, float(q))) for q in QUANTILES},
        constant_mae=mean_error(lambda x_BCHW: median_CHW.expand_as(x_BCHW), images, rows, chunk, device),
        seconds=time.monotonic() - began,
    )
    picture = save_reconstructions(work.out, network, images, rows, device)
    measured = result.model_dump(exclude={"model", "dataset"})
    write_whole(work.out / METRICS.name, json.dumps(measured, indent=2).encode())
    return Outcome(result, [METRICS, picture])


def open_split(work: Work, wanted: str, report: Report) -> tuple[str, Images]:
    """Images that the network takes: of this split, or with `auto` of the first there is."""
    asked = ("test", "train") if wanted == "auto" else (wanted,)
    for split in asked:
        images = load_images(work.dataset.path, split, work.model.range)
        if images is not None:
            break
    else:
        raise DatasetUnfit(f"the dataset has no images in split {' or '.join(asked)}")
    if not len(images):
        raise DatasetUnfit(f"split {split} has no images")
    if images.shape != work.model.input:
        raise DatasetUnfit(f"the network takes images of {work.model.input}; these are {images.shape}")
    if (words := images.stray()) is not None:
        report.note(words)
    return split, images


def choose_images(work: Work, report: Report) -> tuple[str, Images, np.ndarray]:
    """The split that was asked for, under the name the result gives it."""
    wanted = work.spec.split if isinstance(work.spec, EvaluateSpec) else "auto"
    split, images = open_split(work, wanted, report)
    if wanted != "auto" or split == "test":
        return split, images, np.arange(len(images))
    report.note(
        "the dataset has no test split: evaluated on a tenth of train, the one that a training with seed 0 holds out; "
        "a network trained on these images with another seed has seen most of them"
    )
    if work.model.architecture.task == "classify":
        labels_N = load_labels(work.dataset.path, split, work.model.architecture.classes)
        _, rows = hold_out_of_each(labels_N, HELD_OUT_SHARE, HELD_OUT_SEED)
    else:
        _, rows = hold_out(len(images), HELD_OUT_SHARE, HELD_OUT_SEED)
    return "held_out", images, rows


def tell(report: Report, done: int, images: int, seconds: float) -> None:
    rate = done / seconds
    report.progress(
        Progress(
            fraction=done / images,
            step=done,
            steps=images,
            rate=rate,
            unit="images",
            eta_seconds=(images - done) / rate,
        )
    )
