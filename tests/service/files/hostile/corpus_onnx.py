"""ONNX files that nobody should upload."""

from collections.abc import Callable

import numpy as np
from corpus import CORPUS, MODELS, Hostile
from graphs import behind, constant, dense, model, node, tensor
from onnx import AttributeProto, ModelProto, TensorProto, helper, numpy_helper

#: Words of the refusal, by the name of the file.
WORDS: dict[str, str] = {}
NOTHING_SAID = {"architecture": "", "input": ""}


def hostile(words: str) -> Callable[[Callable[[], ModelProto | bytes]], object]:
    def register(build: Callable[[], ModelProto | bytes]) -> object:
        def content(canary: str = "") -> bytes:
            made = build()
            return made if isinstance(made, bytes) else made.SerializeToString()

        WORDS[build.__name__] = words
        CORPUS.append(Hostile(build.__name__, build.__doc__ or "", (MODELS,), content, NOTHING_SAID))
        return build

    return register


@hostile("has its numbers outside")
def external_data() -> ModelProto:
    """Weights that lie in /etc/passwd."""
    made = dense()
    weight = made.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "../../../../etc/passwd"), ("offset", "0"), ("length", "72")):
        weight.external_data.add(key=key, value=value)
    return made


@hostile("has its numbers outside")
def external_data_in_an_attribute() -> ModelProto:
    """A constant node whose tensor lies in another file."""
    outside = TensorProto(name="w", dims=[1], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    outside.external_data.add(key="location", value="weights.bin")
    return behind(dense(), node("Constant", [], ["w"], value=outside), node("Add", ["answer", "w"], ["y"]))


@hostile("is of the domain 'com.example'")
def custom_operator() -> ModelProto:
    """An operator of a library that the worker is to load."""
    made = behind(dense(), node("Evil", ["answer"], ["y"], domain="com.example"))
    made.opset_import.append(helper.make_opsetid("com.example", 1))
    return made


@hostile("functions of its own ('Tanh')")
def function_that_hides_an_operator() -> ModelProto:
    """A function by the name of a standard operator, with something else inside."""
    made = dense()
    inside = [node("Evil", ["a"], ["b"], domain="com.example")]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
    made.functions.append(helper.make_function("", "Tanh", ["a"], ["b"], inside, opsets))
    return made


def loop(trips: int) -> ModelProto:
    body = helper.make_graph(
        [node("Identity", ["goes"], ["goes_on"]), node("Relu", ["kept"], ["kept_on"])],
        "body",
        [tensor("i", [], TensorProto.INT64), tensor("goes", [], TensorProto.BOOL), tensor("kept", ["N", 6])],
        [tensor("goes_on", [], TensorProto.BOOL), tensor("kept_on", ["N", 6])],
    )
    constants = [constant("trips", trips), constant("true", True, bool)]
    return behind(dense(), node("Loop", ["trips", "true", "answer"], ["y"], body=body), constants=constants)


@hostile("a graph inside a graph may run for ever")
def loop_without_an_end() -> ModelProto:
    """Runs for some hundred thousand years."""
    return loop(2**62)


@hostile("a graph inside a graph may run for ever")
def branch() -> ModelProto:
    """Takes one of two graphs, as the numbers will have it."""
    then = helper.make_graph([node("Relu", ["answer"], ["t"])], "then", [], [tensor("t", ["N", 6])])
    other = helper.make_graph([node("Tanh", ["answer"], ["o"])], "else", [], [tensor("o", ["N", 6])])
    choice = node("If", ["true"], ["y"], then_branch=then, else_branch=other)
    return behind(dense(), choice, constants=[constant("true", True, bool)])


@hostile("which is no plain value")
def graph_in_an_attribute() -> ModelProto:
    """A graph inside an operator that has none."""
    made = dense()
    inside = helper.make_graph([node("Relu", ["x"], ["r"])], "inside", [], [tensor("r", ["N", 6])])
    made.graph.node[1].attribute.append(AttributeProto(name="body", type=AttributeProto.GRAPH, g=inside))
    return made


@hostile("draws random numbers")
def random_numbers() -> ModelProto:
    """Another answer every time."""
    return behind(dense(), node("RandomNormalLike", ["answer"], ["r"]), node("Add", ["answer", "r"], ["y"]))


@hostile("not among the operators")
def operator_with_shapes_of_its_own() -> ModelProto:
    """As many rows as there are numbers that are not zero."""
    return behind(dense(), node("NonZero", ["answer"], ["rows"]), node("Cast", ["rows"], ["y"], to=1))


@hostile("too many weights")
def huge_weight() -> ModelProto:
    """A tensor of terabytes, of which nothing is there."""
    made = dense()
    made.graph.initializer[0].dims[:] = [1 << 20, 1 << 21]
    made.graph.initializer[0].raw_data = b""
    return made


@hostile("sides that no tensor has")
def negative_sides() -> ModelProto:
    """A tensor whose sides multiply to the right number, being negative."""
    made = dense()
    made.graph.initializer[0].dims[:] = [-6, -3]
    return made


@hostile("numbers are the most for one image")
def huge_activation() -> ModelProto:
    """Six numbers that become six billion on their way."""
    tiled = [node("Tile", ["answer", "times"], ["many"]), node("Slice", ["many", "from", "to", "axis"], ["y"])]
    constants = [constant("times", [1, 10**9]), constant("from", [0]), constant("to", [6]), constant("axis", [1])]
    return behind(dense(), *tiled, constants=constants)


@hostile("numbers are the most for one image")
def huge_constant() -> ModelProto:
    """A constant that a few bytes fill a terabyte with."""
    filled = [node("ConstantOfShape", ["sides"], ["many"]), node("ReduceSum", ["many", "all"], ["one"], keepdims=0)]
    constants = [constant("sides", [1 << 20, 1 << 20]), constant("all", [0, 1])]
    return behind(dense(), *filled, node("Add", ["answer", "one"], ["y"]), constants=constants)


@hostile("not a valid ONNX graph")
def cycle() -> ModelProto:
    """Two nodes that wait for each other."""
    nodes = [node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])]
    return model(nodes)


