"""Which graphs are taken: of the standard operators those that networks are made of, none that hides another graph.

What is on the list gives the same answer to the same numbers every time, and its shape follows from the shapes that
come in. Loops and branches are not on it, nor what draws random numbers, nor what a library of one's own would add.
"""

import onnx
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto

from service.files.errors import BadFile
from service.files.words import quoted, several

REFUSED = "the graph is not taken"
OPSETS, IR_VERSIONS = (7, 26), (3, 13)  # that the ONNX Runtime of the workers reads
MOST_NODES = 5000
STANDARD = ("", "ai.onnx")

LAYERS = """
Conv ConvTranspose Gemm MatMul Einsum BatchNormalization InstanceNormalization LayerNormalization GroupNormalization
RMSNormalization LpNormalization MeanVarianceNormalization LRN Dropout MaxPool AveragePool LpPool GlobalAveragePool
GlobalMaxPool GlobalLpPool Resize Upsample Pad DepthToSpace SpaceToDepth
"""
ACTIVATIONS = """
Relu LeakyRelu PRelu Elu Selu Celu ThresholdedRelu Gelu Mish Swish HardSwish HardSigmoid Sigmoid Tanh Softplus Softsign
Softmax LogSoftmax Shrink Clip Erf
"""
ARITHMETIC = """
Add Sub Mul Div Mod Neg Abs Sign Sqrt Reciprocal Exp Log Pow Sum Mean Max Min Floor Ceil Round Sin Cos Tan Sinh Cosh
Asinh Acosh Atanh Atan ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum
ReduceLogSumExp ReduceSumSquare CumSum Equal Less LessOrEqual Greater GreaterOrEqual And Or Xor Not Where
"""
FORMS = """
Identity Constant ConstantOfShape Cast CastLike Shape Size Reshape Flatten Transpose Squeeze Unsqueeze Concat Split
Slice Gather Expand Tile Range
"""
ALLOWED = frozenset((LAYERS + ACTIVATIONS + ARITHMETIC + FORMS).split())
REPEATING = frozenset(("Loop", "If", "Scan", "SequenceMap"))
RANDOM = frozenset(
    ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial")
)
PLAIN = {getattr(AttributeProto, kind) for kind in ("FLOAT", "INT", "STRING", "TENSOR", "FLOATS", "INTS", "STRINGS")}
#: Of tensors, and how many bytes a number of each has.
DTYPES: dict[int, int] = {
    TensorProto.FLOAT: 4,
    TensorProto.DOUBLE: 8,
    TensorProto.FLOAT16: 2,
    TensorProto.INT32: 4,
    TensorProto.INT64: 8,
    TensorProto.INT8: 1,
    TensorProto.UINT8: 1,
    TensorProto.BOOL: 1,
}


def parse(raw: bytes) -> ModelProto:
    try:
        model: ModelProto = ModelProto.FromString(raw)
    except Exception as error:  # protobuf has one of its own in each of its builds
        raise BadFile("the file is damaged", "it begins as an ONNX file and does not go on as one") from error
    return model


def check_graph(model: ModelProto) -> int:
    """And the opset of the standard operators."""
    opset = _check_versions(model)
    if model.functions:
        names = several({function.name for function in model.functions})
        raise BadFile(REFUSED, f"it defines functions of its own ({names}): export it with functions inlined")
    if model.training_info or model.graph.sparse_initializer:
        raise BadFile(REFUSED, "it holds what a training needs, or sparse tensors: export it for inference, dense")
    if len(model.graph.node) > MOST_NODES:
        raise BadFile(REFUSED, f"it has {len(model.graph.node):,} nodes, and {MOST_NODES:,} are the most")
    for node in model.graph.node:
        _check_node(node)
    for tensor in model.graph.initializer:
        check_tensor(tensor)
    return opset


def check_valid(model: ModelProto) -> None:
    """By ONNX's own checker: every operator exists in its opset, and no tensor is used before it is made."""
    try:
        onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, RuntimeError, ValueError) as error:
        raise BadFile("not a valid ONNX graph", _first_line(error)) from error


def check_tensor(tensor: TensorProto) -> None:
    if tensor.data_location == TensorProto.EXTERNAL or tensor.external_data:
        how = "save it as one file, in PyTorch with torch.onnx.export(..., external_data=False)"
        raise BadFile("the weights lie in another file", f"{quoted(tensor.name)} has its numbers outside: {how}")
    if tensor.data_type not in DTYPES:
        kind = TensorProto.DataType.Name(tensor.data_type) if tensor.data_type in _known() else str(tensor.data_type)
        raise BadFile(
            REFUSED, f"{quoted(tensor.name)} is a tensor of {kind.lower()}; floats and whole numbers are taken"
        )
    if any(side < 0 for side in tensor.dims) or len(tensor.dims) > 8:
        raise BadFile("the file is damaged", f"{quoted(tensor.name)} has sides that no tensor has")


def _check_versions(model: ModelProto) -> int:
    if not IR_VERSIONS[0] <= model.ir_version <= IR_VERSIONS[1]:
        raise BadFile(
            REFUSED, f"its IR version is {model.ir_version}; {IR_VERSIONS[0]} to {IR_VERSIONS[1]} can be read here"
        )
    versions: list[int] = [each.version for each in model.opset_import if each.domain in STANDARD]
    if len(versions) != 1:
        raise BadFile(REFUSED, "it does not say which opset its operators are of")
    low, high = OPSETS
    if not low <= versions[0] <= high:
        how = "export it with an opset_version of 17, for one"
        raise BadFile(REFUSED, f"its opset is {versions[0]}, and {low} to {high} can be run here: {how}")
    return versions[0]


def _check_node(node: NodeProto) -> None:
    kind = quoted(node.op_type)
    if node.domain not in STANDARD or node.overload:
        raise BadFile(REFUSED, f"{kind} is of the domain {quoted(node.domain)}: only standard operators are run here")
    if node.op_type in REPEATING:
        raise BadFile(REFUSED, f"it has a node {kind}: a graph inside a graph may run for ever, so none is taken")
    if node.op_type in RANDOM:
        how = "export the network so that it answers with the mean"
        raise BadFile(REFUSED, f"it has a node {kind}, which draws random numbers: {how}")
    if node.op_type not in ALLOWED:
        raise BadFile(REFUSED, f"it has a node {kind}, which is not among the operators that are run here")
    for attribute in node.attribute:
        if attribute.type not in PLAIN or attribute.ref_attr_name:
            raise BadFile(REFUSED, f"a node {kind} has {quoted(attribute.name)}, which is no plain value")
        if attribute.type == AttributeProto.TENSOR:
            check_tensor(attribute.t)
    _check_inference(node)


def _check_inference(node: NodeProto) -> None:
    """Layers that have another manner while a network learns."""
    trains = node.op_type == "BatchNormalization" and any(
        attribute.name == "training_mode" and attribute.i for attribute in node.attribute
    )
    if trains or (node.op_type == "Dropout" and len(node.input) > 2 and node.input[2]):
        raise BadFile(REFUSED, f"its {node.op_type} is that of a training: export the network in evaluation mode")


def _known() -> set[int]:
    return set(TensorProto.DataType.values())


def _first_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return "".join(letter for letter in text if letter.isprintable())[:300]
