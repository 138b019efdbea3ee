"""Brings a learner to the runner's folder, as it stands at the version that its task starts from."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashcards.contract.results import TaskMeasure
from flashcards.contract.specs import LearnSpec
from ledger import learners, scope
from ledger.errors import NotFound
from ledger.imports import made_by_us
from ledger.lifecycle import Claim
from ledger.tables import Dataset, Learner, Model, Version, VersionCapsule
from ledger.versions import chain
from worker.messages import StagedDataset, StagedLearner, StagedModel, StagedTask
from worker.station import Station


@dataclass(frozen=True)
class Standing:
    """What the record says of the learner when its task's turn has come."""

    learner: Learner
    versions: list[Version]  # from the first to the one that the task starts from
    capsules: dict[int, VersionCapsule]  # of that one, by task
    model: Model | None  # whose weights they are, where nothing was learnt since
    autoencoder: Model | None  # and of a learner of classes, those of what makes cards
    unproven: frozenset[str]  # those of the two that this engine did not make
    task: str


def stage(station: Station, claim: Claim, spec: LearnSpec, folder: Path) -> tuple[LearnSpec, dict[str, Any]]:
    """And the spec with what it left open: what the task is called, and which version it starts from."""
    standing = _settle(station, claim, spec)
    fetch = Fetch(station, claim, folder)
    staged = {
        "learner": _stage_learner(standing, fetch),
        "model": _stage_base(standing, fetch),
        "autoencoder": _stage_autoencoder(standing, fetch),
        "dataset": fetch.dataset(spec.dataset),
        "test_dataset": fetch.dataset(spec.test_dataset) if spec.test_dataset else None,
    }
    return spec.model_copy(update={"name": standing.task, "base_version": standing.learner.version}), staged


def _settle(station: Station, claim: Claim, spec: LearnSpec) -> Standing:
    with station.db.write() as session:
        learner = learners.begin(session, claim, spec)
        versions = chain(session, learner)
        numbers = [version.number for version in versions[-1:]]
        capsules = learners.capsules(session, learner.id, numbers)
        (found,) = capsules.values() or [{}]
        model, autoencoder = (
            session.get(Model, id) if id is not None and learner.version == 0 else None
            for id in (learner.model_id, learner.autoencoder_id)
        )
        known = [each for each in (model, autoencoder) if each is not None]
        unproven = frozenset(each.id for each in known if not made_by_us(session, each))
        return Standing(learner, versions, found, model, autoencoder, unproven, learners.task_name(session, spec))


class Fetch:
    """Files of the store, each under its digest: what two tasks share is fetched once."""

    def __init__(self, station: Station, claim: Claim, folder: Path) -> None:
        self._station = station
        self._tenant = claim.tenant
        self._folder = folder

    def file(self, digest: str | None, suffix: str) -> str | None:
        if digest is None:
            return None
        path = self._folder / f"{digest}.{suffix}"
        if not path.exists():
            self._station.store.fetch(self._tenant, digest, path)
        return str(path)

    def dataset(self, id: str) -> StagedDataset:
        return self._staged(self._find(id))

    def dataset_of_earlier(self, id: str | None) -> StagedDataset | None:
        """The data of a task that was learnt may go: then the task is not measured any more.

        What is not to be kept is not read again, though it be still there: this job would not be known to show it.
        """
        try:
            row = None if id is None else self._find(id)
            return self._staged(row) if row is not None and row.retain else None
        except (NotFound, FileNotFoundError):
            return None

    def _find(self, id: str) -> Dataset:
        with self._station.db.read() as session:
            return scope.find(session, Dataset, self._tenant, id)

    def _staged(self, row: Dataset) -> StagedDataset:
        names = next((split["labels"] for split in row.splits.values() if split.get("labels")), None)
        path, shape = self.file(row.digest, row.format) or "", next(iter(row.splits.values()))["shape"]
        return StagedDataset(path=path, digest=row.digest, input=shape, labels=names)


def _stage_learner(standing: Standing, fetch: Fetch) -> StagedLearner:
    learner = standing.learner
    base = standing.versions[-1] if standing.versions else None
    return StagedLearner(
        scenario=learner.scenario,
        noise=learner.noise,
        clip=learner.clip,
        architecture=learner.architecture,
        autoencoder=learner.autoencoder,
        range=tuple(learner.range),
        tasks=[_stage_task(version, task, standing, fetch) for task, version in enumerate(standing.versions, 1)],
        measures=[[TaskMeasure.model_validate(each) for each in version.measures] for version in standing.versions],
        state=fetch.file(base.state_digest if base else None, "safetensors"),
        images=fetch.file(base.images_digest if base else None, "npz"),
    )


def _stage_task(version: Version, task: int, standing: Standing, fetch: Fetch) -> StagedTask:
    capsule, classes = standing.capsules.get(task), version.classes
    return StagedTask(
        name=version.task,
        capsule=fetch.file(capsule.digest if capsule else None, "safetensors"),
        test=fetch.dataset_of_earlier(version.test_dataset_id or version.dataset_id),
        **({} if classes is None else {"classes": classes["count"], "lowest": classes["lowest"]}),
    )


def _stage_base(standing: Standing, fetch: Fetch) -> StagedModel | None:
    if not standing.versions:
        return None
    learner, base = standing.learner, standing.versions[-1]
    return _staged_network(standing, fetch, base.digest, base.architecture or learner.architecture, standing.model)


def _stage_autoencoder(standing: Standing, fetch: Fetch) -> StagedModel | None:
    base = standing.versions[-1] if standing.versions else None
    if base is None or base.autoencoder_digest is None:
        return None
    architecture = standing.learner.autoencoder
    return _staged_network(standing, fetch, base.autoencoder_digest, architecture, standing.autoencoder)


def _staged_network(
    standing: Standing, fetch: Fetch, digest: str, architecture: dict[str, Any] | None, model: Model | None
) -> StagedModel:
    learner = standing.learner
    return StagedModel(
        path=fetch.file(digest, "safetensors") or "",
        digest=digest,
        architecture=architecture,
        input=learner.input,
        range=tuple(learner.range),
        made_here=model is None or model.id not in standing.unproven,
        probe=fetch.file(model.probe_digest if model else None, "safetensors"),
    )
