"""What a finished job leaves in the ledger beside its files: a `train` job a model, a `capture` job flashcards."""

from typing import Any

from sqlalchemy.orm import Session

from flashcards.contract.image import parse_image_shape
from flashcards.contract.results import CaptureResult, EvaluateResult, NoopResult, TrainResult
from flashcards.contract.specs import CaptureSpec, EvaluateSpec, JobSpec, NoopSpec, TrainSpec, job_spec
from ledger import artifacts, lifecycle
from ledger.artifacts import Product
from ledger.ids import new_id
from ledger.lifecycle import Claim
from ledger.tables import Dataset, Flashcards, Model

Result = TrainResult | CaptureResult | EvaluateResult | NoopResult


def succeed(session: Session, claim: Claim, said: dict[str, Any], products: list[Product]) -> bool:
    """State, files, what was made and the last event: one transaction, the caller's. False: as in `end`."""
    spec = job_spec.validate_python(claim.spec)
    files = {product.name: product for product in products}
    result: Result
    match spec:
        case TrainSpec():
            result = _trained(session, claim, spec, TrainResult.model_validate(said), files["model.safetensors"])
        case CaptureSpec():
            result = _captured(session, claim, spec, CaptureResult.model_validate(said), files)
        case EvaluateSpec():
            checked = EvaluateResult.model_validate(said)
            result = checked.model_copy(update={"model": spec.model, "dataset": spec.dataset})
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


def _trained(session: Session, claim: Claim, spec: TrainSpec, result: TrainResult, weights: Product) -> Result:
    dataset = session.get_one(Dataset, spec.dataset)
    model = Model(
        id=new_id("model"),
        tenant=claim.tenant,
        name=spec.name or f"{spec.architecture.name} on {dataset.name}"[:200],
        architecture=spec.architecture.model_dump(mode="json"),
        input=str(parse_image_shape(dataset.splits["train"]["shape"])),
        range=list(spec.range),
        parameters=result.parameters,
        digest=weights.kept.digest,
        size=weights.kept.size,
        origin="train",
        job_id=claim.job_id,
    )
    session.add(model)
    return result.model_copy(update={"model": model.id})


def _captured(
    session: Session, claim: Claim, spec: CaptureSpec, result: CaptureResult, files: dict[str, Product]
) -> Result:
    cards, sheet = files["cards.npy"].kept, files["sheet.png"].kept
    flashcards = Flashcards(
        id=new_id("flashcards"),
        tenant=claim.tenant,
        name=spec.name,
        model_id=spec.model,
        job_id=claim.job_id,
        recipe=result.recipe.model_dump(mode="json"),
        digest=cards.digest,
        size=cards.size,
        sheet_digest=sheet.digest,
    )
    session.add(flashcards)
    return result.model_copy(update={"flashcards": flashcards.id})


def spec_of(claim: Claim) -> JobSpec:
    return job_spec.validate_python(claim.spec)