@hostile("not a valid ONNX graph")
def tensor_from_nowhere() -> ModelProto:
    """A node that takes what nobody makes."""
    return behind(dense(), node("Add", ["answer", "nothing"], ["y"]))


@hostile("not a valid ONNX graph")
def tensor_made_twice() -> ModelProto:
    """Two nodes that make the same tensor: which is meant?"""
    made = dense()
    made.graph.node.append(node("Relu", ["x"], ["y"]))
    return made


@hostile("not a valid ONNX graph")
def operator_of_another_opset() -> ModelProto:
    """Gelu, which came with opset 20, in opset 13."""
    return behind(dense(opset=13), node("Gelu", ["answer"], ["y"]))


@hostile("it says that")
def truncated() -> bytes:
    """The first half of an honest file."""
    raw = dense(64, 32).SerializeToString()
    return raw[: len(raw) // 2]


@hostile("it says that")
def length_beyond_the_end() -> bytes:
    """A graph of exabytes in twelve bytes."""
    return b"\x08\x09\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"


@hostile("a number that has no end")
def number_without_an_end() -> bytes:
    """A length whose every byte says that another follows."""
    return b"\x08\x09\x3a" + b"\xff" * 64


@hostile("something that no ONNX file has")
def wire_type_that_is_none() -> bytes:
    """A kind of value that protobuf gave up long ago."""
    return b"\x08\x09\x12\x01a\x3b\x00"


@hostile("more than one graph")
def two_graphs() -> bytes:
    """Two graphs, which a parser puts together to a third that nobody has looked at."""
    raw = dense().SerializeToString()
    return raw + ModelProto(graph=model([node("Loop", [], ["q"])]).graph).SerializeToString()


@hostile("there is no graph in it")
def no_graph() -> ModelProto:
    """All of a model but the model."""
    made = dense()
    made.ClearField("graph")
    return made


@hostile("more than 100,000 parts")
def many_fields() -> bytes:
    """A million fields of two bytes."""
    return b"\x08\x09\x12\x01a" + b"\x28\x01" * 1_000_000


@hostile("more than 16 MB")
def long_text() -> ModelProto:
    """Notes of a hundred megabytes."""
    made = dense()
    made.graph.doc_string = "a" * 20_000_000
    return made


@hostile("nodes, and 5,000 are the most")
def many_nodes() -> ModelProto:
    """Six thousand layers."""
    return behind(dense(), *(node("Relu", [f"r{n}" if n else "answer"], [f"r{n + 1}"]) for n in range(6000)))


@hostile("begins as an ONNX file and does not go on as one")
def deep_message() -> bytes:
    """Graphs in graphs in graphs, a thousand deep."""
    raw = b""
    for _ in range(1000):
        for tag in (0x32, 0x2A, 0x0A):  # attribute.g <- node.attribute <- graph.node
            raw = bytes([tag]) + packed(len(raw)) + raw
    return b"\x08\x09\x12\x01a\x3a" + packed(len(raw)) + raw


def packed(value: int) -> bytes:
    raw = b""
    while value > 0x7F:
        raw += bytes([value & 0x7F | 0x80])
        value >>= 7
    return raw + bytes([value])


@hostile("nothing says the shape of")
def shape_that_never_resolves() -> ModelProto:
    """A reshape whose target are numbers of the image."""
    nodes = [node("Cast", ["answer"], ["whole"], to=7), node("Reshape", ["whole", "flat"], ["target"])]
    nodes += [node("Reshape", ["answer", "target"], ["y"])]
    return behind(dense(), *nodes, constants=[constant("flat", [-1])])


@hostile("say the shape of its images")
def open_sides() -> ModelProto:
    """A table of nobody knows how many columns."""
    made = dense()
    made.graph.input[0].CopyFrom(tensor("x", ["N", "D"]))
    return made


@hostile("the layers do not go together")
def layers_that_do_not_fit() -> ModelProto:
    """A matrix for vectors of seven numbers, given six."""
    made = dense()
    made.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.ones((7, 3), np.float32), "down"))
    return made


