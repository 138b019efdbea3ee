"""A comparison: a job that waits, and for every strategy with every seed a learner whose tasks are its children."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from flashcards.contract.learners import LearnerSpec
from flashcards.contract.specs import CompareSpec, Jitter, LearnSpec, LessonSpec
from flashcards.contract.strategies import Strategy, called
from ledger import artifacts, jobs, learners, parents
from ledger.admission import Admitted
from ledger.lifecycle import Caller
from ledger.tables import Job, Learner


def create(
    session: Session,
    tenant: str,
    spec: CompareSpec,
    admitted: Admitted,
    key_id: str | None = None,
    caller: Caller = Caller(),
) -> Job:
    """All of it in the caller's transaction. The children come unit by unit, so that the first are done early."""
    parent = jobs.create(session, tenant, spec, admitted, key_id, caller=caller)
    for strategy in spec.strategies:
        for seed in spec.seeds:
            learner = _learner(session, tenant, spec, strategy, seed, parent.id)
            for task in _tasks(spec, learner.id, strategy, seed):
                theirs = Admitted(admitted.queue, [learner.id, task.dataset], learner.id, admitted.mirrored)
                jobs.create(session, tenant, task, theirs, key_id, parent.id, caller)
    return parent


def delete(session: Session, job: Job) -> set[str]:
    """Any job; a comparison goes with its learners and children. The digests of the files that they referred to."""
    parents.check_ended(session, job.id)
    digests = set(artifacts.digests_of(session, job.id))
    for child in parents.children(session, job.id):
        digests |= set(artifacts.digests_of(session, child.id))
        session.delete(child)
    for learner in session.scalars(select(Learner).where(Learner.compare_id == job.id)).all():
        digests |= learners.remove(session, learner)
    session.delete(job)
    session.flush()
    return digests


def _learner(
    session: Session, tenant: str, spec: CompareSpec, strategy: Strategy, seed: int, parent_id: str
) -> Learner:
    asked = LearnerSpec(
        name=f"{called(strategy)}, seed {seed}"[:200],
        architecture=spec.architecture_for(strategy),
        autoencoder_architecture=spec.autoencoder_for_classes,
        range=spec.range,
        scenario=spec.scenario,
        noise=spec.noise,
        clip=spec.clip,
    )
    learner, _ = learners.create(session, tenant, asked)
    learner.compare_id = parent_id
    return learner


def _tasks(spec: CompareSpec, learner_id: str, strategy: Strategy, seed: int) -> list[LearnSpec]:
    same = {name: getattr(spec, name) for name in LessonSpec.model_fields}
    same["announce"] = None  # who waits for the comparison does not wait for its parts
    same |= {"learner": learner_id, "strategy": strategy, "seed": seed, "autoencoder_epochs": spec.autoencoder_epochs}
    jitters: Sequence[Jitter | None] = spec.jitters or [None] * len(spec.datasets)
    return [
        LearnSpec(kind="learn", dataset=dataset, jitter=jitter, **same)
        for dataset, jitter in zip(spec.datasets, jitters, strict=True)
    ]
