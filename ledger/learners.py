"""Learners and their versions. A task makes a version, whose parent is the one it started from; none is changed."""

from collections.abc import Iterable
from typing import Any, Literal

from sqlalchemy import and_, func, select, update
from sqlalchemy.orm import Session

from flashcards.contract.architecture import architecture_spec
from flashcards.contract.class_results import LearnClassesResult
from flashcards.contract.image import parse_image_shape
from flashcards.contract.learners import LearnerSpec
from flashcards.contract.results import LearnResult, Memory, TaskMeasure
from flashcards.contract.specs import LearnSpec
from ledger import admission, ancestry, artifacts, class_learners, fits, jobs, lifecycle, scope
from ledger.artifacts import Product
from ledger.class_fits import TaskClasses, check_pair
from ledger.errors import Conflict, NotFound, Unfit
from ledger.ids import new_id
from ledger.lifecycle import Claim
from ledger.store import Kept
from ledger.tables import Blob, Dataset, Job, Learner, Model, Version, VersionCapsule
from ledger.versions import chain, has_learnt

WEIGHTS, STATE, IMAGES = "model.safetensors", "state.safetensors", "images.npz"
AUTOENCODER = "autoencoder.safetensors"
Learnt = LearnResult | LearnClassesResult
Network = Literal["learner", "autoencoder"]  # a learner of classes has an autoencoder beside the one that answers
MOVED_ON = {
    "type": "learner-moved-on",
    "title": "The learner has moved on",
    "detail": "Its newest version is not the one that this task was to start from. Post the task again.",
}


class MovedOn(Exception):
    """The newest version is not the one that a task asks for."""


def capsule_file(task: int) -> str:
    """1 is the first task."""
    return f"capsule-{task}.safetensors"


def create(session: Session, tenant: str, spec: LearnerSpec) -> tuple[Learner, list[Kept]]:
    """And the files that it refers to from its first moment: those of the model that it begins with."""
    if spec.model is not None:
        return _from_model(session, tenant, spec, spec.model)
    if spec.classifier is not None:
        return _from_pair(session, tenant, spec)
    architecture, bounds = spec.first_architecture, spec.range or (0.0, 1.0)
    autoencoder = spec.first_autoencoder
    if autoencoder is None:
        fits.check_learner(architecture, bounds)
    else:
        check_pair(architecture, autoencoder, bounds)
    row = Learner(
        name=spec.name or architecture.name,
        architecture=architecture.model_dump(mode="json"),
        autoencoder=autoencoder and autoencoder.model_dump(mode="json"),
        range=list(bounds),
        **_common(tenant, spec),
    )
    session.add(row)
    session.flush()
    return row, []


def _from_model(session: Session, tenant: str, spec: LearnerSpec, model_id: str) -> tuple[Learner, list[Kept]]:
    try:
        model = scope.find(session, Model, tenant, model_id)
    except NotFound as missing:
        raise Unfit("model", missing.detail) from None
    fits.check_reconstructs(architecture_spec.validate_python(model.architecture), "model")
    fits.check_learns(fits.architecture_of(model), "model")
    row = Learner(
        name=spec.name or model.name,
        model_id=model.id,
        architecture=model.architecture,
        input=model.input,
        range=model.range,
        version=0,
        **_common(tenant, spec),
    )
    session.add(row)
    session.flush()
    kept = [Kept(model.digest, model.size)]
    session.add(_first_version(row, model))
    session.flush()
    if model.capsule is not None:
        kept.append(Kept(model.capsule["digest"], model.capsule["size"]))
        session.add(_capsule(row, 0, 1, kept[1]))
    return row, kept


def _from_pair(session: Session, tenant: str, spec: LearnerSpec) -> tuple[Learner, list[Kept]]:
    pair = class_learners.find_pair(session, tenant, spec)
    row = Learner(name=spec.name or pair[0].name, **class_learners.as_row(*pair), **_common(tenant, spec))
    session.add(row)
    session.flush()
    session.add(class_learners.first_version(row, *pair))
    session.flush()
    kept = class_learners.files_of(*pair)
    if pair[1].capsule is not None:
        session.add(_capsule(row, 0, 1, kept[-1]))
    return row, kept


def _common(tenant: str, spec: LearnerSpec) -> dict[str, Any]:
    asked = {"scenario": spec.scenario, "noise": spec.noise, "clip": spec.clip}
    return {"id": new_id("learner"), "tenant": tenant, **asked}


