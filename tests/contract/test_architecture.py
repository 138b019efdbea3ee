import json

import pytest
from pydantic import TypeAdapter, ValidationError

from flashcards.contract.architecture import (
    ArchitectureField,
    BlkArchitecture,
    ConvArchitecture,
    DenseArchitecture,
    architecture_spec,
)
from flashcards.contract.image import ImageShape

architecture = architecture_spec.validate_python
CIFAR = ImageShape(32, 32, 3)
DIGITS = ImageShape(8, 8, 1)

#: The paper's architecture table.
PAPER = {
    "blk_4_fil_16": (24_083, (2, 2, 16)),
    "blk_4_fil_32": (94_243, (2, 2, 32)),
    "blk_4_fil_64": (372_803, (2, 2, 64)),
    "blk_4_fil_128": (1_482_883, (2, 2, 128)),
    "blk_3_fil_64": (298_947, (4, 4, 64)),
    "blk_2_fil_32": (57_251, (8, 8, 32)),
}


@pytest.mark.parametrize(("name", "parameters", "latent"), [(name, *facts) for name, facts in PAPER.items()])
def test_the_counts_of_the_paper(name, parameters, latent):
    built = architecture(name)
    assert built.name == name
    assert built.parameters(CIFAR) == parameters
    assert built.latent_shape(CIFAR) == latent


def test_a_name_and_its_fields_are_the_same():
    assert architecture("blk_2_fil_4") == architecture({"blocks": 2, "filters": 4})
    assert architecture("conv_ae_8_16") == architecture({"family": "conv_ae", "widths": [8, 16]})
    assert architecture("dense_ae_32_8") == architecture({"family": "dense_ae", "widths": [32], "latent": 8})


@pytest.mark.parametrize(
    "body",
    [
        {"blocks": 2, "filters": 4},
        {"blocks": 2, "filters": 4, "activation": "relu", "head": "sigmoid"},
        {"family": "blk", "blocks": 2, "filters": 4},
    ],
)
def test_without_a_family_it_is_the_first_there_was(body):
    built = architecture(body)
    assert isinstance(built, BlkArchitecture)
    assert built == architecture_spec.validate_json(json.dumps(body))
    assert built.model_dump()["family"] == "blk"


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("conv_ae_32_64_128", {}),
        ("conv_ae_32", {}),
        ("conv_ae_8_16_latent_7", {"latent": 7}),
        ("conv_ae_8_tanh", {"activation": "tanh"}),
        ("conv_ae_8_plain", {"norm": "none"}),
        ("conv_ae_8_pool", {"down": "pool"}),
        ("conv_ae_8_sigmoid", {"head": "sigmoid"}),
        (
            "conv_ae_8_latent_12_tanh_plain_pool_sigmoid",
            {"latent": 12, "activation": "tanh", "norm": "none", "down": "pool", "head": "sigmoid"},
        ),
        ("dense_ae_256_64_16", {"widths": (256, 64), "latent": 16}),
        ("dense_ae_16", {"widths": (), "latent": 16}),
        ("dense_ae_4_2_tanh_sigmoid", {"activation": "tanh", "head": "sigmoid"}),
        ("tasknet_10", {"heads": (10,), "width": 16, "hidden": 2000, "latent": 128, "classes": 10}),
        ("tasknet_10_10_5_width_4_hidden_100_latent_8", {"heads": (10, 10, 5), "width": 4, "classes": 25}),
        ("resnet18_10", {"width": 64}),
        ("resnet18", {"heads": (), "classes": 0}),
        ("tasknet_ae", {"width": 16, "hidden": 2000, "latent": 128, "head": "linear"}),
        ("tasknet_ae_width_4_latent_8_sigmoid", {"width": 4, "hidden": 2000, "latent": 8, "head": "sigmoid"}),
        ("resnet18_100_width_16", {"width": 16, "heads": (100,)}),
        ("vgg16_10", {"width": 64}),
        ("vgg16_2_3_width_8", {"width": 8, "heads": (2, 3)}),
    ],
)
def test_a_name_says_it_all_and_comes_back(name, fields):
    built = architecture(name)
    assert built.name == name
    assert {field: getattr(built, field) for field in fields} == fields
    assert architecture_spec.validate_json(built.model_dump_json()) == built


