"""Checkpoints of each family, as torch and safetensors save them, through the whole check."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from engine.models import build
from flashcards.contract.architecture import Architecture, architecture_spec
from flashcards.contract.image import ImageShape, parse_image_shape
from service.files.checker import check_file
from service.files.errors import BadFile
from service.files.facts import DatasetQuestion, ModelFacts, ModelQuestion

DIGITS = ImageShape(8, 8, 1)
NAMES = {
    "blk_1_fil_4": "8x8x1",
    "conv_ae_4_6": "8x8x1",
    "conv_ae_4_6_latent_5_tanh_plain_pool_sigmoid": "8x8x3",
    "dense_ae_16_4": "1x20x1",
    "tasknet_3_2_width_2_hidden_9_latent_4": "9x8x1",
    "resnet18_4_width_2": "8x8x3",
    "vgg16_5_width_2": "32x32x1",
}
WITH_NORM = architecture_spec.validate_python("conv_ae_4_6")


def check(path: Path, question: Any) -> Any:
    return asyncio.run(check_file(path, question, path.with_suffix(".made")))


def asked(architecture: str | Architecture, image: ImageShape = DIGITS) -> ModelQuestion:
    return ModelQuestion.model_validate({"architecture": architecture, "input": image})


def state(architecture: str | Architecture = WITH_NORM, image: ImageShape = DIGITS) -> dict[str, torch.Tensor]:
    network = build(architecture_spec.validate_python(architecture), image, torch.Generator().manual_seed(0))
    network(torch.rand(3, image.channels, image.height, image.width))  # one batch is counted
    return network.state_dict()


def refusal(path: Path, question: ModelQuestion) -> BadFile:
    with pytest.raises(BadFile) as caught:
        check(path, question)
    assert not path.with_suffix(".made").exists()
    return caught.value


def same(path: Path, tensors: dict[str, torch.Tensor]) -> bool:
    kept = load_file(path)
    assert {name: tensor.dtype for name, tensor in kept.items()} == {n: t.dtype for n, t in tensors.items()}
    return all(torch.equal(kept[name], tensor) for name, tensor in tensors.items())


@pytest.mark.parametrize(("name", "input"), NAMES.items())
def test_our_names_are_kept_as_they_are(name: str, input: str, tmp_path: Path) -> None:
    image = parse_image_shape(input)
    save_file(state(name, image), tmp_path / "weights", {"flashcards.architecture": name, "flashcards.input": input})
    facts: ModelFacts = check(tmp_path / "weights", ModelQuestion())
    assert (facts.architecture.name, facts.input, facts.mapping) == (name, image, None)
    assert facts.parameters == facts.architecture.parameters(image)
    assert not (tmp_path / "weights.made").exists()


@pytest.mark.parametrize(("name", "input"), NAMES.items())
def test_other_names_in_our_order_are_taken_from_a_pt(name: str, input: str, tmp_path: Path) -> None:
    image = parse_image_shape(input)
    tensors = state(name, image)
    torch.save({f"net.{place}": tensor for place, tensor in enumerate(tensors.values())}, tmp_path / "weights")
    facts: ModelFacts = check(tmp_path / "weights", asked(name, image))
    assert facts.mapping == {f"net.{place}": name for place, name in enumerate(tensors)}
    assert same(tmp_path / "weights.made", tensors)
    with safe_open(tmp_path / "weights.made", "np") as kept:
        assert architecture_spec.validate_json(kept.metadata()["flashcards.architecture"]) == facts.architecture


def test_the_usual_way_to_write_such_a_network_maps_by_order(tmp_path: Path) -> None:
    nn = torch.nn
    theirs = nn.Sequential(
        *(nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4), nn.ReLU()),
        *(nn.Conv2d(4, 6, 3, stride=2, padding=1), nn.BatchNorm2d(6), nn.ReLU()),
        *(nn.Upsample(scale_factor=2), nn.Conv2d(6, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()),
        *(nn.Upsample(scale_factor=2), nn.Conv2d(4, 1, 3, padding=1)),
    )
    x = torch.rand(5, 1, 8, 8)
    theirs(x)
    torch.save(theirs.state_dict(), tmp_path / "weights")
    facts = check(tmp_path / "weights", asked(WITH_NORM))
    assert facts.mapping["1.num_batches_tracked"] == "encoder.stages.0.norm.num_batches_tracked"
    ours = build(WITH_NORM, DIGITS)
    ours.load_state_dict(load_file(tmp_path / "weights.made"))
    torch.testing.assert_close(ours.eval()(x), theirs.eval()(x))


@pytest.mark.parametrize("prefix", ["", "module."])
@pytest.mark.parametrize("kind", ["pt", "safetensors"])
def test_a_file_without_the_count_of_batches_begins_at_zero(prefix: str, kind: str, tmp_path: Path) -> None:
    whole = state()
    fewer = {prefix + name: tensor for name, tensor in whole.items() if tensor.shape != ()}
    assert len(fewer) == len(whole) - 3
    (torch.save if kind == "pt" else save_file)(fewer, tmp_path / "weights")
    check(tmp_path / "weights", asked(WITH_NORM))
    zeros = {name: torch.tensor(0) for name, tensor in whole.items() if tensor.shape == ()}
    assert same(tmp_path / "weights.made", whole | zeros)


def test_some_counts_and_not_others_are_missing(tmp_path: Path) -> None:
    some = {name: tensor for name, tensor in state().items() if name != "encoder.stages.0.norm.num_batches_tracked"}
    save_file(some, tmp_path / "weights")
    bad = refusal(tmp_path / "weights", asked(WITH_NORM))
    assert "missing: 'encoder.stages.0.norm.num_batches_tracked'" in bad.detail


def test_half_precision_halves_the_floats_and_not_the_counts(tmp_path: Path) -> None:
    halved = {name: tensor.half() if tensor.shape else tensor for name, tensor in state().items()}
    save_file(halved, tmp_path / "weights")
    check(tmp_path / "weights", asked(WITH_NORM))
    assert same(tmp_path / "weights.made", {n: t.float() if t.shape else t for n, t in halved.items()})


def test_a_count_that_is_no_whole_number_is_refused(tmp_path: Path) -> None:
    name = "decoder.stages.0.norm.num_batches_tracked"
    save_file(state() | {name: torch.tensor(1.0)}, tmp_path / "weights")
    bad = refusal(tmp_path / "weights", asked(WITH_NORM))
    assert f"'{name}' of conv_ae_4_6 on 8x8x1 is a whole number, int64" in bad.detail


@pytest.mark.parametrize("kind", ["pt", "safetensors"])
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("encoder.stages.0.norm.num_batches_tracked", torch.tensor(1, dtype=torch.int32)),
        ("encoder.stages.0.norm.num_batches_tracked", torch.tensor([1])),
        ("encoder.stages.0.norm.running_mean", torch.ones(4, dtype=torch.int64)),
    ],
)
def test_other_whole_numbers_are_no_weights(name: str, wrong: torch.Tensor, kind: str, tmp_path: Path) -> None:
    (torch.save if kind == "pt" else save_file)(dict(state()) | {name: wrong}, tmp_path / "weights")
    bad = refusal(tmp_path / "weights", asked(WITH_NORM))
    assert bad.title == "the weights are not floats"
    assert name in bad.detail


def test_a_count_where_no_norm_is(tmp_path: Path) -> None:
    plain = architecture_spec.validate_python("conv_ae_4_6_plain")
    save_file(state(plain) | {"num_batches_tracked": torch.tensor(3)}, tmp_path / "weights")
    assert "not expected: 'num_batches_tracked'" in refusal(tmp_path / "weights", asked(plain)).detail


def test_the_input_decides_over_the_shapes_of_linear_layers(tmp_path: Path) -> None:
    save_file(state("dense_ae_16_4", ImageShape(1, 20, 1)), tmp_path / "weights")
    bad = refusal(tmp_path / "weights", asked("dense_ae_16_4", ImageShape(1, 21, 1)))
    assert "'encoder.layers.0.weight' of dense_ae_16_4 on 1x21x1 is 16x21, and the file has 16x20" in bad.detail


@pytest.mark.parametrize(
    ("name", "image", "words"),
    [
        ("conv_ae_4_6", ImageShape(8, 10, 1), "must divide by 4"),
        ("conv_ae_4_6", ImageShape(1, 64, 1), "for vectors there is dense_ae"),
        ("dense_ae_4096_16", ImageShape(256, 256, 3), "parameters"),
    ],
)
def test_a_network_that_cannot_give_its_input_back(name: str, image: ImageShape, words: str, tmp_path: Path) -> None:
    save_file(state(), tmp_path / "weights")
    assert words in refusal(tmp_path / "weights", asked(name, image)).detail


@pytest.mark.parametrize("shape", [(5, 20), (5, 1, 20), (5, 1, 20, 1), (2, 4096)])
def test_a_table_is_a_dataset_of_vectors(shape: tuple[int, ...], tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.linspace(0, 1, int(np.prod(shape)), dtype="f4").reshape(shape))
    split = check(tmp_path / "x.npz", DatasetQuestion(max_bytes=10**6)).splits["train"]
    assert (split.count, split.shape) == (shape[0], (1, int(np.prod(shape[1:])), 1))


@pytest.mark.parametrize("shape", [(5, 4097), (5, 2, 1025), (5, 1, 4097, 1)])
def test_vectors_have_bounds_and_images_their_own(shape: tuple[int, ...], tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.zeros(shape, "u1"))
    with pytest.raises(BadFile, match="of a vector to 4096"):
        check(tmp_path / "x.npz", DatasetQuestion(max_bytes=10**6))
