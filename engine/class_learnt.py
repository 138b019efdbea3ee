"""What comes of a task that a learner of classes has learnt: files of the new version, its row, pictures of both."""

import torch

from engine import capsule
from engine.class_desk import AUTOENCODER, ClassDesk, ClassDone
from engine.class_learn_plots import save_accuracies, save_curves, save_mistakes
from engine.class_measures import accuracy, confusion, constant_accuracy, scores
from engine.class_rows import Measured, together
from engine.class_sheets import save_measures_sheets
from engine.evaluate_classifier import TOLD_CLASSES
from engine.learn_measures import largest
from engine.learnt import save_kept
from engine.models import build
from engine.pictures import save_reconstructions
from engine.strategies.base import Kept
from engine.weights import WEIGHTS
from engine.work import Outcome, Product
from flashcards.contract.capsule import Capsule
from flashcards.contract.class_results import CardMaker, LearnClassesResult
from flashcards.contract.results import Memory
from flashcards.contract.strategies import KEEPS_DATA


def class_outcome(desk: ClassDesk, done: ClassDone) -> Outcome:
    capsules = [*(each.capsule for each in done.refreshed), done.capsule]
    kept = done.strategy.end(done.answerer.network)
    saved = [
        capsule.save(desk.work.out, each, capsule.of_task(number))
        for number, each in enumerate(capsules, start=1)
        if each is not None
    ]
    products = [WEIGHTS, *_maker_file(desk), *saved, *save_kept(desk.work, kept)]
    products += [*done.strategy.products(), *_pictures(desk, done), *save_measures_sheets(desk.work.out, done.row)]
    return Outcome(_result(desk, done, capsules, kept), products)


def _maker_file(desk: ClassDesk) -> list[Product]:
    return [AUTOENCODER] if (desk.work.out / AUTOENCODER.name).exists() else []


def _pictures(desk: ClassDesk, done: ClassDone) -> list[Product]:
    out, learner, multihead = desk.work.out, desk.work.learner, desk.multihead
    tasks = [*(task.name for task in learner.tasks), desk.name]
    rows, title = [*learner.measures, done.row], f"{desk.architecture.name}, {learner.scenario}"
    pictures = [*save_accuracies(out, tasks, rows, title, multihead), *save_curves(out, tasks, rows, title, multihead)]
    pictures += save_mistakes(out, _shown(desk, done), _class_names(desk), title, desk.report)
    if done.maker is not None:
        test = desk.data.test.images
        pictures.append(save_reconstructions(out, done.maker.network, test.images, test.rows, desk.device))
    return pictures


def _shown(desk: ClassDesk, done: ClassDone) -> list[Measured | None]:
    """Sessions are often measured on the same images: the newest are enough to see what is mistaken for what."""
    return done.measured if desk.multihead else done.measured[-1:]


def _class_names(desk: ClassDesk) -> list[str] | None:
    """Of all scores; None where a task does not say what its classes are called."""
    tests = [*desk.tests, desk.data.test] if desk.multihead else [desk.data.test]
    if any(test is None or test.names is None for test in tests):
        return None
    return [name for test in tests for name in test.names[test.place.lowest : test.place.lowest + test.place.classes]]


def _result(desk: ClassDesk, done: ClassDone, capsules: list[Capsule | None], kept: Kept) -> LearnClassesResult:
    spec, learner, data = desk.work.spec, desk.work.learner, desk.data
    shape, network, material = data.task.images.shape, done.answerer.network, done.material
    validation, labels_N = material.validation_rows, material.labels_N
    y_NK = scores(network, material.images, validation, desk.chunk, desk.device, desk.stop_if_asked)
    first = torch.Generator().manual_seed(spec.seed)
    untaught = build(desk.architecture, shape, first).to(desk.device).eval()
    # A head that is not there yet answers nothing: before its task a task of its own has no accuracy.
    before = None if desk.base is None or desk.multihead else desk.measure(desk.name, desk.base, data.test).row
    worst, steps_and_seconds = largest(done.rises), dict(zip(("steps", "seconds"), done.next_try, strict=True))
    return LearnClassesResult(
        base_version=spec.base_version,
        task=len(done.row),
        images=len(material.train_rows),
        measures=done.row,
        before=before,
        random_accuracy=desk.measure(desk.name, untaught, data.test).row.accuracy,
        forgetting=None if worst is None else worst.rise,
        forgetting_on=None if worst is None else worst.on,
        recipes=done.strategy.recipes,
        memory=Memory(
            network=desk.architecture.size(shape),
            autoencoder=learner.autoencoder.size(shape) if _maker_file(desk) else 0,
            capsules=sum(len(each.to_bytes()) for each in capsules if each is not None),
            images=sum(array.nbytes for name, array in kept.images.items() if name.startswith("x_")),
            state=sum(tensor.nbytes for tensor in kept.state.values()),
        ),
        keeps_data=spec.strategy.kind in KEEPS_DATA,
        parameters=desk.architecture.parameters(shape),
        architecture=desk.architecture,
        classes=data.place.classes,
        confusion=_confusion(desk, done),
        validation_accuracy=accuracy(y_NK, labels_N[validation]),
        constant_accuracy=constant_accuracy(labels_N[material.train_rows], labels_N[validation]),
        autoencoder=_maker_told(desk, done),
        capsule=None if capsules[-1] is None else capsules[-1].facts,
        **(done.answerer.told | steps_and_seconds),
    )


def _confusion(desk: ClassDesk, done: ClassDone) -> list[list[int]] | None:
    if desk.architecture.classes > TOLD_CLASSES:
        return None
    counts: list[list[int]] = confusion(*together(_shown(desk, done))).tolist()
    return counts


def _maker_told(desk: ClassDesk, done: ClassDone) -> CardMaker | None:
    if done.maker is None:
        return None
    metric, ends = done.maker.lesson.aim.metric, ("train", "validation", "constant")
    told = done.maker.told(desk.work) | {
        "steps": done.maker.now.step - done.answerer.step,
        "seconds": done.maker.own_seconds,
    }
    errors = {f"{end}_error": told.pop(f"{end}_{metric}") for end in ends}
    architecture, shape = desk.work.learner.autoencoder, desk.data.task.images.shape
    shares = desk.shares_encoder(done.maker.network.state_dict())
    size = architecture.parameters(shape)
    return CardMaker(parameters=size, shares_encoder=shares, metric=metric, **errors, **told)
