"""Images as files in a folder, brought to the shape a network takes, as an upload of them would be."""

import io
import warnings
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from engine.data import Images
from engine.errors import DatasetUnfit
from flashcards.contract.image import IMAGE_SUFFIXES, ImageShape

FORMATS = ("PNG", "JPEG", "WEBP")
PNG, PNG_DEPTH_PLACE = b"\x89PNG\r\n\x1a\n", 24
PHOTO_WITH_MORE = "MPO"  # a JPEG as telephones write it: the picture, then a preview or a depth map


class Folder:
    """Batches as `Images` gives them, each file decoded when it is its turn: the folder may be larger than memory."""

    def __init__(self, path: Path, image: ImageShape, range: tuple[float, float]) -> None:
        if image.channels not in (1, 3):
            raise DatasetUnfit(f"files of images are grey or RGB, and the network takes {image}: make an npz of them")
        # As in an upload, train and test lie side by side, and only train was learnt from.
        top = path / "train" if (path / "train").is_dir() else path
        self.files = sorted(file for file in top.rglob("*") if _is_image(file.relative_to(top)) and file.is_file())
        if not self.files:
            raise DatasetUnfit(f"there is no image in {top}; {', '.join(IMAGE_SUFFIXES)} are taken")
        self.image, self.range = image, range

    def __len__(self) -> int:
        return len(self.files)

    def batch(self, rows: np.ndarray, device: torch.device) -> torch.Tensor:
        x_BHWC = np.stack([decode(self.files[row], self.image) for row in rows])
        return Images(x_BHWC, self.range).batch(np.arange(len(rows)), device)


def decode(path: Path, image: ImageShape) -> np.ndarray:
    """uint8, H x W x C: alpha laid on black, grey or RGB as the network has it, then bilinear."""
    data = path.read_bytes()
    if data.startswith(PNG) and data[PNG_DEPTH_PLACE : PNG_DEPTH_PLACE + 1] == b"\x10":
        raise DatasetUnfit(f"{path} has 16 bits a channel: save it with 8, scaled as you mean it")
    try:
        with warnings.catch_warnings(action="ignore"), Image.open(io.BytesIO(data), formats=FORMATS) as opened:
            frames = getattr(opened, "n_frames", 1) if opened.format != PHOTO_WITH_MORE else 1
            fitting = _flat(opened).convert("L" if image.channels == 1 else "RGB")
            small = fitting.resize((image.width, image.height), Image.Resampling.BILINEAR)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DatasetUnfit(f"{path} cannot be read as an image: {error}") from error
    if frames > 1:
        raise DatasetUnfit(f"{path} is animated: save the frames as images of their own")
    return np.asarray(small).reshape(image)


def _flat(picture: Image.Image) -> Image.Image:
    if not picture.has_transparency_data:
        return picture
    grey = picture.mode in ("1", "L", "LA", "La")
    layered = picture.convert("RGBA")
    flat = Image.alpha_composite(Image.new("RGBA", layered.size, "black"), layered)
    return flat.convert("L" if grey else "RGB")


def _is_image(path: Path) -> bool:
    hidden = any(part.startswith(".") or part == "__MACOSX" for part in path.parts)
    return path.suffix.lower() in IMAGE_SUFFIXES and not hidden
