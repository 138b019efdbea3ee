"""Measures a capsule, batch after batch, in numpy: whoever has the network hands in what it saw."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from flashcards.contract.capsule import (
    MOST_TONES,
    QUANTILES,
    TONES_ROOM,
    Array,
    Capsule,
    CapsuleFacts,
    from_directions,
    pack,
)

DENSE_MOST = 2048  # latents longer than this have no covariance matrix in memory, only directions
KEPT = 1024  # of such latents at most, to find the directions in
PIXELS = 2**16  # looked at for the tones of a channel
FEWEST_TONES = 16  # fewer would be no distribution


class Meter:
    def __init__(self) -> None:
        self.count = 0
        self.latent: tuple[int, ...] = ()
        self._errors: list[Array] = []
        self._kept: Array = np.zeros(0)
        self._stride = 1
        self._channels: Array = np.zeros(0)
        self._seen: Array = np.zeros(0)
        self._drawn: Array = np.zeros(0)
        self._limit = 1.0  # a pixel with a number from here on has lost
        self._lots = np.random.Generator(np.random.Philox(key=[0, 0]))

    def add(self, z: Array, error_N: Array, x: Array, channel_axis: int = -1) -> None:
        """Latents of any shape, the error of each image, and the images themselves."""
        if not len(z):
            return
        z_ND = np.asarray(z, np.float64).reshape(len(z), -1)
        if not (np.isfinite(z_ND).all() and np.isfinite(error_N).all()):
            raise ValueError(
                f"among images {self.count} to {self.count + len(z) - 1} there is one whose latent or error is not a "
                "finite number"
            )
        if not self.count:
            self._begin(z.shape[1:], z_ND, x.shape[channel_axis])
        shifted_ND = z_ND - self._origin_D
        self._sum_D += shifted_ND.sum(0)
        if self._products_DD is not None:
            self._products_DD += shifted_ND.T @ shifted_ND
        else:
            self._squares_D += (shifted_ND**2).sum(0)
            self._keep(shifted_ND)
        self._errors.append(np.asarray(error_N, np.float64))
        pixels_PC = np.moveaxis(np.asarray(x, np.float64), channel_axis, -1).reshape(-1, self._channels.shape[1])
        self._channels += [np.full(pixels_PC.shape[1], len(pixels_PC)), pixels_PC.sum(0), (pixels_PC**2).sum(0)]
        self._look_at(pixels_PC)
        self.count += len(z_ND)

    def capsule(self, model_digest: str | None = None, measured_on: Literal["images", "cards"] = "images") -> Capsule:
        if self.count < 2:
            raise ValueError(f"a capsule needs at least 2 images; there were {self.count}")
        return replace(self._of_latents(model_digest, measured_on), tones_CQ=self._tones())

    def _of_latents(self, model_digest: str | None, measured_on: Literal["images", "cards"]) -> Capsule:
        drift_D = self._sum_D / self.count
        facts, mean_D = self._facts(model_digest, measured_on), self._origin_D + drift_D
        if self._products_DD is not None:
            covariance_DD = self._products_DD / self.count - np.outer(drift_D, drift_D)
            return pack(facts, mean_D, covariance_DD * self.count / (self.count - 1))
        variance_D = np.maximum(self._squares_D / self.count - drift_D**2, 0) * self.count / (self.count - 1)
        kept_KD = self._kept.astype(np.float64) - drift_D
        # Few rows, many columns: the eigenvectors of the small Gram matrix give those of the large covariance.
        values_K, small_KK = np.linalg.eigh(kept_KD @ kept_KD.T / len(kept_KD))
        values_K, small_KK = values_K[::-1], small_KK[:, ::-1]
        real = values_K > values_K[0] * 1e-9
        vectors_KD = small_KK[:, real].T @ kept_KD / np.sqrt(values_K[real] * len(kept_KD))[:, None]
        return from_directions(facts, mean_D, variance_D, values_K[real], vectors_KD)

    def _keep(self, shifted_ND: Array) -> None:
        """Every n-th from first to last, n doubling as they grow many: the first alone may all be of one class."""
        taken = shifted_ND[-self.count % self._stride :: self._stride]
        self._kept = np.concatenate([self._kept, taken.astype(np.float32)])
        while len(self._kept) > KEPT:
            self._kept = self._kept[::2].copy()
            self._stride *= 2

    def _look_at(self, pixels_PC: Array) -> None:
        """Every pixel draws a number, and those with the smallest stay: a fair sample, however images are batched."""
        drawn_P = self._lots.random(len(pixels_PC))
        won_P = drawn_P < self._limit
        self._drawn = np.concatenate([self._drawn, drawn_P[won_P]])
        self._seen = np.concatenate([self._seen, pixels_PC[won_P].astype(np.float32)])
        if len(self._drawn) > 2 * PIXELS:
            self._cut()

    def _cut(self) -> None:
        if len(self._drawn) > PIXELS:
            first = np.sort(np.argpartition(self._drawn, PIXELS - 1)[:PIXELS])
            self._drawn, self._seen = self._drawn[first], self._seen[first]
            self._limit = float(self._drawn.max())

    def _tones(self) -> Array | None:
        self._cut()
        many = min(MOST_TONES, TONES_ROOM // self._seen.shape[1])
        if many < FEWEST_TONES:
            return None
        places = (np.arange(many) + 0.5) / many
        return np.asarray(np.quantile(self._seen, places, axis=0).T)

    def _begin(self, latent: Sequence[int], z_ND: Array, channels: int) -> None:
        size = z_ND.shape[1]
        self.latent = tuple(latent)
        self._origin_D = z_ND.mean(0)  # sums of squares around it lose no digits
        self._sum_D = np.zeros(size)
        self._squares_D = np.zeros(size)
        self._products_DD = np.zeros((size, size)) if size <= DENSE_MOST else None
        self._kept = np.zeros((0, size), np.float32)
        self._channels = np.zeros((3, channels))
        self._seen = np.zeros((0, channels), np.float32)

    def _facts(self, model_digest: str | None, measured_on: Literal["images", "cards"]) -> CapsuleFacts:
        error_N = np.concatenate(self._errors)
        pixels, total_C, squares_C = self._channels
        mean_C = total_C / pixels
        return CapsuleFacts(
            model_digest=model_digest,
            measured_on=measured_on,
            count=self.count,
            latent=self.latent,
            eps1=float(error_N.min()),
            eps2=float(error_N.max()),
            mean_error=float(error_N.mean()),
            error_quantiles={q: float(np.quantile(error_N, float(q))) for q in QUANTILES},
            channel_mean=mean_C.tolist(),
            channel_deviation=np.sqrt(np.maximum(squares_C / pixels - mean_C**2, 0)).tolist(),
        )