def _first_version(learner: Learner, model: Model) -> Version:
    network = architecture_spec.validate_python(model.architecture).size(parse_image_shape(model.input))
    memory = Memory(network=network, capsules=model.capsule["size"] if model.capsule else 0)
    return Version(
        learner_id=learner.id,
        number=0,
        tenant=learner.tenant,
        task=model.name,
        digest=model.digest,
        size=model.size,
        capsule=model.capsule,
        measures=[TaskMeasure(task=model.name).model_dump(mode="json")],
        recipes=[],
        memory=memory.model_dump(mode="json"),
    )


def find(session: Session, tenant: str, learner_id: str) -> Learner:
    return scope.find(session, Learner, tenant, learner_id)


def find_version(session: Session, tenant: str, learner_id: str, number: int) -> Version:
    find(session, tenant, learner_id)
    row = session.get(Version, (learner_id, number))
    if row is None:
        raise NotFound("version", str(number))
    return row


def heads(session: Session, learners: Iterable[Learner]) -> dict[str, Version]:
    """The newest version of each that has one."""
    is_head = and_(Version.learner_id == Learner.id, Version.number == Learner.version)
    ids = [learner.id for learner in learners]
    rows = session.scalars(select(Version).join(Learner, is_head).where(Learner.id.in_(ids)))
    return {row.learner_id: row for row in rows}


def capsules(session: Session, learner_id: str, numbers: Iterable[int]) -> dict[int, dict[int, VersionCapsule]]:
    """By version, then by task."""
    found: dict[int, dict[int, VersionCapsule]] = {number: {} for number in numbers}
    theirs = (VersionCapsule.learner_id == learner_id, VersionCapsule.number.in_(list(found)))
    for row in session.scalars(select(VersionCapsule).where(*theirs)):
        found[row.number][row.task] = row
    return found


def roll_back(session: Session, tenant: str, learner_id: str, number: int) -> Learner:
    """The next task starts from that version. Those after it stay."""
    learner = find(session, tenant, learner_id)
    _check_own(learner)
    check_idle(session, tenant, learner_id)
    if session.get(Version, (learner_id, number)) is None:
        raise Unfit("version", f"there is no version {number} of {learner_id}")
    learner.version = number
    session.flush()
    return learner


def delete(session: Session, tenant: str, learner_id: str) -> set[str]:
    """The digests of the files that it referred to."""
    learner = find(session, tenant, learner_id)
    _check_own(learner)
    check_idle(session, tenant, learner_id)
    return remove(session, learner)


def remove(session: Session, learner: Learner) -> set[str]:
    columns = (
        select(column).where(Version.learner_id == learner.id)
        for column in (Version.digest, Version.state_digest, Version.images_digest, Version.autoencoder_digest)
    )
    of_capsules = select(VersionCapsule.digest).where(VersionCapsule.learner_id == learner.id)
    found = {digest for statement in (*columns, of_capsules) for digest in session.scalars(statement)}
    session.delete(learner)
    ancestry.forget(session, learner.id)
    session.flush()
    return {digest for digest in found if digest is not None}


def _check_own(learner: Learner) -> None:
    if learner.compare_id is not None:
        raise Conflict(f"it belongs to {learner.compare_id}, which compares strategies, and goes with it")


def check_idle(session: Session, tenant: str, learner_id: str) -> None:
    if job_id := jobs.needed_by(session, tenant, learner_id):
        raise Conflict(f"{job_id} is a task of this learner and has not ended: wait for it or cancel it")


def begin(session: Session, claim: Claim, spec: LearnSpec) -> Learner:
    """Its turn has come: which version it starts from is settled here.

    A resume point of an attempt that had started from another version would bring that one's weights back.
    """
    learner = find(session, claim.tenant, spec.learner)
    if spec.base_version not in (None, learner.version):
        raise MovedOn(f"the task was to start from version {spec.base_version}, and the newest is {learner.version}")
    admission.check_task(session, claim.tenant, spec)
    if session.get_one(Job, claim.job_id).base_version != learner.version:
        artifacts.forget_resume_points(session, claim.job_id)
    mine = update(Job).where(Job.id == claim.job_id, *lifecycle.mine(claim))
    session.execute(mine.values(base_version=learner.version).execution_options(synchronize_session=False))
    return learner


def task_name(session: Session, spec: LearnSpec) -> str:
    return spec.name or session.get_one(Dataset, spec.dataset).name


