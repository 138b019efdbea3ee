import pytest

from flashcards.contract.architecture import BlkArchitecture
from flashcards.contract.image import ImageShape
from service.files.errors import BadFile
from service.files.facts import ModelFacts, ModelQuestion
from service.files.model import Weights, describe_model

SMALL = BlkArchitecture(blocks=2, filters=4)


def describe(
    question: ModelQuestion,
    metadata: dict[str, str] | None = None,
    channels: int = 3,
    **changes: tuple[int, ...] | None,
) -> ModelFacts:
    tensors = dict(SMALL.tensors(ImageShape(32, 32, channels)))
    for name, shape in changes.items():
        tensors.pop(name.replace("__", "."), None)
        if shape is not None:
            tensors[name.replace("__", ".")] = shape
    return describe_model(
        question, Weights(format="safetensors", metadata=metadata or {}, tensors=tensors, dtypes=["float32"])
    )


def refusal(*args: object, **changes: tuple[int, ...] | None) -> BadFile:
    with pytest.raises(BadFile) as caught:
        describe(*args, **changes)  # type: ignore[arg-type]
    return caught.value


def test_the_upload_says_it_all() -> None:
    question = ModelQuestion(architecture=SMALL, input=ImageShape(8, 16, 1), range=(-1, 1))
    facts = describe(question, channels=1)
    assert facts == ModelFacts(
        architecture=SMALL, input=ImageShape(8, 16, 1), range=(-1, 1), parameters=SMALL.parameters(ImageShape(8, 16, 1))
    )


@pytest.mark.parametrize(
    "text", ["blk_2_fil_4", '{"blocks": 2, "filters": 4}', '\n{"blocks":2,"filters":4,"activation":"tanh"}']
)
def test_the_metadata_says_it_all(text: str) -> None:
    metadata = {"flashcards.architecture": text, "flashcards.input": "64x64x1", "flashcards.range": "-1, 1"}
    facts = describe(ModelQuestion(), metadata, channels=1)
    assert (facts.architecture, facts.input, facts.range) == (SMALL, (64, 64, 1), (-1, 1))


def test_input_and_range_have_defaults() -> None:
    facts = describe(ModelQuestion(architecture=SMALL))
    assert (facts.input, facts.range) == ((32, 32, 3), (0, 1))


def test_the_upload_goes_before_the_metadata() -> None:
    metadata = {"flashcards.input": "64x64x1", "flashcards.range": "0,255"}
    facts = describe(ModelQuestion(architecture=SMALL, input=ImageShape(8, 8, 3), range=(0, 2)), metadata)
    assert (facts.input, facts.range) == ((8, 8, 3), (0, 2))


def test_an_unknown_architecture_is_asked_for() -> None:
    assert "?architecture=" in refusal(ModelQuestion()).detail


@pytest.mark.parametrize("text", ["blk_2_fil_8", '{"blocks": 2, "filters": 4, "head": "sigmoid"}'])
def test_two_architectures_are_both_named(text: str) -> None:
    detail = refusal(ModelQuestion(architecture=SMALL), {"flashcards.architecture": text}).detail
    assert "blk_2_fil_4 (tanh, linear head)" in detail
    assert "blk_2_fil_8 (tanh" in detail or "sigmoid head" in detail


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("architecture", "resnet50"),
        ("architecture", "{"),
        ("architecture", "[]"),
        ("architecture", '{"blocks": 99, "filters": 4}'),
        ("architecture", '{"blocks": 2, "filters": 4, "layers": 3}'),
        ("architecture", "blk_0_fil_4"),
        ("input", "32x32"),
        ("input", "0x0x0"),
        ("input", "99999x1x1"),
        ("range", "0"),
        ("range", "1,0"),
        ("range", "0,1,2"),
        ("range", "nan,1"),
        ("range", "0,inf"),
        ("range", "low,high"),
        ("range", ""),
    ],
)
def test_metadata_that_cannot_be_read_is_quoted(key: str, text: str) -> None:
    asked = ModelQuestion(architecture=None if key == "architecture" else SMALL)
    bad = refusal(asked, {f"flashcards.{key}": text})
    assert f"flashcards.{key} is {text!r}" in bad.detail


def test_the_input_fits_the_architecture() -> None:
    assert "must divide by 4" in refusal(ModelQuestion(architecture=SMALL, input=ImageShape(30, 32, 3))).detail


def test_missing_and_unexpected_tensors_are_listed() -> None:
    detail = refusal(ModelQuestion(architecture=SMALL), encoder__stem__weight=None, fc__weight=(10, 4)).detail
    assert "missing: 'encoder.stem.weight'" in detail
    assert "not expected: 'fc.weight'" in detail


def test_a_long_list_is_cut() -> None:
    larger = ModelQuestion(architecture=BlkArchitecture(blocks=6, filters=4), input=ImageShape(64, 64, 3))
    assert "and 12 more" in refusal(larger).detail


def test_wrong_shapes_are_said_as_wanted_and_got() -> None:
    detail = refusal(ModelQuestion(architecture=SMALL), encoder__stem__bias=(8,)).detail
    assert "'encoder.stem.bias' of blk_2_fil_4 on 32x32x3 is 4, and the file has 8" in detail


def test_the_channels_of_the_input_count() -> None:
    assert "4x1x3x3" in refusal(ModelQuestion(architecture=SMALL, input=ImageShape(32, 32, 1))).detail
