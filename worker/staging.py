"""Brings what a job reads to the runner's folder, by digest, and takes what it made to the store."""

import shutil
from pathlib import Path
from typing import Any

from flashcards.contract.specs import CaptureSpec, CompareSpec, EngineSpec, LearnSpec, NoopSpec, ShardSpec
from ledger import artifacts, blobs, fits, scope
from ledger.artifacts import Product
from ledger.errors import NotFound, Unfit
from ledger.imports import made_by_us
from ledger.learners import MOVED_ON, MovedOn
from ledger.lifecycle import Claim
from ledger.outcomes import spec_of
from ledger.store import hash_file
from ledger.tables import Dataset, Flashcards, Model
from worker import comparing, learning, sharding
from worker.errors import CannotBegin
from worker.messages import Assignment, FileMade, StagedCards, StagedDataset, StagedModel
from worker.station import Station


def _gone(detail: str) -> CannotBegin:
    return CannotBegin("input-gone", "Something the job reads is not there any more", detail)


def stage(station: Station, claim: Claim, folder: Path) -> Assignment:
    spec = spec_of(claim)
    assert not isinstance(spec, NoopSpec), "it has no runner to stage for"
    inputs, out = folder / "in", folder / "out"
    shutil.rmtree(folder, ignore_errors=True)  # of a try that the store broke off
    inputs.mkdir(parents=True)
    out.mkdir()
    try:
        if isinstance(spec, LearnSpec):
            spec, staged = learning.stage(station, claim, spec, inputs)
        elif isinstance(spec, CompareSpec):
            staged = {"units": comparing.stage(station, claim, spec)}
        else:
            staged = _stage_inputs(station, claim, spec, inputs)
        if isinstance(spec, CaptureSpec):
            staged |= sharding.stage(station, claim, spec, inputs)
        resume = _stage_resume_point(station, claim, inputs)
    except NotFound as missing:
        raise _gone(missing.detail) from missing
    except FileNotFoundError as missing:
        raise _gone("its file is not in the store") from missing
    except Unfit as unfit:
        title = "The task does not go with what the learner is by now"
        raise CannotBegin("unfit-task", title, unfit.detail) from unfit
    except MovedOn as moved:
        raise CannotBegin(MOVED_ON["type"], MOVED_ON["title"], str(moved)) from moved
    return Assignment(
        spec=spec,
        out=str(out),
        resume=resume,
        resume_seconds=station.settings.resume_seconds,
        device=station.device,
        **{"threads": station.threads, **staged},
    )


def _stage_inputs(station: Station, claim: Claim, spec: EngineSpec, folder: Path) -> dict[str, Any]:
    staged: dict[str, Any] = {}
    model_id = getattr(spec, "model", None) or getattr(spec, "through", None)
    if (cards_id := getattr(spec, "flashcards", None)) is not None:
        model_id, staged["cards"] = _stage_cards(station, claim, cards_id, folder)
    if model_id is not None:
        staged["model"] = _stage_model(station, claim, model_id, folder)
    if (dataset_id := getattr(spec, "dataset", None)) is not None:
        staged["dataset"] = _stage_dataset(station, claim, dataset_id, folder)
    if isinstance(spec, ShardSpec):
        staged["threads"] = spec.recipe.threads  # as in all shards of the set
    return staged


def _stage_model(station: Station, claim: Claim, id: str, folder: Path) -> StagedModel:
    with station.db.read() as session:
        row = scope.find(session, Model, claim.tenant, id)
        made_here = made_by_us(session, row)

    def fetch(name: str, digest: str | None) -> str | None:
        if digest is None:
            return None
        station.store.fetch(claim.tenant, digest, folder / name)
        return str(folder / name)

    return StagedModel(
        path=fetch(f"model.{fits.form_of(row)}", row.digest) or "",
        digest=row.digest,
        architecture=row.architecture,
        input=row.input,
        range=tuple(row.range),
        made_here=made_here,
        probe=fetch("probe.safetensors", row.probe_digest),
        capsule=fetch("capsule.safetensors", row.capsule_digest),
        capsule_digest=row.capsule_digest,
    )


def _stage_cards(station: Station, claim: Claim, id: str, folder: Path) -> tuple[str, StagedCards]:
    """And the model that they were made from."""
    with station.db.read() as session:
        row = scope.find(session, Flashcards, claim.tenant, id)
    path = folder / "cards.npy"
    station.store.fetch(claim.tenant, row.digest, path)
    return row.model_id, StagedCards(path=str(path), digest=row.digest)


def _stage_dataset(station: Station, claim: Claim, id: str, folder: Path) -> StagedDataset:
    with station.db.read() as session:
        row = scope.find(session, Dataset, claim.tenant, id)
    path = folder / f"dataset.{row.format}"
    station.store.fetch(claim.tenant, row.digest, path)
    names = next((split["labels"] for split in row.splits.values() if split.get("labels")), None)
    shape = next(iter(row.splits.values()))["shape"]
    return StagedDataset(path=str(path), digest=row.digest, input=shape, labels=names)


def _stage_resume_point(station: Station, claim: Claim, folder: Path) -> str | None:
    with station.db.read() as session:
        points = artifacts.resume_points(session, claim.job_id)
    if not points:
        return None
    path = folder / points[0].name
    station.store.fetch(claim.tenant, points[0].digest, path)
    return str(path)


def keep(station: Station, claim: Claim, out: Path, files: list[FileMade]) -> list[Product]:
    """Names come from the runner, which is not trusted to point anywhere but into its own folder."""
    products = []
    for file in files:
        path = out / file.name
        if path.is_symlink() or not path.is_file():
            raise FileNotFoundError(f"the runner named a file that it did not make: {file.name}")
        kept = hash_file(path)
        blobs.put(station.db, station.store, claim.tenant, kept, path)
        products.append(Product(file.name, file.media_type, kept, file.shows_data))
    return products
