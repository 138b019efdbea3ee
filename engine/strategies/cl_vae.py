"""`cl_vae`: the learner is a variational autoencoder, and replays what its old self draws: c = D_old(z), z ~ N(0, 1).

theta* = argmin ELBO loss of (x, c), the error on c weighing lambda. Mean and deviation of the latents are held at the
same prior through all tasks, which is all that is known of the earlier ones.
"""

from collections.abc import Iterable

from engine.data import Images
from engine.errors import StrategyUnfit
from engine.strategies.base import Strategy
from engine.strategies.flashcards import save_sheet
from engine.strategies.prior import prior_samples
from engine.strategies.replay import Replay, derived_seed
from engine.strategies.setting import Setting
from engine.work import Product
from flashcards.contract.strategies import ClVae


class ClVaeReplay(Strategy):
    def __init__(self, setting: Setting) -> None:
        config: ClVae = setting.config
        architecture, spec = setting.work.learner.architecture, setting.work.spec
        self.setting, self.weight = setting, config.weight
        if architecture.family != "vae":
            raise StrategyUnfit(
                f"cl_vae draws latents from a prior, and a learner of {architecture.name} has none: begin one with an "
                "architecture such as vae_4_fil_32, or take another strategy"
            )
        if setting.base is not None:
            seed = derived_seed(spec.seed, setting.number)
            samples_NHWC = prior_samples(setting, setting.base, architecture, config.count, seed)
            self.replay = Replay(Images(samples_NHWC, setting.images.range), spec.seed, spec.batch_size)

    def products(self) -> Iterable[Product]:
        return () if self.replay is None else [save_sheet(self.setting, self.replay.images.x_NHWC)]
