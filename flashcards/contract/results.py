"""What a job answers with. The engine fills everything but the ids of what the ledger made of it."""

from typing import Literal

from flashcards.contract.base import DatasetId, FlashcardsId, JobId, LearnerId, ModelId, Record
from flashcards.contract.capsule import CapsuleFacts
from flashcards.contract.recipe import Recipe
from flashcards.contract.strategies import StrategyField


class TrainingResult(Record):
    """What every training says, whoever learnt whatever."""

    epochs: int
    best_epoch: int
    steps: int
    stopped_early: bool
    parameters: int
    weighted_alpha: float | None = None
    "How heavy the tails of the weights' spectra are (Martin & Mahoney). Null where every layer is too small to say."
    backend: str
    threads: int
    seconds: float
    images_per_second: float


class TeachingResult(TrainingResult):
    """And that of an autoencoder."""

    train_mae: float
    validation_mae: float
    constant_mae: float
    "What the per-pixel median image scores on the validation images: the bar below which nothing was learnt."
    capsule: CapsuleFacts | None = None


class LearningResult(TeachingResult):
    model: ModelId | None = None


class TrainResult(LearningResult):
    images: int
    "How many it learnt from, without those held out."


class CardMeasures(Record):
    """What a sample of a set of cards looks like from inside its network."""

    sample: int
    "How many cards were looked at."
    card_error: float
    "Mean |f(F) - F|: how far one more pass would move a card."
    spread: float
    "Root mean square distance of two cards' latents."
    diversity: float | None = None
    "The same, over that of the capsule: far below 1, the cards have collapsed onto a few attractors."
    flsd: float | None = None
    "Frechet distance between the latents of the cards and those of the capsule."
    failing_p1: float | None = None
    "Share of cards that one more pass would move by the capsule's eps1 or more."


class CaptureResult(Record):
    flashcards: FlashcardsId | None = None
    recipe: Recipe
    forward_unverified: bool = False
    "No probe says that the network we built from the checkpoint gives the answers that its owner's gives."
    cards_digest: str | None = None
    "SHA-256 of cards.npy, kept or not."
    cards_size: int | None = None
    gamma1: list[float]
    "Smallest step of any card at each pass."
    gamma2: list[float]
    "Largest step of any card at each pass."
    mean_step: list[float]
    p1: bool | None = None
    "Property P1: the largest last step is below the smallest error on real images. Null without a capsule."
    p2: bool | None = None
    "Property P2: these passes brought the latents' distance to its first minimum. Null without a capsule."
    flsd_by_pass: list[float] | None = None
    "FLSD of a sample after 0, 1, .. r passes."
    measures: CardMeasures | None = None
    shards: int = 1
    "In how many parts the cards were made, beside each other."
    seconds: float
    "While at least one of them was being made."
    cards_per_second: float


class AnalyzeResult(Record):
    model: ModelId | None = None
    dataset: DatasetId | None = None
    forward_unverified: bool = False
    source: str
    count: int
    against: Literal["dataset", "capsule"] | None = None
    "What FLSD and P1 were measured against; null: there was neither, and r is the paper's."
    gamma1: list[float]
    gamma2: list[float]
    mean_step: list[float]
    "Of passes 1 .. max_r."
    flsd: list[float] | None = None
    "After 0 .. max_r passes."
    diversity: list[float] | None = None
    eps1: float | None = None
    p1_from: int | None = None
    "The first r whose largest step is below eps1."
    p2_at: int | None = None
    "The first minimum of FLSD."
    recommended_r: int
    reason: str
    "Why, in words."
    reference_mae: float | None = None
    "Test error of the model itself."
    retrained: dict[int, float] | None = None
    "r -> test error of a network that learnt from cards of that r alone."
    seconds: float


class Compared(Record):
    """Parent and child on the same images, or on held-out cards."""

    on: Literal["dataset", "cards"]
    images: int
    parent_mae: float
    child_mae: float
    ratio: float
    agreement_mae: float
    "Mean |f(x) - g(x)| of the two networks' answers."


class DistillResult(LearningResult):
    flashcards: FlashcardsId | None = None
    parent: ModelId | None = None
    parent_parameters: int
    cards: int
    compared: list[Compared]


class ClassAccuracy(Record):
    """The images of one class, and how many of them are answered with it."""

    label: int
    name: str | None = None
    images: int
    accuracy: float


class TaskMeasure(Record):
    """One task, as the network of this version stands to it. Null: there are no test images to measure it on."""

    task: str
    mae: float | None = None
    psnr: float | None = None
    ssim: float | None = None
    estimated_mae: float | None = None
    "Without any image: the error on cards of the task, on the scale of the task's own error."
    accuracy: float | None = None
    "In classification. In task_incremental it is told which task an image is of: the task's own head answers."
    accuracy_without_task_id: float | None = None
    "The highest score of all heads is the answer. Null where there is one head for all tasks."
    estimated_accuracy: float | None = None
    "Without any image: how much of what was known of its cards is answered as before."
    ece: float | None = None
    "Expected calibration error of the answers, over 15 bins of confidence."
    per_class: list[ClassAccuracy] | None = None
    "By the labels of the task's own dataset, told which task it is."