@pytest.mark.parametrize(
    "bad",
    [
        *("resnet", "blk_0_fil_4", "blk_7_fil_4", "blk_2_fil_0", "blk_2_fil_9999", "BLK_2_FIL_4", "", "blk_2_fil_4 "),
        *("conv_ae", "conv_ae_", "conv_ae_0", "conv_ae_513", "conv_ae_8_8_8_8_8_8_8", "conv_ae_8_pool_tanh", 5, {}),
        *("dense_ae", "dense_ae_0", "dense_ae_4097", "dense_ae_8_latent_4", "dense_ae_8_8\n", "dense_ae_٤"),
        *("resnet18_1", "resnet18_1001", "resnet18_10_width_0", "vgg16_10_", "tasknet_10_latent_8_width_4"),
        *("tasknet" + "_10" * 21, "vgg16_10_hidden_4", {"family": "vgg16", "heads": [1]}),
        {"family": "resnet", "blocks": 2, "filters": 4},
        {"family": None, "blocks": 2, "filters": 4},
        {"family": "conv_ae", "blocks": 2, "filters": 4},
        {"family": "conv_ae", "widths": []},
        {"family": "conv_ae", "widths": [8], "norm": "layer"},
        {"family": "conv_ae", "widths": [8], "latent": 0},
        {"family": "dense_ae", "widths": [8]},
        {"widths": [8], "latent": 4},
    ],
)
def test_what_is_not_an_architecture(bad):
    with pytest.raises(ValidationError):
        architecture(bad)


#: Of the usual builders of these networks for 32x32x3 and ten classes.
CLASSIFIERS = {
    "resnet18_10": (11_173_962, 512),
    "resnet18_10_width_16": (701_466, 128),
    "vgg16_10": (14_728_266, 512),
    "tasknet_10": (2_701_018, 128),
}


@pytest.mark.parametrize(("name", "parameters", "latent"), [(name, *facts) for name, facts in CLASSIFIERS.items()])
def test_the_counts_of_classifiers(name, parameters, latent):
    built = architecture(name)
    assert (built.parameters(CIFAR), built.latent_shape(CIFAR)) == (parameters, (latent,))
    assert (built.task, built.manner, built.answer_shape(CIFAR)) == ("classify", "10 classes", (10,))


def test_what_an_autoencoder_does():
    built = architecture("conv_ae_8_sigmoid")
    assert (built.task, built.manner, built.answer_shape(DIGITS)) == ("reconstruct", "relu, sigmoid head", DIGITS)


def test_behind_the_convs_of_the_paper_s_classifier_are_1024_numbers():
    assert architecture("tasknet_10").map_shape(CIFAR) == (2, 2, 256)
    assert dict(architecture("tasknet_10").tensors(CIFAR))["encoder.hidden.weight"] == (2000, 1024)


@pytest.mark.parametrize("name", ["tasknet_10_width_1", "resnet18_10_width_1"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (28, 28, 1), (7, 33, 3)])
def test_classifiers_take_images_that_do_not_halve(name, shape):
    assert architecture(name).fits(ImageShape(*shape))


def test_five_pools_leave_nothing_of_a_small_image():
    assert architecture("vgg16_10").fits(ImageShape(40, 50, 1))
    assert "input=32x32x1" in architecture("vgg16_10").misfit(ImageShape(28, 28, 1))
    assert "parameters" in architecture("tasknet_10").misfit(ImageShape(512, 512, 3))


@pytest.mark.parametrize(
    ("shape", "fits"), [((8, 8, 1), True), ((8, 12, 1), True), ((8, 10, 1), False), ((2, 4, 1), False)]
)
@pytest.mark.parametrize("name", ["blk_2_fil_4", "conv_ae_4_8", "conv_ae_4_8_latent_3_pool"])
def test_sides_must_halve(name, shape, fits):
    assert architecture(name).fits(ImageShape(*shape)) == fits


def test_a_misfit_is_told_in_words():
    assert architecture("blk_2_fil_4").misfit(DIGITS) is None
    assert architecture("blk_1_fil_4").misfit(ImageShape(7, 8, 1)) == (
        "blk_1_fil_4 halves an image once: both sides must divide by 2, and those of 7x8x1 do not"
    )
    assert "for vectors there is dense_ae" in architecture("conv_ae_4").misfit(ImageShape(1, 64, 1))
    assert "67,108,864 are the most" in architecture("dense_ae_4096_8").misfit(ImageShape(128, 128, 3))
    assert "parameters" in architecture("conv_ae_512_latent_4096").misfit(ImageShape(64, 64, 1))


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 4096, 1), (7, 5, 3)])
def test_linear_layers_take_any_shape(shape):
    assert architecture("dense_ae_8_4").fits(ImageShape(*shape))


