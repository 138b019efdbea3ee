"""Pictures for people: sheets of small images, enlarged without smoothing so that every pixel is seen."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from engine.data import Images
from engine.files import write_whole
from engine.noise import Noise
from engine.work import Product

COLUMNS = 8
SHEET_CARDS = 64
SMALLEST, LARGEST = 64, 256  # pixels along a tile's shorter and longer side
THINNEST = 8  # a vector is a strip, one value after the other
GAP = 2
GROUND = 128  # between tiles: many cards are white or black at their edges

RECONSTRUCTIONS = Product("reconstructions.png", "image/png", shows_data=True)
RECONSTRUCTED = 10  # images in that picture
NEIGHBOURS = Product("neighbours.png", "image/png", shows_data=True)


def to_pixels(x_NHWC: np.ndarray, range: tuple[float, float]) -> np.ndarray:
    """uint8, with one channel or three: of other counts the first channel is shown."""
    if x_NHWC.shape[-1] not in (1, 3):
        x_NHWC = x_NHWC[..., :1]
    return quantize(x_NHWC, range)


def quantize(x: np.ndarray, range: tuple[float, float]) -> np.ndarray:
    """Values of a range as bytes: round((x - low) / (high - low) * 255), clipped."""
    low, high = range
    return np.rint(np.clip((x - low) / (high - low), 0, 1) * 255).astype(np.uint8)


def sheet(pixels_NHWC: np.ndarray) -> bytes:
    """A PNG of up to 64 images, eight to a row."""
    shown = pixels_NHWC[:SHEET_CARDS]
    return _png([shown[first : first + COLUMNS] for first in range(0, len(shown), COLUMNS)])


@torch.inference_mode()
def save_reconstructions(
    out: Path,
    network: torch.nn.Module,
    images: Images,
    rows: np.ndarray,
    device: torch.device,
    shows_data: bool = True,
    noise: Noise | None = None,
    product: Product = RECONSTRUCTIONS,
) -> Product:
    """Two rows: ten of these images, and below each what the network makes of it; between, what it saw, if noisy."""
    x_BCHW = images.batch(rows[:RECONSTRUCTED], device)
    shown = [x_BCHW] if noise is None else [x_BCHW, noise.fixed(x_BCHW)]
    lines = [t.permute(0, 2, 3, 1).cpu().numpy() for t in (*shown, network(shown[-1]))]
    write_whole(out / product.name, _png([to_pixels(line, images.range) for line in lines]))
    return replace(product, shows_data=shows_data)


def save_pairs(out: Path, images: Images, rows: np.ndarray, y_NHWC: np.ndarray) -> Product:
    """Up to 32 images, eight to a row, and below each row what the network made of it."""
    shown = rows[: SHEET_CARDS // 2]
    x_NHWC = images.batch(shown, torch.device("cpu")).permute(0, 2, 3, 1).numpy()
    lines = []
    for first in range(0, len(shown), COLUMNS):
        for array in (x_NHWC, y_NHWC[: len(shown)]):
            lines.append(to_pixels(array[first : first + COLUMNS], images.range))
    write_whole(out / RECONSTRUCTIONS.name, _png(lines))
    return RECONSTRUCTIONS


def save_neighbours(out: Path, lines: list[tuple[Images, np.ndarray]]) -> Product:
    """Eight columns: a card, and below it the nearest image of each kind."""
    shown = []
    for images, rows in lines:
        x_BHWC = images.batch(rows[:COLUMNS], torch.device("cpu")).permute(0, 2, 3, 1).numpy()
        shown.append(to_pixels(x_BHWC, images.range))
    write_whole(out / NEIGHBOURS.name, _png(shown))
    return NEIGHBOURS


def _png(rows: list[np.ndarray]) -> bytes:
    buffer = io.BytesIO()
    grid(rows).save(buffer, "PNG")
    return buffer.getvalue()


def grid(rows: list[np.ndarray]) -> Image.Image:
    """Images in rows of equal length, enlarged, with a gap around each."""
    tiles = [[_tile(pixels_HWC) for pixels_HWC in row] for row in rows]
    width, height = tiles[0][0].size
    columns = len(tiles[0])
    ground = (GROUND,) * 3 if tiles[0][0].mode == "RGB" else GROUND
    picture = Image.new(
        tiles[0][0].mode,
        (columns * (width + GAP) + GAP, len(rows) * (height + GAP) + GAP),
        ground,
    )
    for row, line in enumerate(tiles):
        for column, tile in enumerate(line):
            picture.paste(tile, (GAP + column * (width + GAP), GAP + row * (height + GAP)))
    return picture


def _tile(pixels_HWC: np.ndarray) -> Image.Image:
    height, width, channels = pixels_HWC.shape
    image = Image.fromarray(pixels_HWC if channels == 3 else pixels_HWC[..., 0])
    if max(height, width) > LARGEST:
        image = image.reduce(-(-max(height, width) // LARGEST))
        times = 1
    else:
        times = min(-(-SMALLEST // min(height, width)), LARGEST // max(height, width))
    wide, tall = (max(side * times, THINNEST) for side in image.size)
    return image.resize((wide, tall), Image.Resampling.NEAREST)