def add_version(
    session: Session, claim: Claim, spec: LearnSpec, result: Learnt, files: dict[str, Product]
) -> Learnt | None:
    """The version that a task has made, which is the head from then on. None: the head is not where it started."""
    base = session.get_one(Job, claim.job_id).base_version
    here = (Learner.id == spec.learner, Learner.version.is_not_distinct_from(base))
    learner = session.scalar(select(Learner).where(*here).with_for_update())
    if learner is None:
        return None
    newest = session.scalar(select(func.max(Version.number)).where(Version.learner_id == learner.id))
    number = 1 if newest is None else newest + 1
    dataset = session.get_one(Dataset, spec.dataset)
    before = chain(session, learner)
    session.add(
        Version(
            learner_id=learner.id,
            number=number,
            tenant=claim.tenant,
            parent=base,
            job_id=claim.job_id,
            task=task_name(session, spec),
            dataset_id=spec.dataset,
            test_dataset_id=spec.test_dataset,
            repeated=has_learnt(session, before, dataset),
            strategy=spec.strategy.model_dump(mode="json"),
            **_files(files),
            **_told(result),
            **_told_of_classes(learner, dataset, result),
        )
    )
    session.flush()
    for task in range(1, len(before) + 2):
        if (product := files.get(capsule_file(task))) is not None:
            session.add(_capsule(learner, number, task, product.kept))
    learner.version = number
    learner.input = learner.input or str(parse_image_shape(dataset.splits["train"]["shape"]))
    return result.model_copy(update={"learner": learner.id, "version": number, "base_version": base})


def _files(files: dict[str, Product]) -> dict[str, Any]:
    weights = files[WEIGHTS].kept
    state, images, autoencoder = files.get(STATE), files.get(IMAGES), files.get(AUTOENCODER)
    return {
        "digest": weights.digest,
        "size": weights.size,
        "state_digest": state and state.kept.digest,
        "images_digest": images and images.kept.digest,
        "autoencoder_digest": autoencoder and autoencoder.kept.digest,
    }


def _told(result: Learnt) -> dict[str, Any]:
    fields = {"measures", "before", "recipes", "memory", "keeps_data", "seconds", "capsule"}
    return result.model_dump(mode="json", include=fields | {"random_mae", "random_accuracy"})


def _told_of_classes(learner: Learner, dataset: Dataset, result: Learnt) -> dict[str, Any]:
    if not isinstance(result, LearnClassesResult):
        return {}
    split = fits.split_of(dataset, "train")
    lowest = split.lowest_label or 0 if learner.scenario == "task_incremental" else 0
    classes = TaskClasses(count=result.classes, lowest=lowest, names=split.labels, dataset=dataset.digest)
    return {
        "architecture": result.architecture.model_dump(mode="json"),
        "classes": classes.model_dump(mode="json"),
    }


def _capsule(learner: Learner, number: int, task: int, kept: Kept) -> VersionCapsule:
    place = {"learner_id": learner.id, "number": number, "task": task}
    return VersionCapsule(**place, tenant=learner.tenant, digest=kept.digest, size=kept.size)


def weights_of(session: Session, tenant: str, version: Version, network: Network) -> Kept:
    """The file of one of its networks."""
    if network == "learner":
        return Kept(version.digest, version.size)
    if version.autoencoder_digest is None:
        raise NotFound("autoencoder", f"{version.learner_id}/versions/{version.number}")
    blob = session.get_one(Blob, (tenant, version.autoencoder_digest))
    return Kept(blob.digest, blob.size)


def as_model(
    session: Session, tenant: str, learner_id: str, number: int, network: Network = "learner"
) -> tuple[Model, list[Kept]]:
    """A model of a version, and the files that it refers to. A capsule of one task says nothing of the others."""
    version = find_version(session, tenant, learner_id, number)
    learner = session.get_one(Learner, learner_id)
    assert learner.input is not None, "a learner with a version has seen images"
    kept = weights_of(session, tenant, version, network)
    told = learner.autoencoder if network == "autoencoder" else version.architecture or learner.architecture
    architecture = architecture_spec.validate_python(told)
    known = len(version.measures) == 1 and architecture.task == "reconstruct"
    capsule = capsules(session, learner_id, [number])[number].get(1) if known else None
    row = Model(
        id=new_id("model"),
        tenant=tenant,
        name=f"{learner.name}, version {number}"[:200],
        architecture=architecture.model_dump(mode="json"),
        input=learner.input,
        range=learner.range,
        parameters=architecture.parameters(parse_image_shape(learner.input)),
        digest=kept.digest,
        size=kept.size,
        origin="learn",
        job_id=version.job_id,
        capsule_digest=capsule and capsule.digest,
        capsule=capsule and {**(version.capsule or {}), "digest": capsule.digest, "size": capsule.size},
    )
    session.add(row)
    session.flush()
    return row, [kept, *([Kept(capsule.digest, capsule.size)] if capsule is not None else [])]
