"""What a job answers with. The engine fills everything but the ids of what the ledger made of it."""

from flashcards.contract.base import DatasetId, FlashcardsId, ModelId, Record
from flashcards.contract.recipe import Recipe


class TrainResult(Record):
    model: ModelId | None = None
    epochs: int
    best_epoch: int
    steps: int
    stopped_early: bool
    train_mae: float
    validation_mae: float
    constant_mae: float
    "What the per-pixel median image scores on the validation images: the bar below which nothing was learnt."
    parameters: int
    images: int
    "How many it learnt from, without those held out."
    backend: str
    threads: int
    seconds: float
    images_per_second: float


class CaptureResult(Record):
    flashcards: FlashcardsId | None = None
    recipe: Recipe
    forward_unverified: bool = False
    "No probe says that the network we built from the checkpoint gives the answers that its owner's gives."
    gamma1: list[float]
    "Smallest step of any card at each pass."
    gamma2: list[float]
    "Largest step of any card at each pass."
    mean_step: list[float]
    seconds: float
    cards_per_second: float


class NoopResult(Record):
    worker: str


class EvaluateResult(Record):
    model: ModelId | None = None
    dataset: DatasetId | None = None
    forward_unverified: bool = False
    split: str
    images: int
    mae: float
    psnr: float
    ssim: float
    mae_quantiles: dict[str, float]
    constant_mae: float
    seconds: float
