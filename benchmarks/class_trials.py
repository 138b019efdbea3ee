"""What was tried to let cards keep more of a classifier: each a small change of `flashcards` of classes.

They are not strategies of the product: what helps on the mean of several seeds becomes part of it, the rest is here so
that it can be tried again. `make bench-classification BENCH="--bar losses"` prints them beside each other.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch.nn import functional as F

from engine import capsule, strategies
from engine.data import Images
from engine.lesson import Lesson
from engine.resume import Standing, Training
from engine.strategies.base import Kept, Strategy
from engine.strategies.class_flashcards import ClassFlashcards
from engine.strategies.distilling import distilled
from engine.strategies.lwf import TEMPERATURE
from engine.strategies.replay import Replay
from engine.strategies.setting import Setting
from engine.task_cards import as_batches


class Veiled(ClassFlashcards):
    """Half of the new images are shown as the old autoencoder gives them back. Cards are blurred and images are not: a
    classifier that sees nothing else of old and new learns to tell blurred from sharp, and takes all sharp for new."""

    def loss(self, x_BCHW: torch.Tensor, target: torch.Tensor, now: Standing) -> tuple[torch.Tensor, torch.Tensor]:
        if self.replay is not None:
            network, _ = self.setting.maker
            x_BCHW = x_BCHW.clone()
            with torch.no_grad():
                x_BCHW[::2] = network(x_BCHW[::2]).clamp(*self.setting.images.range)
        return super().loss(x_BCHW, target, now)


class Held(ClassFlashcards):
    """The classes of each earlier task are also told apart on new images as before: cards are blurred, and so say
    nothing of what was seen in sharp images."""

    def loss(self, x_BCHW: torch.Tensor, target: torch.Tensor, now: Standing) -> tuple[torch.Tensor, torch.Tensor]:
        if self.replay is None:
            return super().loss(x_BCHW, target, now)
        rows, new = self.replay.rows(now.batch, len(x_BCHW)), len(x_BCHW)
        old_BCHW = self.replay.images.batch(rows, x_BCHW.device)
        z_BL = self.network.encoder(torch.cat([x_BCHW, old_BCHW]))
        y_BK = self.network.read(z_BL)
        with torch.no_grad():
            was_BK = self.setting.base(x_BCHW)
        error = self.score(y_BK[:new], target)
        drift = F.mse_loss(z_BL[new:], self.z_NL[rows])
        held = distilled(y_BK[:new], was_BK, self.setting.classes.spans, TEMPERATURE)
        kept = self.score(y_BK[new:], self.answers_NK[rows]) + drift + held
        return error + self.weight * kept + self.apart(z_BL, target, new), error

    def apart(self, z_BL: torch.Tensor, target: torch.Tensor, new: int) -> torch.Tensor | float:
        return 0.0


class Evenly(ClassFlashcards):
    """Tasks are told apart on blurred images alone: cards, and new images as the old autoencoder gives them back. On
    sharp ones the new classes are told apart among themselves, and the old ones as before: nothing learns that what is
    sharp is new."""

    def loss(self, x_BCHW: torch.Tensor, target: torch.Tensor, now: Standing) -> tuple[torch.Tensor, torch.Tensor]:
        if self.replay is None:
            return super().loss(x_BCHW, target, now)
        classes, new = self.setting.classes, len(x_BCHW)
        rows = self.replay.rows(now.batch, new)
        with torch.no_grad():
            maker, _ = self.setting.maker
            veiled_BCHW = maker(x_BCHW).clamp(*self.setting.images.range)
            was_BK = self.setting.base(x_BCHW)
        old_BCHW = self.replay.images.batch(rows, x_BCHW.device)
        z_BL = self.network.encoder(torch.cat([x_BCHW, veiled_BCHW, old_BCHW]))
        y_BK = self.network.read(z_BL)
        first, count = classes.place.first, classes.place.classes
        error = F.cross_entropy(y_BK[:new, first : first + count], target - first)
        apart = self.score(y_BK[new : 2 * new], target) + self.score(y_BK[2 * new :], self.answers_NK[rows])
        held = distilled(y_BK[:new], was_BK, classes.spans, TEMPERATURE)
        drift = F.mse_loss(z_BL[2 * new :], self.z_NL[rows])
        return error + apart + self.weight * (held + drift), error


class Sharpened(Held):
    """Cards get a few steps of their own, until the old classifier takes them for their class and its batch norms see
    in them what they saw in the images of the task (DeepInversion, Yin et al., 2020, from a card in place of noise)."""

    steps, rate, batch = 15, 0.02, 250

    def __init__(self, setting: Setting) -> None:
        self.plain: np.ndarray | None = None
        super().__init__(setting)
        if self.replay is not None:
            spec = setting.work.spec
            self.of_recipe = Replay(Images(self.plain, setting.images.range), spec.seed, spec.batch_size)

    def _cards(self, epoch: int) -> np.ndarray:
        made = [cards.make(epoch) for cards in self.sources]
        if self.plain is None:
            self.plain = np.concatenate(made)
        return np.concatenate([self._sharp(number, x_NHWC) for number, x_NHWC in enumerate(made, start=1)])

    def _sharp(self, number: int, x_NHWC: np.ndarray) -> np.ndarray:
        first, _ = self.setting.classes.spans[number - 1]
        labels_N = torch.from_numpy(self.sources[number - 1].classes() + first)
        wanted = self._wanted(number)
        parts = as_batches(x_NHWC, self.batch, self.setting.device)
        moved = [self._moved(x, y, wanted) for x, y in zip(parts, labels_N.split(self.batch), strict=True)]
        return np.ascontiguousarray(torch.cat(moved).permute(0, 2, 3, 1).cpu().numpy())

    def _wanted(self, number: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        state, norms = self.setting.state, norms_of(self.setting.base)
        if f"norms.{number}.0.mean" in state:
            return [
                (state[f"norms.{number}.{place}.mean"], state[f"norms.{number}.{place}.var"])
                for place in range(len(norms))
            ]
        return [(norm.running_mean, norm.running_var) for norm in norms]

    def _moved(self, x_BCHW: torch.Tensor, label_B: torch.Tensor, wanted: list) -> torch.Tensor:
        x_BCHW = x_BCHW.clone().requires_grad_(True)
        optimizer = torch.optim.Adam([x_BCHW], lr=self.rate)
        for _ in range(self.steps):
            with watched(self.setting.base) as seen:
                y_BK = self.setting.base(x_BCHW)
            loss = F.cross_entropy(y_BK, label_B)
            for (mean, var), (want_mean, want_var) in zip(seen, wanted, strict=True):
                scale = want_var + 1e-5
                loss = loss + ((mean - want_mean).square() / scale).mean()
                loss = loss + (((var + 1e-5).sqrt() - scale.sqrt()).square() / scale).mean()
            (x_BCHW.grad,) = torch.autograd.grad(loss, [x_BCHW])
            optimizer.step()
            with torch.no_grad():
                x_BCHW.clamp_(*self.setting.images.range)
            self.setting.between()
        return x_BCHW.detach()

    def end(self, network: torch.nn.Module) -> Kept:
        setting, state = self.setting, {}
        sets = {setting.number: Images(setting.images.x_NHWC[setting.own_rows], setting.images.range)}
        if self.replay is not None:
            first = 0
            for number, cards in enumerate(self.sources, start=1):
                mine = self.replay.images.x_NHWC[first : first + cards.count]
                sets[number] = Images(mine, setting.images.range)
                first += cards.count
        for number, images in sets.items():
            for place, (mean, var) in enumerate(self._seen(network, images)):
                state |= {f"norms.{number}.{place}.mean": mean, f"norms.{number}.{place}.var": var}
        return Kept(state=state)

    @torch.no_grad()
    def _seen(self, network: torch.nn.Module, images: Images) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Over all images: mean and variance of what each batch norm is given."""
        sums, count = None, 0
        for first in range(0, len(images), self.setting.chunk):
            rows = np.arange(first, min(first + self.setting.chunk, len(images)))
            with watched(network) as seen:
                network.encoder(images.batch(rows, self.setting.device))
            parts = [(mean * len(rows), (var + mean.square()) * len(rows)) for mean, var in seen]
            sums = parts if sums is None else [(a + c, b + d) for (a, b), (c, d) in zip(sums, parts, strict=True)]
            count += len(rows)
        return [(a / count, (b / count - (a / count).square()).clamp(min=0)) for a, b in sums]


