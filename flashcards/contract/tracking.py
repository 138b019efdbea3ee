"""What is said of the tracking server that the service mirrors jobs to, and takes models from, where it has one."""

from typing import Annotated

from pydantic import Field

from flashcards.contract.architecture import ArchitectureField
from flashcards.contract.base import Name, Record
from flashcards.contract.image import PixelRange, Shape

#: Slashes and colons would make `models:/name/3` ambiguous, and the registry refuses them.
RegistryName = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f/:@%?#\\]+$")]


class Tracking(Record):
    """A job is mirrored by itself: this is for what is to be otherwise."""

    mirror: bool = Field(default=True, description="false: the tracking server is told nothing of this job")
    experiment: Name | None = Field(default=None, description="else the service's own")
    run_name: Name | None = Field(default=None, description="else kind and id of the job")
    register_as: RegistryName | None = Field(
        default=None, description="train, distill, learn: its model becomes the next version of this registered model"
    )


class ModelImport(Record):
    """A registered model of the tracking server, to become a model here."""

    mlflow: str = Field(
        max_length=500,
        pattern=r"^models:/[^/@\x00-\x1f]{1,250}(/([0-9]{1,18}|latest)|@[A-Za-z0-9_.-]{1,200})$",
        description="a version of a registered model",
        examples=["models:/line-7/3", "models:/line-7@champion", "models:/line-7/latest"],
    )
    name: Name | None = Field(default=None, description="what people call it here; else as there")
    file: str | None = Field(
        default=None,
        max_length=500,
        pattern=r"^[A-Za-z0-9_][^\x00-\x1f\\]*$",
        description="which of its files holds the weights; else the first of those that it may be",
    )
    architecture: ArchitectureField | None = Field(default=None, description="else taken from the file's metadata")
    input: Shape | None = Field(default=None, description="else the file's, or 32x32x3")
    range: PixelRange | None = Field(default=None, description="else the file's, or 0,1")
