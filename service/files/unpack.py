"""Do the parts of a bundle go together? What the child found, against what the contract says."""

from collections.abc import Iterator
from math import prod

from pydantic import Field, ValidationError

from flashcards.contract.ancestry import Ancestry, BundledMetrics, Recipes
from flashcards.contract.architecture import Architecture
from flashcards.contract.base import Record
from flashcards.contract.bundle import LINEAGE, METRICS, RECIPES, Bundle, BundledLearner, BundledVersion
from flashcards.contract.capsule import CapsuleFacts
from flashcards.contract.image import ImageShape
from service.files.capsule import describe_capsule
from service.files.errors import BadFile
from service.files.facts import CapsuleQuestion, ModelQuestion
from service.files.model import Weights, conversion, describe_model
from service.files.words import quoted

UNFIT = "the bundle does not fit together"
PairOfNetworks = tuple[str, Architecture, str | None, Architecture | None]


class BundleQuestion(Record):
    kind: str = "bundle"


class Found(Record):
    """What the child tells."""

    manifest: dict[str, object]
    texts: dict[str, dict[str, object]]
    places: dict[str, int]
    weights: dict[str, Weights]
    capsules: dict[str, dict[str, object]]


class BundleFacts(Record):
    manifest: Bundle
    lineage: Ancestry
    recipes: Recipes
    metrics: BundledMetrics
    places: dict[str, int] = Field(description="where the files that are kept begin in the zip")
    capsules: dict[str, CapsuleFacts]


def describe_bundle(told: dict[str, object]) -> BundleFacts:
    found = Found.model_validate(told)
    try:
        facts = BundleFacts(
            manifest=Bundle.model_validate(found.manifest),
            lineage=Ancestry.model_validate(found.texts.get(LINEAGE, {})),
            recipes=Recipes.model_validate(found.texts.get(RECIPES, {})),
            metrics=BundledMetrics.model_validate(found.texts.get(METRICS, {})),
            places=found.places,
            capsules={},
        )
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][:6])
        raise BadFile("the manifest is wrong", f"{where}: {first['msg']}"[:300]) from None
    return facts.model_copy(update={"capsules": _check(facts.manifest, found)})


def _check(manifest: Bundle, found: Found) -> dict[str, CapsuleFacts]:
    checked = _check_model(manifest, found) if manifest.model else _check_learner(manifest, found)
    spare = set(found.places) - checked
    if spare:
        raise BadFile(UNFIT, f"{quoted(min(spare))} is in it, and nothing in the manifest names it")
    return {name: CapsuleFacts.model_validate(facts) for name, facts in found.capsules.items()}


def _check_model(manifest: Bundle, found: Found) -> set[str]:
    model = manifest.model
    assert model is not None
    _check_weights(found, model.weights, model.architecture, model.input, model.range)
    if model.capsule is None:
        return {model.weights}
    if model.architecture.task != "reconstruct":
        raise BadFile(UNFIT, f"{model.architecture.name} is a classifier, and a capsule is of an autoencoder")
    digests = [manifest.files[model.weights].digest, *([model.uploaded_digest] if model.uploaded_digest else [])]
    _check_capsule(found, model.capsule, digests, model.architecture, model.input)
    return {model.weights, model.capsule}


def _check_learner(manifest: Bundle, found: Found) -> set[str]:
    learner = manifest.learner
    assert learner is not None
    checked: set[str] = set()
    for version, networks in _networks(learner):
        weights, architecture, autoencoder, makes_cards = networks
        _check_weights(found, weights, architecture, learner.input, learner.range)
        if autoencoder is not None and makes_cards is not None:
            _check_weights(found, autoencoder, makes_cards, learner.input, learner.range)
        named = [name for name in version.capsules if name is not None]
        for name in named:
            _check_capsule(found, name, None, makes_cards or architecture, learner.input)
        checked |= {weights, *named, *([autoencoder] if autoencoder else [])}
    return checked


def _networks(learner: BundledLearner) -> Iterator[tuple[BundledVersion, PairOfNetworks]]:
    """Of each version: what answers, and what makes cards beside it."""
    beside = learner.autoencoder_architecture
    classifies = learner.scenario in ("task_incremental", "new_instance")
    for version in learner.versions:
        own = version.architecture or learner.architecture
        if (own.task == "classify") != classifies or (beside is not None) != classifies:
            raise BadFile(UNFIT, f"scenario {learner.scenario} and {own.name} do not go together")
        if classifies != (version.classes is not None) or (version.autoencoder is not None and beside is None):
            raise BadFile(UNFIT, f"version {version.number} lacks its classes, or has a network that it cannot have")
        yield version, (version.weights, own, version.autoencoder, beside)


def _check_weights(
    found: Found, name: str, architecture: Architecture, image: ImageShape, bounds: tuple[float, float]
) -> None:
    if name not in found.weights:
        raise BadFile(UNFIT, f"{quoted(name)} should hold weights")
    asked = ModelQuestion(architecture=architecture, input=image, range=bounds)
    facts = describe_model(asked, found.weights[name])
    if conversion(facts, found.weights[name]) is not None:
        raise BadFile(UNFIT, f"{quoted(name)} is not as weights are kept: float32, under the names of its architecture")


def _check_capsule(
    found: Found, name: str, digests: list[str] | None, architecture: Architecture, image: ImageShape
) -> None:
    """`digests` are of the weights it was measured on; those of a learner are refreshed, and say what they say."""
    if name not in found.capsules:
        raise BadFile(UNFIT, f"{quoted(name)} should be a capsule")
    told = found.capsules[name]
    known = digests if digests is not None else [str(told.get("model_digest"))]
    size = prod(architecture.latent_shape(image))
    describe_capsule(CapsuleQuestion(digests=known, latent_size=size, channels=image.channels), told)
