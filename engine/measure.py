"""python -m engine.measure MODEL DATA OUT: a capsule of images, measured where they are.

MODEL is a safetensors or an ONNX file, DATA an npz or a folder of images, OUT where the capsule goes. Standard output
gets one line of JSON: what the capsule says, and where it lies.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError, safe_open

from engine import capsule
from engine.data import Images, load_images
from engine.errors import DatasetUnfit, EngineError
from engine.files import write_whole
from engine.folder import Folder
from engine.models import chunk_size
from engine.weights import load_network
from engine.work import ModelInput
from flashcards.contract.architecture import Architecture, Onnx, architecture_spec
from flashcards.contract.image import ImageShape, PixelRange, Shape
from flashcards.contract.meter import Meter

DEFAULTS = {"input": "32x32x3", "range": "0,1"}  # as for an upload
CPU = torch.device("cpu")


class Refused(Exception):
    """In words, why there is no capsule."""


def main(words: Sequence[str] | None = None) -> int:
    asked = _asked(words)
    try:
        out = asked.out / capsule.CAPSULE.name if asked.out.is_dir() else asked.out
        if not out.parent.is_dir():
            raise Refused(f"there is no folder {out.parent} to put the capsule into")
        model = _model(asked)
        measured = _measure(model, asked.data).capsule(model.digest)
        raw = measured.to_bytes()
        write_whole(out, raw)
    except EngineError as error:
        return _complain(error.detail)
    except (Refused, OSError, ValueError) as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        return 130
    facts = measured.facts.model_dump(mode="json")
    print(json.dumps({"path": str(out.absolute()), "size": len(raw), **facts}))
    return 0


def _asked(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m engine.measure", description="Measure the capsule of a model.")
    parser.add_argument("model", type=Path, help="a safetensors file, or an ONNX file with the --architecture it has")
    parser.add_argument("data", type=Path, help="an npz, or a folder of images")
    parser.add_argument("out", type=Path, help="where the capsule goes")
    parser.add_argument("--architecture", help="blk_4_fil_64, or JSON; else the file's metadata say it")
    parser.add_argument("--input", help="height x width x channels, such as 32x32x3")
    parser.add_argument("--range", help="the network's pixel values, such as 0,1")
    return parser.parse_args(words)


def _complain(text: str) -> int:
    print(f"measure: {text}", file=sys.stderr)
    return 1


def _model(asked: argparse.Namespace) -> ModelInput:
    metadata, shapes = ({}, None) if _is_onnx(asked.model) else _header(asked)
    if shapes is None and not asked.architecture:
        raise Refused(
            f"{asked.model} is an ONNX file: push it to the service first, which finds its latent, and say --attach "
            "MODEL, or give the architecture of that model as JSON"
        )

    def fact(key: str, parse: Callable[[str], object]) -> object:
        text = getattr(asked, key) or metadata.get(f"flashcards.{key}") or DEFAULTS.get(key)
        if text is None:
            raise Refused(f"nothing says which {key} {asked.model} has: say it with --{key}")
        try:
            return parse(text)
        except ValidationError as error:
            raise Refused(f"{key} {text!r}: {error.errors()[0]['msg']}") from error

    architecture: Architecture = fact("architecture", _architecture)
    image: ImageShape = fact("input", TypeAdapter(Shape).validate_python)
    ends: tuple[float, float] = fact("range", lambda text: TypeAdapter(PixelRange).validate_python(text.split(",")))
    if architecture.task != "reconstruct":
        raise Refused(f"{architecture.name} is a classifier; a capsule is of an autoencoder, which gives images back")
    if (shapes is None) != isinstance(architecture, Onnx):
        raise Refused(f"{asked.model} and the architecture {architecture.name} do not go together: one of them is ONNX")
    if (words := architecture.misfit(image)) is not None:
        raise Refused(words)
    if shapes is not None and shapes != dict(architecture.tensors(image)):
        raise Refused(
            f"the tensors of {asked.model} are not those of {architecture.name} on {image}; push it to the service and "
            "take the file that `flashcards models pull` gives, where names are as they should be"
        )
    with asked.model.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return ModelInput(path=asked.model, digest=digest, architecture=architecture, input=image, range=ends)


def _is_onnx(path: Path) -> bool:
    """It begins with the number of its IR version, which a safetensors file, whose header is JSON, does not."""
    with path.open("rb") as file:
        head = file.read(9)
    return head[:1] == b"\x08" and head[8:9] != b"{"


def _header(asked: argparse.Namespace) -> tuple[dict[str, str], dict[str, tuple[int, ...]]]:
    """Metadata, and the shape of every tensor."""
    try:
        with safe_open(asked.model, "pt") as file:
            shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
            return file.metadata() or {}, shapes
    except SafetensorError as error:
        raise Refused(
            f"{asked.model} is no safetensors file ({error}); docs/checkpoints.md says how to save one"
        ) from error


def _architecture(text: str) -> Architecture:
    if text.lstrip().startswith("{"):
        return architecture_spec.validate_json(text)
    return architecture_spec.validate_python(text)


def _measure(model: ModelInput, data: Path) -> Meter:
    images = Folder(data, model.input, model.range) if data.is_dir() else _npz(model, data)
    chunk = chunk_size(model.architecture, model.input)
    seen = 0

    def tell() -> None:
        nonlocal seen
        seen = min(seen + chunk, len(images))
        if sys.stderr.isatty():
            print(f"\r{seen:,} of {len(images):,} images", end="\n" if seen == len(images) else "", file=sys.stderr)

    return capsule.measure(load_network(model, CPU), images, np.arange(len(images)), chunk, CPU, between=tell)


def _npz(model: ModelInput, data: Path) -> Images:
    with data.open("rb") as file:
        if file.read(2) != b"PK":
            raise DatasetUnfit(f"{data} is neither an npz nor a folder of images")
    images = load_images(data, "train", model.range)
    if images is None:
        raise DatasetUnfit(f"{data} has no array x or x_train")
    if images.shape != model.input:
        raise DatasetUnfit(f"the network takes images of {model.input}; these are {images.shape}")
    if (words := images.stray()) is not None:
        print(f"measure: {words}", file=sys.stderr)
    return images


if __name__ == "__main__":
    sys.exit(main())
