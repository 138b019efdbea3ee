"""What a finished job leaves beside its files: `train`, `distill` a model, `capture` flashcards, `learn` a version."""

from typing import Any

from pydantic import TypeAdapter
from sqlalchemy.orm import Session

from flashcards.contract.capsule import CapsuleFacts
from flashcards.contract.class_results import (
    EvaluateClassifierResult,
    LearnClassesResult,
    PredictResult,
    TrainClassifierResult,
)
from flashcards.contract.image import parse_image_shape
from flashcards.contract.resources import Result
from flashcards.contract.results import (
    AnalyzeResult,
    CaptureResult,
    CompareResult,
    DistillResult,
    EvaluateCardsResult,
    EvaluateResult,
    ExportResult,
    LearnResult,
    NoopResult,
    TrainResult,
)
from flashcards.contract.shards import ShardResult
from flashcards.contract.specs import (
    AnalyzeSpec,
    AnySpec,
    CaptureSpec,
    CompareSpec,
    DistillSpec,
    EvaluateSpec,
    ExportSpec,
    LearnSpec,
    NoopSpec,
    PredictSpec,
    ShardSpec,
    TrainSpec,
    any_spec,
)
from ledger import artifacts, learners, lifecycle, parents, shards
from ledger.artifacts import Product
from ledger.ids import new_id
from ledger.lifecycle import Claim
from ledger.store import Kept
from ledger.tables import Dataset, Flashcards, Model

#: Autoencoders and classifiers say different things, and no field of one is missing from it and in the other.
trained: TypeAdapter[TrainResult | TrainClassifierResult] = TypeAdapter(TrainResult | TrainClassifierResult)
learnt_result: TypeAdapter[LearnResult | LearnClassesResult] = TypeAdapter(LearnResult | LearnClassesResult)
evaluated: TypeAdapter[EvaluateResult | EvaluateClassifierResult] = TypeAdapter(
    EvaluateResult | EvaluateClassifierResult
)


def succeed(session: Session, claim: Claim, said: dict[str, Any], products: list[Product]) -> bool:
    """State, files, what was made and the last event: one transaction, the caller's. False: as in `end`."""
    spec = spec_of(claim)
    files = {product.name: product for product in products}
    result: Result
    match spec:
        case TrainSpec():
            result = _trained(session, claim, spec, trained.validate_python(said), files)
        case CaptureSpec():
            result = _captured(session, claim, spec, CaptureResult.model_validate(said), files)
        case ShardSpec():
            result = ShardResult.model_validate(said)
        case DistillSpec():
            result = _distilled(session, claim, spec, DistillResult.model_validate(said), files)
        case LearnSpec():
            learnt = learners.add_version(session, claim, spec, learnt_result.validate_python(said), files)
            if learnt is None:
                return end(session, claim, "failed", [], error=learners.MOVED_ON)
            result = learnt
        case CompareSpec():
            children = [child.id for child in parents.children(session, claim.job_id)]
            result = CompareResult.model_validate(said).model_copy(update={"children": children})
        case AnalyzeSpec():
            analyzed = AnalyzeResult.model_validate(said)
            result = analyzed.model_copy(update={"model": spec.model, "dataset": spec.dataset})
        case EvaluateSpec(flashcards=None):
            result = evaluated.validate_python(said).model_copy(update={"model": spec.model, "dataset": spec.dataset})
        case EvaluateSpec():
            cards = EvaluateCardsResult.model_validate(said)
            result = cards.model_copy(update={"flashcards": spec.flashcards, "dataset": spec.dataset})
        case PredictSpec():
            predicted = PredictResult.model_validate(said)
            result = predicted.model_copy(update={"model": spec.model, "dataset": spec.dataset})
        case ExportSpec():
            result = ExportResult.model_validate(said).model_copy(update={"model": spec.model})
        case NoopSpec():
            result = NoopResult.model_validate(said)
    if not end(session, claim, "succeeded", products, result=result.model_dump(mode="json")):
        return False
    artifacts.forget_resume_points(session, claim.job_id)
    return True


def end(session: Session, claim: Claim, state: str, products: list[Product], **what: Any) -> bool:
    """False: somebody else holds the job by now, and the caller's transaction must not be committed."""
    if not lifecycle.settle(session, claim, state, **what):
        return False
    artifacts.record_products(session, claim.job_id, claim.attempt, products)
    return True


def _trained(
    session: Session,
    claim: Claim,
    spec: TrainSpec,
    result: TrainResult | TrainClassifierResult,
    files: dict[str, Product],
) -> Result:
    dataset = session.get_one(Dataset, spec.dataset)
    model = Model(
        name=spec.name or f"{spec.architecture.name} on {dataset.name}"[:200],
        architecture=spec.architecture.model_dump(mode="json"),
        input=str(parse_image_shape(dataset.splits["train"]["shape"])),
        range=list(spec.range),
        parameters=result.parameters,
        origin="train",
        **_made(claim, files, result.capsule if isinstance(result, TrainResult) else None),
    )
    session.add(model)
    through = {} if isinstance(result, TrainResult) else {"through": spec.through}
    return result.model_copy(update={"model": model.id, **through})


def _distilled(
    session: Session, claim: Claim, spec: DistillSpec, result: DistillResult, files: dict[str, Product]
) -> Result:
    cards = session.get_one(Flashcards, spec.flashcards)
    parent = session.get_one(Model, cards.model_id)
    model = Model(
        name=spec.name or f"{spec.architecture.name} from {parent.name}"[:200],
        architecture=spec.architecture.model_dump(mode="json"),
        input=parent.input,
        range=parent.range,
        parameters=result.parameters,
        origin="distill",
        **_made(claim, files, result.capsule),
    )
    session.add(model)
    return result.model_copy(update={"model": model.id, "flashcards": cards.id, "parent": parent.id})


def _made(claim: Claim, files: dict[str, Product], facts: CapsuleFacts | None) -> dict[str, Any]:
    """What every model has that a job has made."""
    weights, capsule = files["model.safetensors"].kept, files.get("capsule.safetensors")
    return {
        "id": new_id("model"),
        "tenant": claim.tenant,
        "digest": weights.digest,
        "size": weights.size,
        "job_id": claim.job_id,
        "capsule_digest": capsule and capsule.kept.digest,
        "capsule": facts and capsule and stored_capsule(facts, capsule.kept),
    }


def _captured(
    session: Session, claim: Claim, spec: CaptureSpec, result: CaptureResult, files: dict[str, Product]
) -> Result:
    digest, size = result.cards_digest or "", result.cards_size or 0
    if spec.materialise:
        digest, size = files["cards.npy"].kept.digest, files["cards.npy"].kept.size
    flashcards = Flashcards(
        id=new_id("flashcards"),
        tenant=claim.tenant,
        name=spec.name,
        model_id=spec.model,
        job_id=claim.job_id,
        recipe=result.recipe.model_dump(mode="json"),
        digest=digest,
        size=size,
        sheet_digest=files["sheet.png"].kept.digest,
        materialised=spec.materialise,
    )
    session.add(flashcards)
    shards.forget_parts(session, claim)
    return result.model_copy(update={"flashcards": flashcards.id})


def stored_capsule(facts: CapsuleFacts, kept: Kept) -> dict[str, Any]:
    return {**facts.model_dump(mode="json"), "digest": kept.digest, "size": kept.size}


def spec_of(claim: Claim) -> AnySpec:
    return any_spec.validate_python(claim.spec)
