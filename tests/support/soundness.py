"""What must hold of the record at any moment, whatever was killed before."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import psutil
from sqlalchemy import select
from sqlalchemy.orm import Session

from ledger.db import Database
from ledger.steps import TERMINAL, TRANSITIONS
from ledger.store import Store
from ledger.tables import (
    Artifact,
    Attempt,
    Blob,
    Event,
    Flashcards,
    Job,
    Learner,
    Model,
    Version,
    VersionCapsule,
    Worker,
)

#: What a job that succeeded has made, by its kind: neither less nor more.
PRODUCTS = {
    "train": ["capsule.safetensors", "model.safetensors", "reconstructions.png"],
    "distill": ["capsule.safetensors", "model.safetensors", "reconstructions.png"],
    "capture": ["cards.npy", "sheet.png", "source.png"],
    "shard": ["cards.npy"],
    "evaluate": ["metrics.json", "reconstructions.png"],
    "predict": ["reconstructions.npy", "reconstructions.png"],
    "export": ["model.onnx"],
    "compare": ["comparison.png", "matrices.png", "table.csv", "table.json"],
    "noop": [],
}
#: And where the model is a classifier.
CLASSIFIED = {
    "train": ["confusion.csv", "confusion.json", "confusion.png", "model.safetensors"],
    "evaluate": [
        *("calibration.json", "calibration.png", "confusion.csv", "confusion.json", "confusion.png"),
        *("metrics.csv", "metrics.json", "per_class.csv"),
    ],
    "predict": ["scores.npy"],
    "compare": ["accuracies.png", "comparison.png", "matrices.png", "table.csv", "table.json"],
}
REPORTED = ("progress", "log", "resume_point")
DIGESTS_CHECKED = 20


def assert_ledger_sound(db: Database, store: Store | None = None, chance: Random | None = None) -> int:
    """Raises AssertionError in words; with the store, also of what the jobs made. Returns how many jobs it saw."""
    with _one_moment(db) as session:
        jobs = session.scalars(select(Job)).all()
        events = _by_job(session.scalars(select(Event).order_by(Event.job_id, Event.seq)))
        attempts = _by_job(session.scalars(select(Attempt).order_by(Attempt.job_id, Attempt.number)))
        artifacts = _by_job(session.scalars(select(Artifact).order_by(Artifact.job_id, Artifact.name)))
        made = select(Model).where(Model.job_id.is_not(None), Model.origin != "learn")  # those are made by hand
        models = _by_job(session.scalars(made))
        versions = _by_job(session.scalars(select(Version).where(Version.job_id.is_not(None))))
        _check_learners(session, jobs)
        flashcards = _by_job(session.scalars(select(Flashcards)))
        blobs = {(blob.tenant, blob.digest): blob.size for blob in session.scalars(select(Blob))}
    _check_parents(jobs)
    whole = {job.id: job.state for job in jobs}
    for job in jobs:
        _check_history(job, events[job.id])
        _check_attempts(job, attempts[job.id])
        if store is not None:
            if job.kind != "shard" or whole.get(job.parent_id) != "succeeded":
                _check_products(job, artifacts[job.id], models[job.id], flashcards[job.id])
            else:
                assert not artifacts[job.id], f"{job.id}: its cards are in the set of {job.parent_id}, and still here"
            learnt = job.state == "succeeded" and job.kind == "learn"
            assert len(versions[job.id]) == learnt, f"{job.id} is {job.state} and made {len(versions[job.id])} versions"
        for artifact in artifacts[job.id]:
            known = blobs.get((job.tenant, artifact.digest))
            assert known == artifact.size, f"{job.id}: {artifact.name} has {artifact.size} bytes, its blob {known}"
    if store is not None:
        _check_bytes(store, {(job.tenant, row.digest): row.size for job in jobs for row in artifacts[job.id]}, chance)
    return len(jobs)


@contextmanager
def _one_moment(db: Database) -> Iterator[Session]:
    """Several queries that see one state of the record, while others go on writing."""
    with db.read() as session:
        if not db.is_sqlite:
            session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
        yield session


def _by_job(rows: Iterable[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for row in rows:
        found[row.job_id].append(row)
    return found


def _check_history(job: Job, history: Sequence[Event]) -> None:
    assert [event.seq for event in history] == list(range(1, job.seq + 1)), f"{job.id}: a gap in its events"
    states = [event.data["state"] for event in history if event.kind == "state"]
    first = "waiting" if job.kind == "compare" else "queued"
    assert states[0] == first, f"{job.id}: it began as {states[0]}"
    assert states[-1] == job.state, f"{job.id} is {job.state}, and its last event says {states[-1]}"
    wrong = [step for step in pairwise(states) if step[1] not in TRANSITIONS[step[0]]]
    assert not wrong, f"{job.id}: steps that are not in the table: {wrong}"
    state = ""
    for event in history:
        state = event.data["state"] if event.kind == "state" else state
        told = state == "waiting" and event.kind == "progress"  # by its children
        assert event.kind not in REPORTED or state == "running" or told, f"{job.id}: {event.kind} while it was {state}"
    numbers = [event.attempt for event in history]
    assert numbers == sorted(numbers), f"{job.id}: an earlier attempt wrote after a later one had begun"


def _check_attempts(job: Job, attempts: Sequence[Attempt]) -> None:
    assert [attempt.number for attempt in attempts] == list(range(1, job.attempt + 1)), f"{job.id}: attempts missing"
    under_way = [attempt.number for attempt in attempts if attempt.ended_at is None]
    assert under_way == ([job.attempt] if job.state == "running" else []), f"{job.id}: under way {under_way}"
    won = [attempt.number for attempt in attempts if attempt.outcome == "succeeded"]
    assert len(won) == (job.state == "succeeded"), f"{job.id} is {job.state}, attempts that succeeded: {won}"
    assert (job.lease_until is not None) == (job.state == "running"), f"{job.id}: a lease and {job.state}"
    assert (job.ended_at is not None) == (job.state in TERMINAL), f"{job.id}: an end and {job.state}"
    assert job.strikes <= job.max_attempts, f"{job.id}: {job.strikes} strikes of {job.max_attempts}"


def _check_parents(jobs: Sequence[Job]) -> None:
    """A parent waits as long as a child has not ended, and no longer; a unit is not gone on with once it failed."""
    children = defaultdict(list)
    for job in jobs:
        if job.parent_id is not None:
            children[job.parent_id].append(job)
    parents = {job.id: job for job in jobs if job.kind == "compare" or job.id in children}
    assert set(children) == set(parents), f"children of {set(children)}, and the parents are {set(parents)}"
    waiting = {job.id for job in jobs if job.state == "waiting"}
    assert waiting <= set(parents), f"{waiting - set(parents)} wait for nobody"
    for parent in parents.values():
        open_still = [child.id for child in children[parent.id] if child.state not in TERMINAL]
        wrong = bool(open_still) != (parent.state == "waiting")
        assert not wrong or parent.state == "cancelled", f"{parent.id} is {parent.state}, not ended: {open_still}"
    for child in (child for each in children.values() for child in each):
        unit = [one for one in children[child.parent_id] if one.learner_id == child.learner_id]
        behind = [one.id for one in unit if one.id > child.id and one.state == "queued"]
        lost = child.state in ("failed", "cancelled")
        assert not (lost and behind), f"{child.id} is {child.state}, and behind it are still queued: {behind}"


def _check_learners(session: Session, jobs: Sequence[Job]) -> None:
    """One task at a time; every version but the first has a parent before it; what they refer to is on record."""
    running = [job.learner_id for job in jobs if job.state == "running" and job.learner_id is not None]
    assert len(running) == len(set(running)), f"two tasks of a learner run at once: {running}"
    versions = {(row.learner_id, row.number): row for row in session.scalars(select(Version))}
    for learner in session.scalars(select(Learner)):
        known = learner.version is None or (learner.id, learner.version) in versions
        assert known, f"{learner.id} is at version {learner.version}, which is not there"
    for (learner_id, number), row in versions.items():
        grown = row.parent is None or (row.parent < number and (learner_id, row.parent) in versions)
        assert grown, f"{learner_id}, version {number}: its parent is {row.parent}"
    for row in [*versions.values(), *session.scalars(select(VersionCapsule))]:
        assert session.get(Blob, (row.tenant, row.digest)), f"{row.learner_id}, version {row.number}: a file is missing"


def _check_products(job: Job, artifacts: Sequence[Artifact], models: list[Model], sets: list[Flashcards]) -> None:
    succeeded = job.state == "succeeded"
    products = [artifact for artifact in artifacts if artifact.role == "product"]
    names = [product.name for product in products]
    if job.kind == "learn":
        tasks = job.result["task"] if succeeded else 0
        expected = [*(f"capsule-{task}.safetensors" for task in range(1, tasks + 1)), "model.safetensors"]
        assert not succeeded or set(expected) <= set(names), f"{job.id}: it has learnt {tasks} tasks and made {names}"
    else:
        told = job.result if succeeded else {}
        of_classes = "per_class" in told or told.get("classified") is not None
        classified = of_classes or (job.kind == "compare" and told.get("metric") == "accuracy")
        expected = (CLASSIFIED if classified else PRODUCTS)[job.kind]
        assert not succeeded or names == expected, f"{job.id}, {job.kind}: it succeeded and made {names}"
    assert len({product.attempt for product in products}) <= 1, f"{job.id}: products of several attempts"
    makes_a_model = succeeded and job.kind in ("train", "distill")
    assert len(models) == makes_a_model, f"{job.id} is {job.state} and made {len(models)} models"
    assert len(sets) == (succeeded and job.kind == "capture"), f"{job.id} is {job.state} and made {len(sets)} sets"


def _check_bytes(store: Store, files: dict[tuple[str, str], int], chance: Random | None) -> None:
    for (tenant, digest), size in files.items():
        try:
            found = store.size(tenant, digest)
        except FileNotFoundError:
            raise AssertionError(f"{tenant}/{digest} is on record and not in the store") from None
        assert found == size, f"{tenant}/{digest} has {found} bytes and should have {size}"
    sample = (chance or Random(0)).sample(sorted(files), min(DIGESTS_CHECKED, len(files)))
    for tenant, digest in sample:
        data = store.read(tenant, digest, 0, files[tenant, digest])
        assert hashlib.sha256(data).hexdigest() == digest, f"{tenant}/{digest} holds other bytes"


def assert_work_tidy(db: Database, work: Path) -> None:
    """Attempt folders belong to live workers. Holds once a worker has started after the last death."""
    with db.read() as session:
        pids = {row.id: row.pid for row in session.scalars(select(Worker))}
    for folder in work.iterdir():
        alive = folder.name in pids and psutil.pid_exists(pids[folder.name])
        assert alive, f"{folder} was left by a worker that is gone: {list(folder.iterdir())}"
