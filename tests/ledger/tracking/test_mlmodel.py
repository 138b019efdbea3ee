import json
import time

import pytest

from flashcards.contract.architecture import architecture_spec
from flashcards.contract.image import parse_image_shape
from ledger.tracking.mlmodel import folder_of
from ledger.tracking.tracker import TrackedModel


def mlmodel(architecture: str, *files: str) -> tuple[set[str], dict]:
    network = architecture_spec.validate_python(architecture)
    given = dict.fromkeys(files, b"")
    model = TrackedModel(network, parse_image_shape("32x16x3"), (-1.0, 1.0), time.time(), given)
    folder = folder_of(model, "0" * 32)
    assert list(folder)[-1] == "MLmodel"
    return set(folder), json.loads(folder["MLmodel"])


def test_weights_alone_are_a_flavour_of_ours():
    files, told = mlmodel("conv_ae_8_16", "model.safetensors")
    assert files == {"model.safetensors", "MLmodel"}
    assert list(told["flavors"]) == ["flashcards"]
    ours = told["flavors"]["flashcards"]
    assert (ours["data"], ours["input"], ours["range"]) == ("model.safetensors", "32x16x3", [-1.0, 1.0])


def test_with_a_graph_it_is_what_mlflow_onnx_would_leave():
    files, told = mlmodel("blk_2_fil_4", "model.safetensors", "model.onnx")
    assert files == {"model.safetensors", "model.onnx", "requirements.txt", "conda.yaml", "python_env.yaml", "MLmodel"}
    assert told["flavors"]["onnx"]["data"] == "model.onnx"
    assert told["flavors"]["python_function"]["loader_module"] == "mlflow.onnx"


@pytest.mark.parametrize(("architecture", "answer"), [("blk_2_fil_4", [-1, 3, 32, 16]), ("resnet18_10", [-1, 10])])
def test_the_signature_is_channels_first(architecture, answer):
    signature = mlmodel(architecture, "model.safetensors")[1]["signature"]
    (x,), (y,) = json.loads(signature["inputs"]), json.loads(signature["outputs"])
    assert (x["name"], x["tensor-spec"]["shape"]) == ("x", [-1, 3, 32, 16])
    assert (y["name"], y["tensor-spec"]["shape"]) == ("y", answer)
