"""One image file as pixels. Everything that decodes is imported and used once before the sandbox closes."""

import importlib
import io
import warnings
from collections.abc import Callable

import numpy as np
from PIL import Image

from service.files.errors import BadFile
from service.files.looks import HEAD_BYTES, looks_like
from service.files.parts import Pixels, Size
from service.files.words import quoted

FORMATS = ("PNG", "JPEG", "WEBP")
#: What Pillow imports on the way, for palettes, EXIF and photos of several pictures.
PLUGINS = ("ImageColor", "ImagePalette", "MpoImagePlugin", "TiffImagePlugin", "WebPImagePlugin")
MAX_PIXELS = 64_000_000
BAD = "an image cannot be taken"
CONVERT = "?input=HxWxC converts it"
PNG, PNG_DEPTH_PLACE = b"\x89PNG\r\n\x1a\n", 24
PHOTO_WITH_MORE = "MPO"  # a JPEG as telephones write it: the picture, then a preview or a depth map

Spend = Callable[[int], None]
Note = Callable[[Size], None]

Image.MAX_IMAGE_PIXELS = MAX_PIXELS


def get_ready() -> None:
    """Pillow imports much of itself when it is first needed, and in the sandbox that is too late."""
    for plugin in PLUGINS:
        importlib.import_module(f"PIL.{plugin}")
    for format in FORMATS:
        stream = io.BytesIO()
        Image.new("RGB", (8, 8)).save(stream, format)
        decode("", stream.getvalue(), Size(4, 4, 1))


def decode(
    name: str, data: bytes, wanted: Size | None, spend: Spend = lambda _: None, note: Note = lambda _: None
) -> Pixels:
    """As it is, which must be grey or RGB; or as it is wanted, with whatever conversion that takes.

    `spend` hears how many pixels there are before they are decoded, and may raise BadFile. `note` hears of the size
    before it is changed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            return _decode(name, data, wanted, spend, note)
    except (BadFile, MemoryError):
        raise
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise BadFile(BAD, f"{quoted(name)} has more than {MAX_PIXELS:,} pixels") from error
    except Exception as error:  # decoders raise nearly everything on hostile bytes
        if isinstance(error, PermissionError):  # the sandbox's word, not the file's
            raise
        what = looks_like(data[:HEAD_BYTES])
        raise BadFile(
            BAD, f"{quoted(name)} cannot be read; it looks like {what}, damaged or not what it says"
        ) from error


def _decode(name: str, data: bytes, wanted: Size | None, spend: Spend, note: Note) -> Pixels:
    if data.startswith(PNG) and data[PNG_DEPTH_PLACE : PNG_DEPTH_PLACE + 1] == b"\x10":
        raise BadFile(BAD, f"{quoted(name)} has 16 bits a channel: save it with 8, scaled as you mean it")
    if data.startswith(PNG):
        Image.open(io.BytesIO(data), formats=FORMATS).verify()  # its checksums; decoding stops at the last row
    with Image.open(io.BytesIO(data), formats=FORMATS) as image:
        if getattr(image, "n_frames", 1) > 1 and image.format != PHOTO_WITH_MORE:
            raise BadFile(BAD, f"{quoted(name)} is animated: save the frames as images of their own")
        spend(image.width * image.height)
        image.load()
        plain = _without_alpha(name, image, converts=wanted is not None)
        if wanted is None:
            return pixels(_as_it_is(name, plain))
        note(Size(plain.height, plain.width, 1 if plain.mode in ("1", "L") else 3))
        return pixels(fitted(plain, wanted))


def _without_alpha(name: str, image: Image.Image, *, converts: bool) -> Image.Image:
    """Dropped where every pixel is opaque; else laid on black, where a conversion was asked for."""
    if not image.has_transparency_data:
        return image
    grey = image.mode in ("1", "L", "LA", "La")
    layered = image.convert("RGBA")
    if layered.getchannel("A").getextrema()[0] != 255:
        if not converts:
            raise BadFile(BAD, f"{quoted(name)} has transparent pixels: {CONVERT}, on black, or flatten it yourself")
        layered = Image.alpha_composite(Image.new("RGBA", layered.size, "black"), layered)
    return layered.convert("L" if grey else "RGB")


def _as_it_is(name: str, image: Image.Image) -> Image.Image:
    """Conversions that lose nothing: black and white is grey, and a palette lists colours."""
    if image.mode in ("L", "RGB"):
        return image
    if image.mode in ("1", "P"):
        return image.convert("L" if image.mode == "1" else "RGB")
    raise BadFile(BAD, f"{quoted(name)} has colours of the kind {image.mode}: save it as grey or RGB, or {CONVERT}")


def fitted(image: Image.Image, wanted: Size) -> Image.Image:
    mode = "L" if wanted.channels == 1 else "RGB"
    coloured = image if image.mode == mode else image.convert(mode)
    return coloured.resize((wanted.width, wanted.height), Image.Resampling.BILINEAR)


def pixels(image: Image.Image) -> Pixels:
    values = np.asarray(image)
    return values if values.ndim == 3 else values[..., None]
