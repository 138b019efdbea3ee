import re
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, WithJsonSchema

MAX_SIDE = 1024
MAX_VECTOR = 4096  # values of an image of one row: a vector, or a line of a table
MAX_CHANNELS = 16
#: Of the files that a zip or folder of images may hold.
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")


class ImageShape(NamedTuple):
    """Rows, columns, channels: written `32x32x3` wherever a person reads it."""

    height: int
    width: int
    channels: int

    def __str__(self) -> str:
        return f"{self.height}x{self.width}x{self.channels}"

    @property
    def pixels(self) -> int:
        return self.height * self.width * self.channels


def parse_image_shape(value: Any) -> ImageShape:
    if isinstance(value, str):
        match = re.fullmatch(r"(\d{1,5})x(\d{1,5})x(\d{1,3})", value)
        if not match:
            raise ValueError("write the shape as height x width x channels, for example 32x32x3")
        value = tuple(int(part) for part in match.groups())
    if not isinstance(value, list | tuple) or len(value) != 3:
        raise ValueError("a shape has three numbers: height, width, channels")
    height, width, channels = (int(part) for part in value)
    widest = MAX_VECTOR if height == 1 else MAX_SIDE
    if not (1 <= height <= MAX_SIDE and 1 <= width <= widest and 1 <= channels <= MAX_CHANNELS):
        vectors = f"a single row up to {MAX_VECTOR}"
        raise ValueError(f"sides go from 1 to {MAX_SIDE}, {vectors}, channels from 1 to {MAX_CHANNELS}")
    return ImageShape(height, width, channels)


def _ordered(bounds: tuple[float, float]) -> tuple[float, float]:
    if not bounds[0] < bounds[1]:
        raise ValueError("the lower end of a range lies below the upper")
    return bounds


Shape = Annotated[
    ImageShape,
    BeforeValidator(parse_image_shape),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^\d{1,5}x\d{1,5}x\d{1,3}$", "examples": ["32x32x3"]}),
]

#: The values that a network's images take: 0 to 1, or -1 to 1.
PixelRange = Annotated[
    tuple[Annotated[float, Field(ge=-1e6, le=1e6)], Annotated[float, Field(ge=-1e6, le=1e6)]],
    AfterValidator(_ordered),
]
