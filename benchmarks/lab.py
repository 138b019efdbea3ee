"""Experiments: each step is a job of the product, run by the engine itself, without a service, and done once."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from threadpoolctl import threadpool_limits

from benchmarks import ablations, real
from benchmarks.kept import Kept, Made, Size
from engine import capsule
from engine.data import load_images
from engine.errors import Collapsed
from engine.models import build
from engine.run import run
from engine.spectral import weighted_alpha
from engine.weights import WEIGHTS, load_network
from engine.work import CardsInput, DatasetInput, ModelInput, Work
from flashcards.contract.architecture import architecture_spec
from flashcards.contract.resources import Progress
from flashcards.contract.specs import job_spec

NOBODY = "0" * 32
RANGE = (0.0, 1.0)


def alpha_of(weights: dict[str, torch.Tensor]) -> float:
    with threadpool_limits(1, user_api="blas"):  # as for a job: see engine.run
        found = weighted_alpha(weights)
    return float("nan") if found is None else found


def spread(values: list[float], sign: str = "") -> str:
    """Mean, and the deviation where there is one."""
    # numpy's, since that of `statistics` fails on the NaN of a run that is only planned or that diverged.
    deviation = f" +- {np.std(values, ddof=1):.4f}" if len(values) > 1 else ""
    return f"{np.mean(values):{sign}.4f}{deviation}"


class Quiet:
    """A report that nobody reads."""

    def progress(self, progress: Progress) -> None: ...

    def metric(self, step: int, values: dict[str, float]) -> None: ...

    def resume_point(self, path: Path, step: int) -> None: ...

    def note(self, text: str) -> None: ...


class Lab(Kept):
    """The steps: each is a job of the product, run by the engine itself, without a service."""

    def train(self, dataset: str, architecture: str, seed: int, rate: float | None = None) -> Made:
        """`rate`: a learning rate other than that of the size."""
        size = self.size

        def make(out: Path) -> dict[str, Any]:
            spec = self._learning(kind="train", dataset=f"dataset_{NOBODY}", architecture=architecture, seed=seed)
            spec |= {"learning_rate": rate} if rate else {}
            result = self._run(spec, out, dataset=self._dataset(dataset))
            return {**result, **self._tested(out, architecture, dataset)}

        return self._step(f"train/{dataset}/{architecture}/{_at(seed, rate)}", size.images * size.epochs, make)

    def capture(
        self,
        model: Made,
        source: str,
        seed: int,
        r: int | str = "auto",
        count: int | None = None,
        ablation: str | None = None,
    ) -> Made:
        count = count or self.size.images

        def make(out: Path) -> dict[str, Any]:
            spec = {"kind": "capture", "model": f"model_{NOBODY}", "count": count, "r": r, "source": source}
            with ablations.in_place(ablation):
                return self._run({**spec, "seed": seed}, out, model=self._model(model))

        named = f"{source}-{ablation}" if ablation else source
        key = f"capture/{self._key(model)}/{named}-{r}-{count}-{seed}"
        return self._step(key, count * (10 if r in ("auto", 10) and source == "maze" else 1) / 3, make)

    def distill(
        self, cards: Made, parent: Made, dataset: str, architecture: str, seed: int, rate: float | None = None
    ) -> Made:
        """A new network from these cards alone, tested on the images that its parent is tested on."""
        size = self.size

        def make(out: Path) -> dict[str, Any]:
            spec = self._learning(
                kind="distill", flashcards=f"flashcards_{NOBODY}", architecture=architecture, seed=seed
            )
            spec |= {"learning_rate": rate} if rate else {}
            made = CardsInput(path=cards.folder / "cards.npy", digest="")
            result = self._run(spec, out, model=self._model(parent), cards=made)
            return {**result, **self._tested(out, architecture, dataset)}

        cost = size.images * size.epochs
        return self._step(f"distill/{self._key(cards)}/{architecture}/{_at(seed, rate)}", cost, make)

    def coreset(self, dataset: str, architecture: str, count: int, seed: int) -> Made:
        """A network from the first `count` real images: what cards of that number stand beside."""
        smaller = Size(**{**self.size.__dict__, "images": count})
        lab = Lab(self.folder, self.data, smaller, self.console, records=self.records)

        def make(out: Path) -> dict[str, Any]:
            spec = lab._learning(kind="train", dataset=f"dataset_{NOBODY}", architecture=architecture, seed=seed)
            result = lab._run(spec, out, dataset=lab._dataset(dataset))
            return {**result, **self._tested(out, architecture, dataset)}

        return self._step(f"coreset/{dataset}/{architecture}/{count}/{seed}", count * self.size.epochs, make)

    def untrained_alpha(self, architecture: str, seed: int) -> float:
        """Weighted alpha of the network that `train` begins with."""
        network = build(
            architecture_spec.validate_python(architecture), self.size.image, torch.Generator().manual_seed(seed)
        )
        return alpha_of(network.state_dict())

    def analyze(self, model: Made, dataset: str, max_r: int, retrain: list[int], seed: int) -> Made:
        size = self.size

        def make(out: Path) -> dict[str, Any]:
            spec = {"kind": "analyze", "model": f"model_{NOBODY}", "dataset": f"dataset_{NOBODY}", "seed": seed}
            spec |= {"max_r": max_r, "count": min(1000, size.images), "retrain": retrain}
            spec |= {"retrain_epochs": size.epochs}
            return self._run(spec, out, model=self._model(model), dataset=self._dataset(dataset))

        cost = len(retrain) * 1000 * size.epochs + 1000 * max_r / 3
        return self._step(f"analyze/{self._key(model)}/{max_r}-{seed}", cost, make)

    def _learning(self, **fields: Any) -> dict[str, Any]:
        size = self.size
        asked = {"epochs": size.epochs, "patience": size.patience, "batch_size": size.batch}
        return {**asked, "learning_rate": size.learning_rate, **fields}

    def _run(self, spec: dict[str, Any], out: Path, **inputs: Any) -> dict[str, Any]:
        work = Work(
            spec=job_spec.validate_python(spec), out=out, threads=self.size.threads, resume_seconds=1e9, **inputs
        )
        try:
            return run(work, Quiet(), lambda: False).result.model_dump(mode="json")
        except Collapsed as collapsed:
            # It left its weights, and its error on real images is a result like any other.
            return {"collapsed": collapsed.detail}

    def _tested(self, out: Path, architecture: str, dataset: str) -> dict[str, float]:
        spec = {"kind": "evaluate", "model": f"model_{NOBODY}", "dataset": f"dataset_{NOBODY}", "split": "test"}
        inner = out / "test"
        inner.mkdir()
        self._measure_what_collapsed(out, architecture, dataset)
        model = self._model_at(out, architecture)
        result = self._run(spec, inner, model=model, dataset=self._dataset(dataset))
        return {
            "test_mae": result["mae"],
            "test_constant_mae": result["constant_mae"],
            "architecture": architecture,
            "weighted_alpha": alpha_of(load_file(out / WEIGHTS.name)),  # also of what collapsed, and so told nothing
        }

    def _measure_what_collapsed(self, out: Path, architecture: str, dataset: str) -> None:
        """A network that collapsed has no capsule by itself, and the experiment goes on with it all the same."""
        if (out / capsule.CAPSULE.name).exists():
            return
        images = load_images(self._dataset(dataset).path, "train", RANGE)
        network = load_network(self._model_at(out, architecture), torch.device("cpu"))
        meter = capsule.measure(network, images, np.arange(len(images)), 64, torch.device("cpu"))
        capsule.save(out, meter.capsule())

    def _model(self, made: Made) -> ModelInput:
        return self._model_at(made.folder, made["architecture"])

    def _model_at(self, folder: Path, architecture: str) -> ModelInput:
        path, measured = folder / "model.safetensors", folder / capsule.CAPSULE.name
        return ModelInput(
            path=path,
            digest=hashlib.sha256(path.read_bytes()).hexdigest(),
            architecture=architecture_spec.validate_python(architecture),
            input=self.size.image,
            range=RANGE,
            made_here=True,
            capsule=measured if measured.exists() else None,
            capsule_digest=hashlib.sha256(measured.read_bytes()).hexdigest() if measured.exists() else None,
        )

    def _dataset(self, name: str) -> DatasetInput:
        size = self.size
        path = self.folder / "data" / f"{name}-{size.side}-{size.images}-{size.tests}.npz"
        if not path.exists():
            whole, _, half = name.partition(".")  # "mnist.1" is the first half of mnist
            source = self.data / f"{whole}.npz"
            real.prepare(source, path, size.images, size.tests, size.side, int(half) if half else None)
        return DatasetInput(path=path, digest=name)


def _at(seed: int, rate: float | None) -> str:
    """In the name of a step; the learning rate of the size goes without saying."""
    return f"{seed}-rate-{rate:g}" if rate else f"{seed}"