class Memory(Record):
    """What a learner keeps beside nothing: bytes, by what they are."""

    network: int
    autoencoder: int = 0
    "Of a classifier: the network beside it, which makes cards."
    capsules: int = 0
    images: int = 0
    "Of images of earlier tasks. Only strategies that keep data have any."
    state: int = 0
    "Whatever else the strategy keeps: importances, a generator."

    @property
    def network_mb(self) -> float:
        return self.network / 1e6

    @property
    def external_mb(self) -> float:
        """All that is beside the network."""
        return (self.autoencoder + self.capsules + self.images + self.state) / 1e6


class TaskResult(TrainingResult):
    """What every task that was learnt says, whatever a learner learns."""

    learner: LearnerId | None = None
    version: int | None = None
    base_version: int | None = None
    task: int
    "1 is the first."
    images: int
    "How many it learnt from, without those held out."
    measures: list[TaskMeasure]
    "Of this version on every task so far: its row of the matrix."
    before: TaskMeasure | None = None
    "The task measured with the network of the base version, before it was learnt; null at the first task."
    forgetting: float | None = None
    "The largest rise of an earlier task's error against the base version; null where nothing says."
    forgetting_on: Literal["images", "cards"] | None = None
    recipes: list[Recipe] = []
    "Of the cards that were replayed, one an earlier task."
    memory: Memory
    keeps_data: bool = False


class LearnResult(TeachingResult, TaskResult):
    random_mae: float | None = None
    "The new task measured with a network that has learnt nothing."


class Spread(Record):
    mean: float
    deviation: float | None = None
    "Between seeds (that of a sample); null where only one seed counts."


class FailedUnit(Record):
    seed: int
    reason: str


class StrategyRow(Record):
    """How one strategy did, over the seeds that ran to the end."""

    strategy: StrategyField
    kind: str
    label: str
    "The kind, and what was asked for otherwise than by default."
    architecture: str
    seeds: list[int]
    "Those that count. The others are in `failed`."
    average: Spread | None = None
    "AvgMAE: the error after the last task, mean over all tasks. Null where not every task has images to measure on."
    " Of classes the accuracy, told the task."
    average_without_task_id: Spread | None = None
    "In task_incremental: the accuracy of who is not told which task an image is of."
    bwt: Spread | None = None
    "Mean of M[i][i] - M[T][i], in classification of M[T][i] - M[i][i]: below zero, it forgot."
    forgetting: Spread | None = None
    "In classification: how far each task fell from the best it ever was, mean over the tasks."
    fwt: Spread | None = None
    memory: int | None = None
    "Bytes that are kept beyond the network, after the last task."
    keeps_data: bool = False
    seconds: float | None = None
    "Of all trainings of one seed, mean over the seeds."
    failed: list[FailedUnit] = []


class CompareResult(Record):
    tasks: list[str]
    metric: Literal["mae", "accuracy"] = "mae"
    table: list[StrategyRow]
    "A row a strategy, in the order in which they were asked for."
    notes: list[str] = []
    children: list[JobId] = []
    "The jobs that taught the learners, one a task."
    seconds: float | None = None
    "Of all trainings together."


class NoopResult(Record):
    worker: str


class Parity(Record):
    """The answers of an exported file beside those of the network itself, to the same images."""

    inputs: Literal["random", "pattern", "card"]
    images: int
    max_abs_difference: float


class ExportResult(Record):
    model: ModelId | None = None
    forward_unverified: bool = False
    format: Literal["onnx"]
    opset: int
    digest: str
    "SHA-256 of the file, model.onnx among the artifacts."
    size: int
    parity: list[Parity]
    max_abs_difference: float
    "The largest of them."
    allowed: float
    "1e-5, or that share of the largest answer where it is above 1."
    backend: str
    "What ran the network."
    runtime: str
    "What ran the file."
    seconds: float


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


class Privacy(Record):
    """Are cards closer to the images that were learnt from than to images that were not?"""

    cards: int
    images: int
    "On each side: as many training images as held-out ones, since the larger set would be nearer by count alone."
    to_train: float
    "Mean distance of a card to its nearest training image, root mean square over pixels, the range being 1."
    to_held_out: float
    ratio: float
    "Near 1: a card is as far from what was learnt as from what was not. Far below 1: training images show."
    interval: tuple[float, float]
    "Where the ratio of other cards like these would lie, 95 times in 100."
    closest: float
    "Smallest distance of any card to any training image."
    copies: int
    "Cards that are almost equal to a training image, and to no held-out one."
    verdict: str
    "In plain words."


class EvaluateCardsResult(Record):
    flashcards: FlashcardsId | None = None
    dataset: DatasetId | None = None
    forward_unverified: bool = False
    split: str
    cards: int
    images: int
    flsd: float
    precision: float
    "Share of cards among the images: their latents lie within an image's neighbourhood."
    recall: float
    "Share of images among the cards."
    diversity: float
    privacy: Privacy | None = None
    "Null where the dataset has no split that was held out."
    seconds: float
