import random

import pytest

from flashcards.contract.architecture import BlkArchitecture, TensorShape
from flashcards.contract.image import ImageShape
from service.files.errors import BadFile
from service.files.names import match

OURS = dict(BlkArchitecture(blocks=2, filters=4).tensors(ImageShape(32, 32, 3)))


def named(names: list[str]) -> dict[str, TensorShape]:
    return dict(zip(names, OURS.values(), strict=True))


def matched(theirs: dict[str, TensorShape], ordered: bool = True) -> dict[str, str]:
    return match(OURS, theirs, ordered=ordered, whose="blk_2_fil_4")


def refusal(theirs: dict[str, TensorShape], ordered: bool = True) -> BadFile:
    with pytest.raises(BadFile) as caught:
        matched(theirs, ordered)
    return caught.value


@pytest.mark.parametrize("ordered", [True, False])
def test_our_names_in_any_order_are_ours(ordered: bool) -> None:
    shuffled = dict(sorted(OURS.items()))
    assert matched(shuffled, ordered) == {name: name for name in OURS}
    assert list(matched(shuffled, ordered)) == list(OURS)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "model.", "module._orig_mod.", "ae/", "x"])
def test_one_prefix_before_every_name_is_taken_off(prefix: str, ordered: bool) -> None:
    theirs = {prefix + name: shape for name, shape in sorted(OURS.items())}
    assert matched(theirs, ordered) == {prefix + name: name for name in OURS}


def test_two_prefixes_are_not_one() -> None:
    theirs = named([("a." if place else "b.") + name for place, name in enumerate(OURS)])
    assert matched(theirs) == dict(zip(theirs, OURS, strict=True))
    assert refusal(theirs, ordered=False).title == "the tensors can be matched in more than one way"


def test_other_names_in_our_order_are_taken_in_that_order() -> None:
    theirs = named([f"layers.{place}" for place in range(len(OURS))])
    assert matched(theirs) == dict(zip(theirs, OURS, strict=True))


def test_other_names_in_another_order_are_ambiguous_and_both_lists_are_shown() -> None:
    items = list(named([f"layers.{place}" for place in range(len(OURS))]).items())
    random.Random(0).shuffle(items)
    bad = refusal(dict(items))
    assert bad.title == "the tensors can be matched in more than one way"
    lines = bad.detail.splitlines()[1:]
    assert len(lines) == len(OURS) + 1
    ours, theirs = zip(*(line.split(" | ") for line in lines), strict=True)
    assert [name.split() for name in ours[1:]] == [[name, "x".join(map(str, shape))] for name, shape in OURS.items()]
    assert list(theirs[1:]) == [f"{name} {'x'.join(map(str, shape))}" for name, shape in items]
    assert len({line.index("|") for line in lines}) == 1


def test_safetensors_keep_no_order_so_other_names_are_ambiguous() -> None:
    bad = refusal(named([f"layers.{place:02}" for place in range(len(OURS))]), ordered=False)
    assert "sorts by name" in bad.detail
    assert "encoder.stem.weight 4x3x3x3     | layers.00 4x3x3x3" in bad.detail


def test_a_name_of_ours_in_another_place_contradicts_the_order() -> None:
    names = [f"layers.{place}" for place in range(len(OURS))]
    names[list(OURS).index("encoder.blocks.0.weight")] = "encoder.blocks.1.weight"
    assert refusal(named(names)).title == "the tensors can be matched in more than one way"
    names[list(OURS).index("encoder.blocks.0.weight")] = "encoder.blocks.0.weight"
    assert matched(named(names))["encoder.blocks.0.weight"] == "encoder.blocks.0.weight"


@pytest.mark.parametrize("ordered", [True, False])
def test_a_missing_tensor_or_another_shape_is_no_riddle(ordered: bool) -> None:
    fewer = dict(list(named([f"layers.{place}" for place in range(len(OURS))]).items())[:-1])
    assert "missing: 'decoder.blocks.0.bias'" in refusal(fewer, ordered).detail
    other = dict(OURS) | {"decoder.head.bias": (7,)}
    assert "'decoder.head.bias' of blk_2_fil_4 is 3, and the file has 7" in refusal(other, ordered).detail
    behind = {f"module.{name}": shape for name, shape in other.items()}
    assert "'decoder.head.bias' of blk_2_fil_4 is 3, and the file has 7" in refusal(behind, ordered).detail


def test_the_answer_stays_short_whatever_the_names() -> None:
    largest = dict(BlkArchitecture(blocks=6, filters=512).tensors(ImageShape(64, 64, 16)))
    theirs = {"x" * 190 + str(place): shape for place, shape in enumerate(largest.values())}
    with pytest.raises(BadFile) as caught:
        match(largest, theirs, ordered=False, whose="it")
    assert len(caught.value.detail) < 6000
