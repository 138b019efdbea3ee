"""Cards that start in the latent space: a latent is drawn, the decoder makes an image of it, and one step back leads
to F_0:

    c = D(z),    F_0 = c + (c - f(c)),    within the range.

A decoded image is to the network what an answer is, not what a question was: blurred, as f(x) is for an image x. Who
learns from answers learns the blur. The step back undoes one pass as far as one step can: if f blurs c once more by
c - f(c), what was blurred into c had about that much more. It is the first step of the iteration x <- x + (c - f(x))
that solves f(x) = c. Cards become about as hard to the network as images are.

Nothing but the checkpoint is needed. Where a capsule is there, latents are drawn around its Gaussian (source
`capsule`), and the pixels are brought to the tones of the data (`engine.tones`); where none is, they are drawn around
0, as wide as those of mazes (source `latent`).

Around, and not from: the Gaussian of the capsule is widened in all directions alike, by as much as the data's own
latents vary. Draws from the Gaussian itself are decoded to what the network finds easy, and who learns from them alone
learns little of what images are beside that: a card may be strange, but it has to be hard.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch

from engine import gaussian
from engine.gaussian import Gaussian
from engine.hashing import keys
from engine.sources.by_class import drawn
from engine.sources.maze import mazes
from engine.tones import Tones, tones_between
from engine.work import ModelInput
from flashcards.contract.capsule import Capsule
from flashcards.contract.class_moments import ClassMoments

LATENT_VERSION, CAPSULE_VERSION = 2, 3  # change when the same seed would give other latents
LANE = 2
WIDTH = 1.0  # of the deviation of the data's latents, added in all directions
LOOKED_AT = 64  # mazes
TONED_CARDS, TONED_NUMBERS = 256, 2**24  # looked at for their tones: so many, or as large images allow
TONES_SEED = 0


@dataclass(frozen=True)
class Decoding:
    network: torch.nn.Module
    around: Gaussian | ClassMoments  # the second: cards of one class after the other
    seed: int
    latent: tuple[int, ...]
    range: tuple[float, float]
    device: torch.device
    tones: Tones | None = None

    @torch.inference_mode()
    def start(self, first: int, count: int) -> torch.Tensor:
        """Cards number first .. first + count - 1 before any pass, as x_BCHW."""
        z_ND = self._latents(first, count).astype(np.float32)
        z = torch.from_numpy(z_ND.reshape(count, *self.latent)).to(self.device)
        c_BCHW = self.network.decoder(z.contiguous(memory_format=torch.channels_last) if z.ndim == 4 else z)
        x_BCHW = self.stepped_back(c_BCHW.clamp(*self.range))
        return x_BCHW if self.tones is None else self.tones.match(x_BCHW)

    def stepped_back(self, c_BCHW: torch.Tensor) -> torch.Tensor:
        return (2 * c_BCHW - self.network(c_BCHW)).clamp(*self.range)

    def _latents(self, first: int, count: int) -> np.ndarray:
        if isinstance(self.around, ClassMoments):
            return drawn(self.around, self.seed, first, count, LANE)
        return self.around.draw(keys(self.seed, first, count), LANE)

    def toned(self, tones_CQ: np.ndarray, chunk: int) -> "Decoding":
        """Matched to these, by a look at cards that every set shares."""
        shared = replace(self, seed=TONES_SEED)
        some = [shared.start(0, chunk)]
        most = min(TONED_CARDS // chunk, TONED_NUMBERS // some[0].numel())
        some += [shared.start(first * chunk, chunk) for first in range(1, most)]
        return replace(self, tones=tones_between(torch.cat(some), tones_CQ))


def around_capsule(capsule: Capsule) -> Gaussian:
    known = gaussian.of_capsule(capsule)
    return known.widened(WIDTH * known.deviation)


@torch.inference_mode()
def without_data(network: torch.nn.Module, model: ModelInput, device: torch.device) -> tuple[Gaussian, float]:
    """Isotropic, as wide as the latents of mazes are on average; and that width."""
    x_NHWC = mazes(0, 0, LOOKED_AT, model.input, model.range)
    z = network.encoder(torch.from_numpy(x_NHWC).to(device).permute(0, 3, 1, 2))
    z_ND = z.flatten(1).cpu().double().numpy()
    scale = float(np.sqrt(z_ND.var(0).mean()))
    size = z_ND.shape[1]
    flat = Gaussian(np.zeros(size), factor_KD=np.zeros((0, size)), deviation_D=np.full(size, scale))
    return flat, scale
