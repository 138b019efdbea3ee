"""What is read off graphs: where images come in, which tensor is the latent, which the answer."""

import io
import tempfile

import numpy as np
import pytest
from graphs import behind, constant, dense, matrix, model, node, tensor
from onnx import ModelProto, helper, numpy_helper

from service.files.errors import BadFile
from service.files.graph.read import read_onnx
from service.files.upload import Upload


def read(made: ModelProto | bytes, **asked: object) -> dict:
    with tempfile.TemporaryFile() as file:
        file.write(made if isinstance(made, bytes) else made.SerializeToString())
        file.flush()
        told = read_onnx(Upload(file.fileno()), **asked)
    return told["architecture"] | {"input": told["input"], "metadata": told["metadata"]}


def refusal(made: ModelProto, **asked: object) -> str:
    with pytest.raises(BadFile) as caught:
        read(made, **asked)
    return f"{caught.value.title}: {caught.value.detail}"


def test_vectors():
    assert read(dense()) == {
        "family": "onnx",
        "layout": "nd",
        "image": "x",
        "bottleneck": "z",
        "answer": "y",
        "latent": [3],
        "batch": None,
        "opset": 17,
        "weights": 36,
        "largest": 6,
        "input": [1, 6, 1],
        "metadata": {},
    }


@pytest.mark.parametrize(("opset", "ir_version"), [(7, 3), (26, 13)])
def test_the_oldest_and_the_newest_that_is_taken(opset, ir_version):
    made = dense(opset=opset, ir_version=ir_version)
    if ir_version < 4:  # constants had to be inputs as well
        made.graph.input.extend(tensor(each.name, each.dims) for each in made.graph.initializer)
    assert read(made)["opset"] == opset


def test_weights_that_are_left_in_the_file_are_read_the_same():
    """Of 16 KB each: no parser sees them."""
    assert (read(dense(64, 64))["weights"], read(dense(64, 64))["latent"]) == (2 * 64 * 64, [64])


def test_weights_as_lists_of_floats():
    made = dense(64, 32)
    for each in made.graph.initializer:
        values = numpy_helper.to_array(each).reshape(-1).tolist()
        each.CopyFrom(helper.make_tensor(each.name, each.data_type, each.dims, values))
    assert read(made)["weights"] == 2 * 64 * 32


def convolution(x: tuple, y: tuple, *, last: bool = False) -> ModelProto:
    """Halves an image and brings it back; `last`: channels come last, and are turned inside."""
    nodes = [
        node("Conv", ["t" if last else "x", "down"], ["z"], strides=[2, 2], kernel_shape=[2, 2]),
        node("ConvTranspose", ["z", "up"], ["back" if last else "y"], strides=[2, 2], kernel_shape=[2, 2]),
    ]
    if last:
        nodes.insert(0, node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]))
        nodes.append(node("Transpose", ["back"], ["y"], perm=[0, 2, 3, 1]))
    constants = [constant(name, np.ones((2, 3, 2, 2)), np.float32) for name in ("down", "up")]
    return model(nodes, constants, x, y)


def test_channels_first_and_last():
    first = read(convolution(("N", 3, 6, 8), ("N", 3, 6, 8)))
    last = read(convolution(("N", 6, 8, 3), ("N", 6, 8, 3), last=True))
    assert (first["layout"], first["input"], first["latent"]) == ("nchw", [6, 8, 3], [2, 3, 4])
    assert (last["layout"], last["input"], last["latent"]) == ("nhwc", [6, 8, 3], [2, 3, 4])


def test_open_sides_are_fixed_by_what_is_asked():
    made = convolution(("N", 3, "H", "W"), ("N", 3, "H", "W"))
    assert read(made, input=[10, 4, 3])["latent"] == [2, 5, 2]
    assert "say the shape of its images with ?input=HxWxC" in refusal(made)
    assert "does not go with Nx3x?x?" in refusal(made, input=[10, 4, 1])


def test_channels_that_could_be_either_side_are_asked_for():
    made = convolution(("N", 3, 6, 3), ("N", 3, 6, 3))
    assert "which side the channels are" in refusal(made)
    made = convolution(("N", 3, 6, 6), ("N", 3, 6, 6))
    assert read(made, input=[6, 6, 3])["layout"] == "nchw"


def test_rows_without_channels():
    nodes = [
        node("Flatten", ["x"], ["flat"]),
        node("MatMul", ["flat", "down"], ["z"]),
        node("MatMul", ["z", "up"], ["long"]),
        node("Reshape", ["long", "sides"], ["y"]),
    ]
    constants = [matrix("down", 12, 2), matrix("up", 2, 12), constant("sides", [-1, 3, 4])]
    told = read(model(nodes, constants, ("N", 3, 4), ("N", 3, 4)))
    assert (told["layout"], told["input"], told["latent"]) == ("nhw", [3, 4, 1], [2])