@hostile("gives back what it takes")
def answer_of_another_shape() -> ModelProto:
    """Takes six numbers and gives three."""
    made = dense()
    del made.graph.node[-1]
    made.graph.output[0].CopyFrom(tensor("z", ["N", 3]))
    return made


@hostile("'y' is 1x6")
def batch_that_is_swallowed() -> ModelProto:
    """Says that it takes any number of images, and answers to all with one."""
    made = behind(dense(), node("ReduceMean", ["answer"], ["y"], axes=[0], keepdims=1))
    made.graph.output[0].CopyFrom(tensor("y", ["N", 6]))
    return made


@hostile("no tensor, one row an image, that all paths")
def nothing_in_between() -> ModelProto:
    """The image itself, and something added to it."""
    return behind(dense(), node("Add", ["answer", "x"], ["y"]))


@hostile("no tensor, one row an image, that all paths")
def answer_without_the_image() -> ModelProto:
    """Says the same whatever it is shown."""
    made = behind(dense(), node("Mul", ["zeros", "ones"], ["y"]))
    made.graph.initializer.extend([constant(name, np.ones((7, 6)), np.float32) for name in ("zeros", "ones")])
    return made


@hostile("'up' holds NaN or infinity")
def weight_that_is_no_number() -> ModelProto:
    """NaN among the weights."""
    made = dense()
    made.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.full((3, 6), np.nan, np.float32), "up"))
    return made


@hostile("'down' holds NaN or infinity")
def infinity_in_a_large_weight() -> ModelProto:
    """Infinity at the end of a tensor that no parser is shown."""
    made = dense(64, 32)
    values = numpy_helper.to_array(made.graph.initializer[0]).copy()
    values[-1, -1] = np.inf
    made.graph.initializer[0].CopyFrom(numpy_helper.from_array(values, "down"))
    return made


@hostile("does not hold the 64x32 that it says")
def weight_with_a_part_missing() -> ModelProto:
    """Half of a tensor, under the sides of the whole."""
    made = dense(64, 32)
    made.graph.initializer[0].raw_data = made.graph.initializer[0].raw_data[:-4096]
    return made


@hostile("its numbers twice")
def weight_with_two_values() -> bytes:
    """A tensor that says its numbers in two ways."""
    made = dense(64, 32)
    made.graph.initializer[0].float_data.extend([1.0] * 2048)
    return made.SerializeToString()


@hostile("a tensor of string")
def weight_of_text() -> ModelProto:
    """A tensor of words."""
    return behind(
        dense(),
        node("Identity", ["answer"], ["y"]),
        constants=[helper.make_tensor("words", TensorProto.STRING, [1], [b"touch"])],
    )


@hostile("its opset is 27, and 7 to 26 can be run here")
def opset_of_tomorrow() -> ModelProto:
    """Operators of an opset that the workers do not know."""
    return dense(opset=27)


@hostile("its IR version is 14")
def form_of_tomorrow() -> ModelProto:
    """A form of file that the workers do not know."""
    return dense(ir_version=14)


@hostile("which opset")
def no_opset() -> ModelProto:
    """Operators of no known meaning."""
    made = dense()
    del made.opset_import[:]
    return made


@hostile("it has 2 inputs")
def two_inputs() -> ModelProto:
    """An image, and something else."""
    made = behind(dense(), node("Add", ["answer", "other"], ["y"]))
    made.graph.input.append(tensor("other", ["N", 6]))
    return made


@hostile("is int64; float32 is taken")
def whole_numbers() -> ModelProto:
    """Words of a text in place of pixels."""
    nodes = [node("Cast", ["x"], ["f"], to=1), node("Relu", ["f"], ["g"]), node("Cast", ["g"], ["y"], to=7)]
    made = model(nodes)
    for value in (*made.graph.input, *made.graph.output):
        value.type.tensor_type.elem_type = TensorProto.INT64
    return made


@hostile("what a training needs, or sparse tensors")
def sparse_weight() -> ModelProto:
    """A tensor that unfolds to any size."""
    made = dense()
    values, places = helper.make_tensor("s", TensorProto.FLOAT, [1], [1.0]), constant("p", [5])
    made.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [1 << 40]))
    return made


@hostile("is that of a training")
def dropout_of_a_training() -> ModelProto:
    """Another answer every time, by the back door."""
    constants = [constant("ratio", 0.5, np.float32), constant("true", True, bool)]
    return behind(dense(), node("Dropout", ["answer", "ratio", "true"], ["y"]), constants=constants)


@hostile("larger than any that are taken here")
def image_of_gigabytes() -> ModelProto:
    """Images of a million by a million."""
    return model([node("Relu", ["x"], ["y"])], x=("N", 3, 1 << 20, 1 << 20), y=("N", 3, 1 << 20, 1 << 20))
