"""What goes into a bundle: the manifest, and the files that it names."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import BaseModel
from sqlalchemy.orm import Session

import flashcards
from flashcards.contract.ancestry import BundledMetrics, Imported, Recipes
from flashcards.contract.bundle import (
    CARD,
    FORMAT,
    LINEAGE,
    METRICS,
    RECIPES,
    VERSION,
    Bundle,
    BundledClasses,
    BundledFile,
    BundledLearner,
    BundledModel,
    BundledVersion,
)
from flashcards.contract.capsule import CapsuleFacts
from ledger import ancestry, learners, scope
from ledger.clock import as_datetime
from ledger.store import Kept
from ledger.tables import Learner, Model, Version, VersionCapsule
from ledger.versions import chain_to

MADE_BY = f"flashcards {flashcards.__version__}"


@dataclass
class Packing:
    """Files that lie in the store, and texts that are made for the bundle."""

    stored: dict[str, Kept] = field(default_factory=dict)
    texts: dict[str, bytes] = field(default_factory=dict)

    def file(self, name: str, kept: Kept) -> str:
        self.stored[name] = kept
        return name

    def text(self, name: str, value: BaseModel) -> None:
        self.texts[name] = value.model_dump_json(indent=2).encode()

    def files(self) -> dict[str, BundledFile]:
        made = {name: _file(text) for name, text in self.texts.items()}
        kept = {name: BundledFile(size=each.size, digest=each.digest) for name, each in self.stored.items()}
        return made | kept


@dataclass(frozen=True)
class Packed:
    manifest: Bundle
    packing: Packing


def of_model(session: Session, tenant: str, model_id: str) -> Packed:
    row = scope.find(session, Model, tenant, model_id)
    packing = Packing()
    model = _model(row, ancestry.imported(session, model_id), packing)
    packing.text(LINEAGE, ancestry.of_model(session, row))
    packing.text(RECIPES, Recipes(flashcards=ancestry.cards_of(session, tenant, model_id)))
    packing.text(METRICS, BundledMetrics(jobs=ancestry.measured(session, tenant, model_id, [row.job_id])))
    return Packed(_manifest(packing, as_datetime(row.created_at), model=model), packing)


def of_version(session: Session, tenant: str, learner_id: str, number: int) -> Packed:
    """A learner along the versions that led to this one."""
    newest = learners.find_version(session, tenant, learner_id, number)
    learner = session.get_one(Learner, learner_id)
    versions = chain_to(session, learner_id, number)
    jobs = [version.job_id for version in versions]
    packing = Packing()
    told = _learner(session, learner, versions, packing)
    packing.text(LINEAGE, ancestry.of_learner(session, learner, reversed(jobs)))
    packing.text(METRICS, BundledMetrics(jobs=ancestry.measured(session, tenant, learner_id, jobs)))
    return Packed(_manifest(packing, as_datetime(newest.created_at), learner=told), packing)


def with_card(packed: Packed, card: str) -> Packed:
    """The model card is made of the manifest, and stands in it as any other file does."""
    text = card.encode()
    packed.packing.texts[CARD] = text
    files = {**packed.manifest.files, CARD: _file(text)}
    return Packed(packed.manifest.model_copy(update={"files": files}), packed.packing)


def _manifest(
    packing: Packing, made_at: datetime, model: BundledModel | None = None, learner: BundledLearner | None = None
) -> Bundle:
    """Without the time of day: the same record makes the same bundle."""
    told = {"format": FORMAT, "version": VERSION, "made_by": MADE_BY, "made_at": made_at, "files": packing.files()}
    return Bundle(**told, model=model, learner=learner)


def _model(row: Model, story: Imported | None, packing: Packing) -> BundledModel:
    capsule = None
    if row.capsule is not None:
        capsule = packing.file("capsule.safetensors", Kept(row.capsule["digest"], row.capsule["size"]))
    return BundledModel(
        id=row.id,
        name=row.name,
        architecture=row.architecture,
        input=row.input,
        range=row.range,
        origin=story.model.origin if story and story.model else row.origin,
        job=row.job_id,
        created_at=as_datetime(row.created_at),
        weights=packing.file("model.safetensors", Kept(row.digest, row.size)),
        uploaded_digest=row.uploaded_digest,
        capsule=capsule,
    )


def _learner(session: Session, row: Learner, versions: list[Version], packing: Packing) -> BundledLearner:
    capsules = learners.capsules(session, row.id, [version.number for version in versions])
    newest = versions[-1].number
    return BundledLearner(
        id=row.id,
        name=row.name,
        scenario=row.scenario,
        noise=row.noise,
        clip=row.clip,
        architecture=row.architecture,
        autoencoder_architecture=row.autoencoder,
        input=row.input,
        range=row.range,
        created_at=as_datetime(row.created_at),
        versions=[
            _version(session, version, capsules[version.number], packing, in_short=version.number != newest)
            for version in versions
        ],
    )


def _version(
    session: Session, row: Version, capsules: dict[int, VersionCapsule], packing: Packing, *, in_short: bool
) -> BundledVersion:
    """In short it is without the figures of each class, which are many and those of the newest version's tasks."""
    folder = f"versions/{row.number}"
    autoencoder = None
    if row.autoencoder_digest is not None:
        kept = learners.weights_of(session, row.tenant, row, "autoencoder")
        autoencoder = packing.file(f"{folder}/autoencoder.safetensors", kept)
    kept_of = {
        task: packing.file(f"{folder}/capsule-{task}.safetensors", Kept(capsule.digest, capsule.size))
        for task, capsule in capsules.items()
    }
    return BundledVersion(
        number=row.number,
        parent=row.parent,
        task=row.task,
        job=row.job_id,
        dataset=row.dataset_id,
        test_dataset=row.test_dataset_id,
        repeated=row.repeated,
        strategy=row.strategy,
        weights=packing.file(f"{folder}/model.safetensors", Kept(row.digest, row.size)),
        architecture=row.architecture,
        autoencoder=autoencoder,
        classes=None if row.classes is None else BundledClasses.model_validate(row.classes),
        capsules=[kept_of.get(task) for task in range(1, len(row.measures) + 1)],
        capsule=None if row.capsule is None else CapsuleFacts.model_validate(row.capsule, extra="ignore"),
        measures=[{**measure, "per_class": None} if in_short else measure for measure in row.measures],
        before=row.before,
        random_mae=row.random_mae,
        random_accuracy=row.random_accuracy,
        recipes=row.recipes,
        memory={**row.memory, "images": 0, "state": 0},
        seconds=row.seconds,
    )


def _file(text: bytes) -> BundledFile:
    return BundledFile(size=len(text), digest=hashlib.sha256(text).hexdigest())