def test_a_batch_that_is_fixed_is_told():
    made = dense()
    made.graph.input[0].CopyFrom(tensor("x", [4, 6]))
    assert read(made)["batch"] == 4
    made.graph.input[0].CopyFrom(tensor("x", [5000, 6]))
    assert "its batch is 5,000" in refusal(made)


def test_shapes_that_are_worked_out_on_the_way():
    """As torch's older exporter writes `x.view(x.size(0), -1)`: ONNX's own inference gives up on it."""
    made = behind(
        dense(),
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "zero"], ["rows"], axis=0),
        node("Unsqueeze", ["rows", "axis"], ["row"]),
        node("Concat", ["row", "rest"], ["target"], axis=0),
        node("Reshape", ["answer", "target"], ["y"]),
        constants=[constant("zero", 0), constant("axis", [0]), constant("rest", [6])],
    )
    assert read(made)["answer"] == "y"


def test_an_answer_in_one_column_is_taken_before_it_is_laid_out():
    """skl2onnx ends an MLPRegressor so, whatever the number of its outputs."""
    made = behind(dense(), node("Reshape", ["answer", "column"], ["y"]), constants=[constant("column", [-1, 1])])
    assert read(made)["answer"] == "answer"


def test_of_several_outputs_the_one_that_fits():
    made = dense()
    made.graph.output.append(tensor("z", ["N", 3]))
    assert read(made)["answer"] == "y"


def test_the_latent_ends_behind_its_activation_and_bias():
    nodes = [
        node("MatMul", ["x", "down"], ["a"]),
        node("Add", ["a", "bias"], ["b"]),
        node("Sigmoid", ["b"], ["c"]),
        node("Mul", ["b", "c"], ["d"]),
        node("Reshape", ["d", "sides"], ["e"]),
        node("Reshape", ["e", "flat"], ["f"]),
        node("MatMul", ["f", "up"], ["y"]),
    ]
    constants = [matrix("down", 6, 4), matrix("up", 4, 6), constant("bias", [0, 0, 0, 1], np.float32)]
    constants += [constant("sides", [-1, 2, 2]), constant("flat", [-1, 4])]
    assert read(model(nodes, constants))["bottleneck"] == "d"


def skipping() -> ModelProto:
    """x -> wide -> narrow -> back, to which wide is added: the narrow one can be gone round."""
    nodes = [
        node("MatMul", ["x", "in"], ["wide"]),
        node("MatMul", ["wide", "down"], ["narrow"]),
        node("MatMul", ["narrow", "up"], ["back"]),
        node("Add", ["back", "wide"], ["sum"]),
        node("MatMul", ["sum", "out"], ["y"]),
    ]
    sizes = {"in": (6, 5), "down": (5, 2), "up": (2, 5), "out": (5, 6)}
    return model(nodes, [matrix(name, *size) for name, size in sizes.items()])


def test_a_tensor_that_can_be_gone_round_is_no_latent():
    assert (read(skipping())["bottleneck"], read(skipping())["latent"]) == ("wide", [5])
    assert read(skipping(), bottleneck="sum")["bottleneck"] == "sum"
    assert "not everything passes through 'narrow'" in refusal(skipping(), bottleneck="narrow")


def test_the_file_may_name_its_latent_and_its_range():
    made = dense()
    helper.set_model_props(made, {"flashcards.bottleneck": "a", "flashcards.range": "-1,1", "other": "thing"})
    told = read(made)
    assert told["bottleneck"] == "a"
    assert told["metadata"] == {"flashcards.bottleneck": "a", "flashcards.range": "-1,1"}
    assert read(made, bottleneck="z")["bottleneck"] == "z"


def test_a_classifier_before_its_softmax():
    made = model(
        [node("MatMul", ["x", "w"], ["scores"]), node("Softmax", ["scores"], ["y"])], [matrix("w", 6, 3)], y=("N", 3)
    )
    told = read(made, task="classify")
    assert (told["family"], told["heads"], told["answer"]) == ("onnx_classifier", [3], "scores")
    assert "Say ?task=classify" in refusal(made)


def test_a_classifier_that_does_not_look():
    made = model([node("Mul", ["a", "b"], ["y"])], [constant(n, np.ones((7, 3)), np.float32) for n in "ab"], y=(7, 3))
    assert "does not depend on the image" in refusal(made, task="classify")


def test_every_end_of_a_file_is_refused_in_words():
    """Wherever it is cut, the reader says so, and nothing is raised that is no BadFile."""
    whole = io.BytesIO(behind(dense(), node("Relu", ["answer"], ["y"])).SerializeToString()).getvalue()
    for end in range(3, len(whole)):
        with pytest.raises(BadFile):
            read(whole[:end])


def test_any_byte_may_be_another():
    """Damage is refused in words, or makes another graph that is as good; it does not raise anything else."""
    whole, chance = dense().SerializeToString(), np.random.default_rng(0)
    refused = 0
    for _ in range(400):
        damaged = bytearray(whole)
        damaged[chance.integers(3, len(whole))] = chance.integers(256)
        try:
            read(bytes(damaged))
        except BadFile:
            refused += 1
    assert 100 < refused < 400
