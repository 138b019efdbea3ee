"""How far images are from each other: mean absolute error, PSNR and SSIM, one number an image."""

from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional as F

from engine.data import Images

PSNR_CAP = 100.0  # dB; identical images have no finite PSNR, and float32 rounding alone sits near 140


def mae_B(x_BCHW: torch.Tensor, y_BCHW: torch.Tensor) -> torch.Tensor:
    return (x_BCHW - y_BCHW).abs().mean((1, 2, 3))


def mse_B(x_BCHW: torch.Tensor, y_BCHW: torch.Tensor) -> torch.Tensor:
    return (x_BCHW - y_BCHW).square().mean((1, 2, 3))


def psnr_B(x_BCHW: torch.Tensor, y_BCHW: torch.Tensor, range: tuple[float, float]) -> torch.Tensor:
    """10 log10(L^2 / MSE), L being the width of the range."""
    peak = (range[1] - range[0]) ** 2
    return 10 * torch.log10(peak / mse_B(x_BCHW, y_BCHW).clamp_min(peak * 10 ** (-PSNR_CAP / 10)))


def ssim_B(x_BCHW: torch.Tensor, y_BCHW: torch.Tensor, range: tuple[float, float]) -> torch.Tensor:
    """Wang et al. 2004: Gaussian window 11x11, sigma 1.5, K1 = 0.01, K2 = 0.03; mean over places and channels.

    (2 mx my + C1)(2 sxy + C2) / ((mx^2 + my^2 + C1)(sx^2 + sy^2 + C2)), the window inside the image everywhere. It is
    meant for intensities, so images are brought to 0..1 first: the same picture scores the same for networks of any
    range. An image smaller than the window gets the largest odd window that fits.
    """
    low, high = range
    x, y = ((image.flatten(0, 1).unsqueeze(1) - low) / (high - low) for image in (x_BCHW, y_BCHW))
    window = min(11, *(side - 1 + side % 2 for side in x.shape[2:]))
    places = torch.arange(window, dtype=x.dtype, device=x.device) - (window - 1) / 2
    g = torch.exp(-places.square() / (2 * 1.5**2))
    g = g / g.sum()

    def blur(image: torch.Tensor) -> torch.Tensor:
        return F.conv2d(F.conv2d(image, g.view(1, 1, -1, 1)), g.view(1, 1, 1, -1))

    c1, c2 = 0.01**2, 0.03**2
    mx, my = blur(x), blur(y)
    sxx, syy, sxy = blur(x * x) - mx * mx, blur(y * y) - my * my, blur(x * y) - mx * my
    places_map = (2 * mx * my + c1) * (2 * sxy + c2) / ((mx * mx + my * my + c1) * (sxx + syy + c2))
    return places_map.mean((1, 2, 3)).view(x_BCHW.shape[:2]).mean(1)


@torch.inference_mode()
def mean_error(
    predict: Callable[[torch.Tensor], torch.Tensor],
    images: Images,
    rows: np.ndarray,
    chunk: int,
    device: torch.device,
    between: Callable[[], None] = lambda: None,
    error_B: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = mae_B,
) -> float:
    """Mean absolute error, or another, of a prediction over these rows; `between` runs after every chunk."""
    total = torch.zeros((), dtype=torch.float64, device=device)
    for first in range(0, len(rows), chunk):
        x_BCHW = images.batch(rows[first : first + chunk], device)
        total += error_B(x_BCHW, predict(x_BCHW)).sum(dtype=torch.float64)
        between()
    return total.item() / len(rows)