def test_latents():
    assert architecture("conv_ae_4_8").latent_shape(DIGITS) == (2, 2, 8)
    assert architecture("conv_ae_4_8_latent_5").latent_shape(DIGITS) == (5,)
    assert architecture("dense_ae_32_8").latent_shape(DIGITS) == (8,)


def test_running_averages_are_in_the_file_and_no_parameters():
    with_norm, without = architecture("conv_ae_4_8"), architecture("conv_ae_4_8_plain")
    tensors = dict(with_norm.tensors(DIGITS))
    assert tensors["encoder.stages.1.norm.running_var"] == (8,)
    assert tensors["decoder.stages.0.norm.num_batches_tracked"] == ()
    # Three norms, of 4, 8 and 4 channels: a weight and a bias for each, and two averages that are not learnt.
    assert with_norm.parameters(DIGITS) == without.parameters(DIGITS) + 2 * 16
    assert with_norm.size(DIGITS) == without.size(DIGITS) + 4 * 4 * 16 + 3 * 8


def test_the_schema_tells_families_apart_and_takes_names():
    schema = TypeAdapter(ArchitectureField).json_schema()
    union, name = schema["anyOf"]
    assert union["discriminator"]["propertyName"] == "family"
    families = {"blk", "vae", "conv_ae", "dense_ae", "tasknet_ae", "tasknet", "resnet18", "vgg16"}
    families |= {"onnx", "onnx_classifier"}
    assert set(union["discriminator"]["mapping"]) == families
    assert len(union["oneOf"]) == len(families)
    assert name["type"] == "string"
    assert "family" not in schema["$defs"][BlkArchitecture.__name__]["required"]
    for family in (ConvArchitecture, DenseArchitecture):
        assert "family" in schema["$defs"][family.__name__]["required"]


@pytest.mark.parametrize("name", ["tasknet", "resnet18_width_16", "vgg16"])
def test_a_classifier_without_classes_waits_for_a_learner_to_say_them(name):
    found = architecture(name)
    assert found.name == name
    assert "says no number of classes" in found.misfit(CIFAR)
    assert found.model_copy(update={"heads": (10,)}).fits(CIFAR)


def test_the_autoencoder_of_tasks_has_the_encoder_of_their_classifier():
    shared = {name: shape for name, shape in architecture("tasknet_10").tensors(CIFAR) if name.startswith("encoder.")}
    theirs = dict(architecture("tasknet_ae").tensors(CIFAR))
    assert shared == {name: shape for name, shape in theirs.items() if name.startswith("encoder.")}
    assert architecture("tasknet_ae").sides(ImageShape(28, 28, 1)) == [(2, 2), (4, 4), (7, 7), (14, 14), (28, 28)]


GRAPH = {"family": "onnx", "layout": "nhwc", "image": "x", "bottleneck": "z", "answer": "y", "latent": [2, 2, 4]}
SIZES = {"opset": 17, "weights": 1000, "largest": 2048}


def test_what_was_read_off_a_graph_says_what_a_family_would():
    built = architecture(GRAPH | SIZES)
    assert (built.name, built.task, built.fits(DIGITS)) == ("onnx_latent_16", "reconstruct", True)
    assert (built.latent_shape(DIGITS), built.answer_shape(DIGITS)) == ((2, 2, 4), DIGITS)
    assert (built.parameters(DIGITS), built.size(DIGITS), built.widest(DIGITS)) == (1000, 4000, 2048)
    assert built.manner == "opset 17, NHWC, latent 'z'"
    assert architecture_spec.validate_json(built.model_dump_json()) == built


def test_a_classifier_that_was_read_off_a_graph():
    told = {"family": "onnx_classifier", "heads": [10], "layout": "nchw", "image": "x", "answer": "y"}
    built = architecture(told | SIZES)
    assert (built.name, built.task, built.classes) == ("onnx_classifier_10", "classify", 10)
    assert (built.answer_shape(DIGITS), built.parameters(DIGITS)) == ((10,), 1000)
    assert built.fits(DIGITS)


@pytest.mark.parametrize(
    "wrong", [{"latent": []}, {"latent": [0]}, {"layout": "chwn"}, {"bottleneck": ""}, {"batch": 0}]
)
def test_what_no_graph_says(wrong):
    with pytest.raises(ValidationError):
        architecture(GRAPH | SIZES | wrong)


def test_a_file_is_not_named():
    for name in ("onnx", "onnx_latent_16", "onnx_classifier_10"):
        with pytest.raises(ValidationError, match="name an autoencoder as"):
            architecture(name)
