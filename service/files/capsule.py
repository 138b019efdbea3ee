"""Is this a capsule, and of this model?"""

from pydantic import ValidationError

from flashcards.contract.capsule import CapsuleFacts
from service.files.errors import BadFile
from service.files.facts import CapsuleQuestion
from service.files.upload import Upload
from service.files.words import size

MOST_BYTES = 4 << 20
UNFIT = "the capsule does not fit the model"


def read_capsule(upload: Upload) -> dict[str, object]:
    """In the child: its numbers are looked at, not only its header."""
    from flashcards.contract.capsule import BadCapsule, read

    if upload.size > MOST_BYTES:
        raise BadFile("too large for a capsule", f"it has {size(upload.size)}; {size(MOST_BYTES)} is the most")
    try:
        return read(bytes(upload.bytes_at(0, upload.size))).facts.model_dump(mode="json")
    except BadCapsule as bad:
        raise BadFile("not a capsule", str(bad)) from None


def describe_capsule(question: CapsuleQuestion, told: dict[str, object]) -> CapsuleFacts:
    try:
        facts = CapsuleFacts.model_validate(told)
    except ValidationError as error:
        raise BadFile("not a capsule", str(error)[:200]) from error
    if facts.latent_size != question.latent_size:
        has = f"a latent of {facts.latent_size:,} numbers, and the model's has {question.latent_size:,}"
        raise BadFile(UNFIT, f"it was measured on {has}")
    if len(facts.channel_mean) != question.channels or len(facts.channel_deviation) != question.channels:
        raise BadFile(UNFIT, f"its images have {len(facts.channel_mean)} channels, the model's {question.channels}")
    if facts.model_digest is not None and facts.model_digest not in question.digests:
        how = "measure it on these weights, or attach it to the model that it was measured on"
        raise BadFile(UNFIT, f"it was measured on weights with the digest {facts.model_digest}: {how}")
    return facts