def norms_of(network: torch.nn.Module) -> list[torch.nn.Module]:
    return [each for each in network.modules() if isinstance(each, torch.nn.BatchNorm2d)]


@contextmanager
def watched(network: torch.nn.Module) -> Iterator[list[tuple[torch.Tensor, torch.Tensor]]]:
    """Mean and variance of what each batch norm is given, while it lasts."""
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []

    def look(_: torch.nn.Module, given: tuple[torch.Tensor]) -> None:
        seen.append((given[0].mean((0, 2, 3)), given[0].var((0, 2, 3), correction=0)))

    hooks = [norm.register_forward_pre_hook(look) for norm in norms_of(network)]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


class Remembered(Held):
    """And heads learn from latents drawn of every old class, as its images had them: mean and strongest directions of
    each were measured when they were there, and follow what the cards of the class say of how latents moved."""

    from_first = True

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        state = setting.state
        self.numbers = sorted({int(name.split(".")[1]) for name in state if name.startswith("moments.")})
        self.moments = {
            number: {each: state[f"moments.{number}.{each}"] for each in ("mean", "factor", "diagonal")}
            for number in self.numbers
        }

    def draw(self, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        z, labels = [], []
        for number in self.numbers:
            own, (first, classes) = self.moments[number], self.setting.classes.spans[number - 1]
            label_N = torch.randint(classes, (count // len(self.numbers),), generator=self.drawing)
            mean, factor = own["mean"][label_N], own["factor"][label_N]
            along = torch.einsum("nk,nkd->nd", torch.randn(factor.shape[:2], generator=self.drawing), factor)
            rest = torch.randn(mean.shape, generator=self.drawing) * own["diagonal"][label_N].sqrt()
            z.append(mean + along + rest)
            labels.append(label_N + first)
        return torch.cat(z), torch.cat(labels)

    def begin(self, training: Training, lesson: Lesson) -> None:
        super().begin(training, lesson)
        self.drawing = torch.Generator().manual_seed(self.setting.work.spec.seed)

    def apart(self, z_BL: torch.Tensor, target: torch.Tensor, new: int) -> torch.Tensor | float:
        if not self.numbers:
            return 0.0
        drawn_NL, labels_N = self.draw(2 * new)
        return F.cross_entropy(self.network.read(drawn_NL), labels_N)

    def end(self, network: torch.nn.Module) -> Kept:
        setting = self.setting
        classes, where = setting.classes, (setting.chunk, setting.device, setting.between)
        images = Images(setting.images.x_NHWC[setting.own_rows], setting.images.range)
        labels_N = classes.labels_N[setting.own_rows] - classes.place.first
        found = capsule.measure_classes(network, images, labels_N, classes.place.classes, *where)
        state = _as_state(setting.number, found.mean_CD, found.factor_CKD, found.diagonal_CD)
        if self.replay is not None:
            drift_NL, answer_N = self._drift(network)
            for number in self.numbers:
                own, (first, count) = self.moments[number], classes.spans[number - 1]
                mean = own["mean"].clone()
                for label in range(count):
                    of_class = answer_N == first + label
                    if of_class.any():
                        mean[label] += drift_NL[of_class].mean(0)
                state |= _as_state(number, mean, own["factor"], own["diagonal"])
        return Kept(state=state)

    @torch.inference_mode()
    def _drift(self, network: torch.nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
        images, chunk = self.of_recipe.images, self.setting.chunk
        now = [
            network.encoder(images.batch(np.arange(first, min(first + chunk, len(images))), self.setting.device))
            for first in range(0, len(images), chunk)
        ]
        return torch.cat(now) - self.z_NL, self.y_NK.argmax(1)


def _as_state(number: int, *arrays: object) -> dict[str, torch.Tensor]:
    names = ("mean", "factor", "diagonal")
    return {
        f"moments.{number}.{name}": torch.as_tensor(array, dtype=torch.float32).contiguous()
        for name, array in zip(names, arrays, strict=True)
    }


@contextmanager
def in_place(trial: type[Strategy] | None) -> Iterator[None]:
    """While it lasts, `flashcards` of a classifier is the trial."""
    before = strategies.OF_CLASSES["flashcards"]
    strategies.OF_CLASSES["flashcards"] = trial or before
    try:
        yield
    finally:
        strategies.OF_CLASSES["flashcards"] = before
