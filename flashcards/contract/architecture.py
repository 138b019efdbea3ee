"""Architectures: families of autoencoders and of classifiers, told apart by `family`, each also known by a name."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, TypeAdapter

from flashcards.contract.families import blk, conv_ae, dense_ae, resnet18, tasknet, tasknet_ae, vae, vgg16
from flashcards.contract.families.base import Task, TensorShape
from flashcards.contract.families.blk import BlkArchitecture
from flashcards.contract.families.classifier import ClassifierFamily
from flashcards.contract.families.conv_ae import ConvArchitecture
from flashcards.contract.families.dense_ae import DenseArchitecture
from flashcards.contract.families.onnx import OnnxArchitecture, OnnxClassifierArchitecture
from flashcards.contract.families.resnet18 import ResnetArchitecture
from flashcards.contract.families.tasknet import TasknetArchitecture
from flashcards.contract.families.tasknet_ae import TasknetAeArchitecture
from flashcards.contract.families.vae import VaeArchitecture
from flashcards.contract.families.vgg16 import VggArchitecture

__all__ = [
    "Architecture",
    "ArchitectureField",
    "BlkArchitecture",
    "Classifier",
    "ClassifierFamily",
    "ConvArchitecture",
    "DenseArchitecture",
    "Onnx",
    "OnnxArchitecture",
    "OnnxClassifierArchitecture",
    "ResnetArchitecture",
    "Task",
    "TasknetAeArchitecture",
    "TasknetArchitecture",
    "TensorShape",
    "VaeArchitecture",
    "VggArchitecture",
    "architecture_spec",
    "parse_architecture",
]

#: For annotations and isinstance; a field of a record is an ArchitectureField.
Autoencoder = (
    BlkArchitecture | VaeArchitecture | ConvArchitecture | DenseArchitecture | TasknetAeArchitecture | OnnxArchitecture
)
Classifier = TasknetArchitecture | ResnetArchitecture | VggArchitecture | OnnxClassifierArchitecture
Architecture = Autoencoder | Classifier
#: Read off a file, and named by nobody.
Onnx = OnnxArchitecture | OnnxClassifierArchitecture

FAMILIES = (blk, vae, conv_ae, dense_ae, tasknet_ae, tasknet, resnet18, vgg16)
NAMES = {family.NAME: family.parse for family in FAMILIES}
HOW = (
    "name an autoencoder as blk_{blocks}_fil_{filters}, vae_{blocks}_fil_{filters}, conv_ae_{width}_{width}... or "
    "dense_ae_{width}_..._{latent}, for example blk_4_fil_64, vae_4_fil_32, conv_ae_32_64_128 or dense_ae_256_64_16, "
    "and a classifier as tasknet_{classes}, resnet18_{classes} or vgg16_{classes}, for example resnet18_10; or give "
    "its fields as JSON"
)


def parse_architecture(value: Any) -> Any:
    """A name stands for the fields it names; fields without a family are those of `blk`, the first there was."""
    if isinstance(value, dict):
        return {"family": "blk"} | value
    if not isinstance(value, str):
        return value
    for pattern, parse in NAMES.items():
        if re.fullmatch(pattern, value, re.ASCII):
            return parse(value)
    raise ValueError(HOW)


_Told = Annotated[
    BlkArchitecture
    | VaeArchitecture
    | ConvArchitecture
    | DenseArchitecture
    | TasknetAeArchitecture
    | TasknetArchitecture
    | ResnetArchitecture
    | VggArchitecture
    | OnnxArchitecture
    | OnnxClassifierArchitecture,
    Field(discriminator="family"),
]
_Name = Annotated[
    str,
    Field(
        pattern=f"^({'|'.join(NAMES)})$",
        examples=["blk_4_fil_64", "conv_ae_32_64_128", "dense_ae_256_64_16", "resnet18_10"],
    ),
]
ArchitectureField = Annotated[_Told, BeforeValidator(parse_architecture, json_schema_input_type=_Told | _Name)]

architecture_spec: TypeAdapter[Architecture] = TypeAdapter(ArchitectureField)
