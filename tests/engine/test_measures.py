import numpy as np
import pytest
import torch

from engine.measures import PSNR_CAP, mae_B, psnr_B, ssim_B

UNIT = (0.0, 1.0)


def plain_ssim(x: np.ndarray, y: np.ndarray, window: int) -> float:
    """One channel, place by place, as the paper writes it."""
    places = np.arange(window) - (window - 1) / 2
    g = np.exp(-(places[:, None] ** 2 + places[None] ** 2) / (2 * 1.5**2))
    g /= g.sum()
    found = []
    for row in range(x.shape[0] - window + 1):
        for column in range(x.shape[1] - window + 1):
            a, b = (image[row : row + window, column : column + window] for image in (x, y))
            ma, mb = (g * a).sum(), (g * b).sum()
            va, vb, cov = (g * (a - ma) ** 2).sum(), (g * (b - mb) ** 2).sum(), (g * (a - ma) * (b - mb)).sum()
            found.append((2 * ma * mb + 1e-4) * (2 * cov + 9e-4) / ((ma**2 + mb**2 + 1e-4) * (va + vb + 9e-4)))
    return float(np.mean(found))


@pytest.mark.parametrize(("side", "window"), [(16, 11), (11, 11), (8, 7), (3, 3), (2, 1), (1, 1)])
def test_ssim_is_the_plain_one(side, window):
    random = np.random.default_rng(0)
    x, y = random.random((2, 3, side, side)), random.random((2, 3, side, side))
    wanted = [
        np.mean([plain_ssim(a, b, window) for a, b in zip(*pair, strict=True)]) for pair in zip(x, y, strict=True)
    ]
    got = ssim_B(torch.from_numpy(x).float(), torch.from_numpy(y).float(), UNIT)
    assert got.tolist() == pytest.approx(wanted, abs=1e-4)


def test_ssim_of_a_picture_does_not_depend_on_the_range_it_is_written_in():
    x, y = torch.rand(2, 3, 16, 16), torch.rand(2, 3, 16, 16)
    torch.testing.assert_close(ssim_B(x, y, UNIT), ssim_B(2 * x - 1, 2 * y - 1, (-1.0, 1.0)), atol=1e-5, rtol=0)


def test_identical_images():
    x = torch.rand(2, 1, 12, 12)
    assert mae_B(x, x).tolist() == [0, 0]
    assert psnr_B(x, x, UNIT).tolist() == pytest.approx([PSNR_CAP, PSNR_CAP])
    assert ssim_B(x, x, UNIT).tolist() == pytest.approx([1, 1])


def test_psnr_counts_from_the_width_of_the_range():
    x = torch.zeros(1, 1, 4, 4)
    assert psnr_B(x, x + 0.1, UNIT).item() == pytest.approx(20, abs=1e-4)
    assert psnr_B(x, x + 0.2, (-1.0, 1.0)).item() == pytest.approx(20, abs=1e-4)
