"""A network as a folder that MLflow's own loaders read: `MLmodel`, the files it names, and what they need to run.

`MLmodel` is YAML, and so is every JSON. With an ONNX file in it the folder is what `mlflow.onnx.log_model` leaves:
`mlflow.pyfunc.load_model` and `mlflow.onnx.load_model` take it. The weights themselves are a flavour of our own, by
which they come back: `POST /v1/models:import`.
"""

import json
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import flashcards
from ledger.tracking.tracker import TrackedModel

WEIGHTS, GRAPH = "model.safetensors", "model.onnx"
NEEDED = ("numpy", "onnx", "onnxruntime")
PYTHON_ENV, CONDA, REQUIREMENTS = "python_env.yaml", "conda.yaml", "requirements.txt"
PROVIDERS = ["CUDAExecutionProvider", "CPUExecutionProvider"]


def folder_of(model: TrackedModel, run_id: str) -> Mapping[str, Path | bytes]:
    """The MLmodel last: a folder with one is whole."""
    drawn = {} if GRAPH not in model.files else _environment()
    return {**model.files, **drawn, "MLmodel": _json(_mlmodel(model, run_id))}


def _mlmodel(model: TrackedModel, run_id: str) -> dict[str, Any]:
    flavors: dict[str, Any] = {
        "flashcards": {
            "data": WEIGHTS,
            "flashcards_version": flashcards.__version__,
            "architecture": model.architecture.model_dump(mode="json"),
            "input": str(model.input),
            "range": list(model.range),
        }
    }
    if GRAPH in model.files:
        flavors |= _onnx_flavors()
    return {
        "artifact_path": "model",
        "run_id": run_id,
        "model_uuid": run_id,
        "utc_time_created": datetime.fromtimestamp(model.made_at, UTC).strftime("%Y-%m-%d %H:%M:%S.%f"),
        "flavors": flavors,
        "signature": _signature(model),
        "metadata": {"onnx_max_abs_difference": model.graph_off_by} if GRAPH in model.files else None,
    }


def _onnx_flavors() -> dict[str, Any]:
    return {
        "onnx": {"code": None, "data": GRAPH, "onnx_version": version("onnx"), "providers": PROVIDERS},
        "python_function": {
            "data": GRAPH,
            "env": {"conda": CONDA, "virtualenv": PYTHON_ENV},
            "loader_module": "mlflow.onnx",
            "python_version": platform.python_version(),
        },
    }


def _signature(model: TrackedModel) -> dict[str, str | None]:
    """Images x_BCHW in the model's range; in our words their shape is height x width x channels."""
    height, width, channels = model.input
    answer = model.architecture.answer_shape(model.input)
    y = (channels, height, width) if len(answer) == 3 else answer
    return {"inputs": _tensor("x", (channels, height, width)), "outputs": _tensor("y", y), "params": None}


def _tensor(name: str, shape: tuple[int, ...]) -> str:
    spec = {"dtype": "float32", "shape": [-1, *shape]}
    return json.dumps([{"name": name, "type": "tensor", "tensor-spec": spec}])


def _environment() -> dict[str, bytes]:
    python = platform.python_version()
    packages = ["mlflow", *(f"{name}=={version(name)}" for name in NEEDED)]
    conda = {
        "name": "mlflow-env",
        "channels": ["conda-forge"],
        "dependencies": [f"python={python}", "pip", {"pip": packages}],
    }
    virtualenv = {"python": python, "build_dependencies": ["pip"], "dependencies": [f"-r {REQUIREMENTS}"]}
    return {
        REQUIREMENTS: "".join(f"{package}\n" for package in packages).encode(),
        PYTHON_ENV: _json(virtualenv),
        CONDA: _json(conda),
    }


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode()
