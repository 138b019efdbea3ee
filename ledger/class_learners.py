"""A learner of classes that begins with models: a classifier, and the autoencoder that makes cards for it."""

from sqlalchemy.orm import Session

from flashcards.contract.architecture import architecture_spec
from flashcards.contract.image import parse_image_shape
from flashcards.contract.learners import LearnerSpec
from flashcards.contract.results import Memory, TaskMeasure
from ledger import fits, scope
from ledger.class_fits import TaskClasses, check_pair, classifier_of
from ledger.errors import NotFound, Unfit
from ledger.store import Kept
from ledger.tables import Learner, Model, Version


def find_pair(session: Session, tenant: str, spec: LearnerSpec) -> tuple[Model, Model]:
    """Classifier and autoencoder, of which the one can learn from what the other makes."""
    classifier, autoencoder = (
        _find(session, tenant, id or "", field)
        for id, field in ((spec.classifier, "classifier"), (spec.autoencoder, "autoencoder"))
    )
    answers = classifier_of(fits.architecture_of(classifier), "classifier")
    fits.check_learns(answers, "classifier")
    fits.check_learns(fits.architecture_of(autoencoder), "autoencoder")
    fits.check_reconstructs(fits.architecture_of(autoencoder), "autoencoder")
    if classifier.input != autoencoder.input or classifier.range != autoencoder.range:
        sees = [f"{model.input} from {model.range[0]:g} to {model.range[1]:g}" for model in (classifier, autoencoder)]
        raise Unfit("autoencoder", f"it takes images of {sees[1]}, and the classifier {sees[0]}")
    if spec.scenario == "new_instance" and len(answers.heads) > 1:
        raise Unfit("classifier", f"sessions have one head for all, and {answers.name} has {len(answers.heads)}")
    low, high = classifier.range
    check_pair(answers, fits.architecture_of(autoencoder), (low, high))
    return classifier, autoencoder


def as_row(classifier: Model, autoencoder: Model) -> dict[str, object]:
    """Fields of the learner."""
    return {
        "model_id": classifier.id,
        "autoencoder_id": autoencoder.id,
        "architecture": classifier.architecture,
        "autoencoder": autoencoder.architecture,
        "input": classifier.input,
        "range": classifier.range,
        "version": 0,
    }


def first_version(learner: Learner, classifier: Model, autoencoder: Model) -> Version:
    shape, capsule = parse_image_shape(classifier.input), autoencoder.capsule
    answers = classifier_of(fits.architecture_of(classifier))
    memory = Memory(
        network=answers.size(shape),
        autoencoder=architecture_spec.validate_python(autoencoder.architecture).size(shape),
        capsules=capsule["size"] if capsule else 0,
    )
    return Version(
        learner_id=learner.id,
        number=0,
        tenant=learner.tenant,
        task=classifier.name,
        digest=classifier.digest,
        size=classifier.size,
        architecture=classifier.architecture,
        autoencoder_digest=autoencoder.digest,
        classes=TaskClasses(count=answers.classes).model_dump(mode="json"),
        capsule=capsule,
        measures=[TaskMeasure(task=classifier.name).model_dump(mode="json")],
        recipes=[],
        memory=memory.model_dump(mode="json"),
    )


def files_of(classifier: Model, autoencoder: Model) -> list[Kept]:
    found = [Kept(classifier.digest, classifier.size), Kept(autoencoder.digest, autoencoder.size)]
    if autoencoder.capsule is not None:
        found.append(Kept(autoencoder.capsule["digest"], autoencoder.capsule["size"]))
    return found


def _find(session: Session, tenant: str, id: str, field: str) -> Model:
    try:
        return scope.find(session, Model, tenant, id)
    except NotFound as missing:
        raise Unfit(field, missing.detail) from None
