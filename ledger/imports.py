"""What a bundle brought becomes a model or a learner of ours, and its story is kept beside it."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from flashcards.contract.ancestry import AncestorCards, AncestorModel, Ancestry, Imported, Measured
from flashcards.contract.bundle import Bundle, BundledModel, BundledVersion
from flashcards.contract.capsule import CapsuleFacts
from ledger import tables
from ledger.ancestry import imported
from ledger.ids import new_id
from ledger.outcomes import stored_capsule
from ledger.store import Kept
from ledger.tables import Learner, Model, Version, VersionCapsule


@dataclass(frozen=True)
class Brought:
    """A bundle that was checked."""

    digest: str
    manifest: Bundle
    lineage: Ancestry
    recipes: list[AncestorCards]
    metrics: list[Measured]
    capsules: dict[str, CapsuleFacts]  # by the name of the file

    def kept(self, name: str) -> Kept:
        file = self.manifest.files[name]
        return Kept(file.digest, file.size)


def take_model(session: Session, tenant: str, name: str | None, brought: Brought) -> Model:
    told = brought.manifest.model
    assert told is not None
    weights, capsule = brought.kept(told.weights), None
    if told.capsule is not None:
        capsule = stored_capsule(brought.capsules[told.capsule], brought.kept(told.capsule))
    row = Model(
        id=new_id("model"),
        tenant=tenant,
        name=name or told.name,
        architecture=told.architecture.model_dump(mode="json"),
        input=str(told.input),
        range=list(told.range),
        parameters=told.architecture.parameters(told.input),
        digest=weights.digest,
        size=weights.size,
        origin="import",
        uploaded_digest=told.uploaded_digest,
        capsule=capsule,
        capsule_digest=capsule and capsule["digest"],
    )
    session.add(row)
    _remember(session, tenant, row.id, brought, _at_home(told, weights.digest))
    session.flush()
    return row


def take_learner(session: Session, tenant: str, name: str | None, brought: Brought) -> Learner:
    """Its versions keep their numbers. What they were learnt from is not here, only in its story."""
    told = brought.manifest.learner
    assert told is not None
    beside = told.autoencoder_architecture
    row = Learner(
        id=new_id("learner"),
        tenant=tenant,
        name=name or told.name,
        scenario=told.scenario,
        noise=told.noise,
        clip=told.clip,
        architecture=told.architecture.model_dump(mode="json"),
        autoencoder=beside and beside.model_dump(mode="json"),
        input=str(told.input),
        range=list(told.range),
        version=told.versions[-1].number,
    )
    session.add(row)
    session.flush()
    for version in told.versions:
        _take_version(session, row, version, brought)
    _remember(session, tenant, row.id, brought, None)
    session.flush()
    return row


def _take_version(session: Session, learner: Learner, told: BundledVersion, brought: Brought) -> None:
    weights = brought.kept(told.weights)
    fields = {"strategy", "classes", "capsule", "measures", "before", "recipes", "memory", "architecture"}
    plain = {"number", "parent", "task", "repeated", "random_mae", "random_accuracy", "seconds"}
    session.add(
        Version(
            learner_id=learner.id,
            tenant=learner.tenant,
            digest=weights.digest,
            size=weights.size,
            autoencoder_digest=told.autoencoder and brought.kept(told.autoencoder).digest,
            **told.model_dump(mode="json", include=fields | plain),
        )
    )
    session.flush()
    for task, name in enumerate(told.capsules, start=1):
        if name is not None:
            kept = brought.kept(name)
            place: dict[str, Any] = {"learner_id": learner.id, "number": told.number, "task": task}
            session.add(VersionCapsule(**place, tenant=learner.tenant, digest=kept.digest, size=kept.size))


def _at_home(told: BundledModel, digest: str) -> AncestorModel:
    return AncestorModel(
        id=told.id,
        name=told.name,
        architecture=told.architecture.model_dump(mode="json"),
        input=str(told.input),
        digest=digest,
        origin=told.origin,
        job=told.job,
    )


def _remember(session: Session, tenant: str, id: str, brought: Brought, model: AncestorModel | None) -> None:
    manifest = brought.manifest
    story = Imported(
        bundle=brought.digest,
        made_by=manifest.made_by,
        made_at=manifest.made_at,
        id=manifest.what.id,
        name=manifest.what.name,
        model=model,
        lineage=brought.lineage,
        recipes=brought.recipes,
        metrics=brought.metrics,
    )
    session.add(tables.Imported(id=id, tenant=tenant, told=story.model_dump(mode="json")))


def made_by_us(session: Session, model: Model) -> bool:
    """Did this engine train it, here or where its bundle comes from? Its forward pass is then the one that made it."""
    if model.origin != "import":
        return model.origin != "upload"
    story = imported(session, model.id)
    return story is not None and story.model is not None and story.model.origin != "upload"
