"""What an ONNX file is: an autoencoder or a classifier, of which images, with which latent."""

from collections.abc import Sequence
from math import ceil, prod
from typing import TypedDict

from onnx import ModelProto, NodeProto, TensorProto

from service.files.errors import BadFile
from service.files.graph.cut import choose, cuts
from service.files.graph.layout import Entry, entry_of
from service.files.graph.ops import check_graph, check_valid, parse
from service.files.graph.shapes import Resolved, resolve
from service.files.graph.weights import as_inputs, check_weights
from service.files.graph.wire import skeleton_of
from service.files.upload import Upload
from service.files.words import quoted, sides

UNFIT = "the answer does not fit the input"
MOST_METADATA = 200
#: They lay the same numbers out in another shape, in the same order.
RESHAPES = frozenset(("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"))


class Told(TypedDict):
    """Fields of the architecture, and what the parent says of the model beside it."""

    architecture: dict[str, object]
    input: list[int]
    metadata: dict[str, str]


def read_onnx(
    upload: Upload, input: Sequence[int] | None = None, bottleneck: str | None = None, task: str | None = None
) -> Told:
    try:
        return _read(upload, input, bottleneck, task)
    except UnicodeDecodeError as error:
        raise BadFile("the file is damaged", "one of the names in it is no text") from error


def _read(upload: Upload, input: Sequence[int] | None, bottleneck: str | None, task: str | None) -> Told:
    skeleton = skeleton_of(upload)
    model = parse(skeleton.model)
    opset = check_graph(model)
    weights = check_weights(upload, model, skeleton.left)
    entry = entry_of(model.graph, input)
    model = as_inputs(model, skeleton.left)
    check_valid(model)
    outputs = [value.name for value in model.graph.output]
    resolved = resolve(model, entry.name, entry.shape)
    metadata = _metadata(model)
    common = {
        "layout": entry.layout,
        "image": entry.name,
        "batch": entry.batch,
        "opset": opset,
        "weights": weights,
        "largest": _largest(resolved, entry),
    }
    if task == "classify":
        told = _classifier(resolved, entry, outputs)
    else:
        told = _autoencoder(resolved, entry, outputs, bottleneck or metadata.get("flashcards.bottleneck"))
    return {"architecture": common | told, "input": list(entry.image), "metadata": metadata}


def _autoencoder(resolved: Resolved, entry: Entry, outputs: list[str], named: str | None) -> dict[str, object]:
    answer = _answer(resolved, entry, outputs)
    found = cuts(resolved.nodes, entry.name, answer, resolved.tensors, entry.shape[0])
    cut = choose(found, named)
    return {"family": "onnx", "answer": answer, "bottleneck": cut.name, "latent": list(cut.latent)}


def _answer(resolved: Resolved, entry: Entry, outputs: list[str]) -> str:
    """The one output that has the shape of the input, or had it before it was only laid out anew.

    skl2onnx ends every MLPRegressor in a reshape to one column, whatever the number of its outputs.
    """
    wanted = (TensorProto.FLOAT, entry.shape)
    fitting = [
        name for name in (_before(resolved, name, entry) for name in outputs) if resolved.tensors[name] == wanted
    ]
    if len(fitting) == 1:
        return fitting[0]
    if len(fitting) > 1:
        raise BadFile(UNFIT, f"{len(fitting)} of its outputs have the shape of its input: export it with one")
    told = ", ".join(f"{quoted(name)} is {_batched(resolved, name, entry)}" for name in outputs[:4])
    raise BadFile(
        UNFIT,
        f"an autoencoder gives back what it takes, here {_written(entry)} as float32; {told}. Say ?task=classify where "
        "it is a classifier",
    )


def _before(resolved: Resolved, name: str, entry: Entry) -> str:
    makers = {output: node for node in resolved.nodes for output in node.output}
    found = name
    while resolved.tensors[found].shape != entry.shape and found in makers and makers[found].op_type in RESHAPES:
        found = makers[found].input[0]
    return found if resolved.tensors[found].shape == entry.shape and found != entry.name else name


def _classifier(resolved: Resolved, entry: Entry, outputs: list[str]) -> dict[str, object]:
    """Its scores; where they go through a softmax, those before it."""
    batch = entry.shape[0]
    shapes = {name: resolved.tensors[name] for name in outputs}
    fitting = [
        name
        for name, (dtype, shape) in shapes.items()
        if dtype == TensorProto.FLOAT and len(shape) == 2 and shape[0] == batch and shape[1] >= 2
    ]
    if len(fitting) != 1:
        told = ", ".join(f"{quoted(name)} is {_batched(resolved, name, entry)}" for name in outputs[:4])
        raise BadFile(UNFIT, f"a classifier answers with one float32 tensor, N x classes; {told}")
    maker = next((node for node in resolved.nodes if fitting[0] in node.output), None)
    if maker is None or not _reached(resolved.nodes, entry.name, fitting[0]):
        raise BadFile(UNFIT, "what it answers does not depend on the image")
    answer = maker.input[0] if maker.op_type == "Softmax" else fitting[0]
    return {"family": "onnx_classifier", "answer": answer, "heads": [shapes[fitting[0]].shape[1]]}


def _reached(nodes: Sequence[NodeProto], image: str, answer: str) -> bool:
    down = {image}
    for node in nodes:
        if down.intersection(node.input):
            down.update(node.output)
    return answer in down


def _largest(resolved: Resolved, entry: Entry) -> int:
    made = [resolved.tensors[name].shape for node in resolved.nodes for name in node.output if name]
    return max(ceil(prod(shape) / entry.shape[0]) for shape in (entry.shape, *made))


def _metadata(model: ModelProto) -> dict[str, str]:
    """Ours, as a safetensors file would have them."""
    found = {each.key: each.value for each in model.metadata_props if each.key.startswith("flashcards.")}
    return {key: value for key, value in found.items() if len(key) + len(value) <= MOST_METADATA}


def _batched(resolved: Resolved, name: str, entry: Entry) -> str:
    shape = resolved.tensors[name].shape
    return sides(("N" if entry.batch is None and side == entry.shape[0] else side) for side in shape)


def _written(entry: Entry) -> str:
    return sides(("N" if entry.batch is None else entry.batch, *entry.shape[1:]))
