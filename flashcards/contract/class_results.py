"""What a job answers with where the model is a classifier; and the answers to a few images, of either kind of model."""

from typing import Literal

from flashcards.contract.architecture import ArchitectureField
from flashcards.contract.base import DatasetId, ModelId, Record
from flashcards.contract.capsule import CapsuleFacts
from flashcards.contract.results import ClassAccuracy, TaskResult, TrainingResult


class TrainClassifierResult(TrainingResult):
    model: ModelId | None = None
    through: ModelId | None = None
    "The autoencoder whose reconstructions it learnt from; null: from the images themselves."
    images: int
    "How many it learnt from, without those held out."
    classes: int
    train_log_loss: float
    validation_log_loss: float
    "Mean of -log p of the label, over the images held out: the best epoch is chosen by it."
    constant_log_loss: float
    "Of who knows how frequent each class is, and does not look at the image."
    validation_accuracy: float
    constant_accuracy: float
    "Of who always answers with the most frequent class: the bar below which nothing was learnt."
    per_class: list[ClassAccuracy]
    "Of the images held out, by class."
    test_accuracy: float | None = None
    "On the test images as they are; null where the dataset has none with labels."


class EvaluateClassifierResult(Record):
    model: ModelId | None = None
    dataset: DatasetId | None = None
    forward_unverified: bool = False
    split: str
    images: int
    classes: int
    accuracy: float
    "The highest score of all heads is the answer."
    accuracy_given_head: float | None = None
    "Where it is told which head to ask; null where there is one."
    constant_accuracy: float
    "Of who always answers with the class that is most frequent among these images."
    log_loss: float
    ece: float
    "Expected calibration error over 15 bins: how far confidence and accuracy lie apart."
    per_class: list[ClassAccuracy]
    confusion: list[list[int]] | None = None
    "Images of class i answered with class j; null beyond 100 classes: it is in confusion.json, up to 1,000."
    seconds: float


class CardMaker(TrainingResult):
    """How the autoencoder beside a classifier learnt the task: what makes cards of it from then on."""

    metric: Literal["mae", "mse"]
    "What its errors are: of squares in task_incremental, as in the paper."
    train_error: float
    validation_error: float
    constant_error: float
    "What the best constant image scores on the validation images: the bar below which nothing was learnt."
    shares_encoder: bool
    "It began with the encoder of the classifier."


class LearnClassesResult(TaskResult):
    """A learner of classes, and the task that it learnt. Its `measures` are accuracies."""

    architecture: ArchitectureField
    "Of the classifier, with the head of the new task."
    classes: int
    "Of the new task."
    train_log_loss: float
    validation_log_loss: float
    "Mean of -log p of the label, over the images held out: the best epoch is chosen by it."
    constant_log_loss: float
    validation_accuracy: float
    constant_accuracy: float
    confusion: list[list[int]] | None = None
    "Images of all tasks that are of class i and answered with class j, nobody saying which task they are of; of"
    " sessions, those of the newest. Null beyond 100 classes: it is in confusion.json, up to 1,000."
    random_accuracy: float | None = None
    "The new task measured with a network that has learnt nothing."
    autoencoder: CardMaker | None = None
    "Null where the strategy makes no cards."
    capsule: CapsuleFacts | None = None


class Reconstructed(Record):
    row: int
    mae: float


class Classified(Record):
    row: int
    label: int
    "The class with the highest score."
    name: str | None = None
    confidence: float
    "The probability that the network gives to it."
    scores: list[float] | None = None
    "Probability of every class; null beyond 100 classes. scores.npy has them all."
    truth: int | None = None
    "The label of the image, where it has one."


class PredictResult(Record):
    model: ModelId | None = None
    dataset: DatasetId | None = None
    forward_unverified: bool = False
    split: str
    reconstructed: list[Reconstructed] | None = None
    "Answers of an autoencoder; the images are reconstructions.npy, N x H x W x C, and reconstructions.png."
    classified: list[Classified] | None = None
    "Answers of a classifier."
    seconds: float
