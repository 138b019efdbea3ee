"""Whatever the strategy keeps in its head, a task that is broken off and taken up again ends with the same bits."""

from dataclasses import replace

import numpy as np
import pytest
from safetensors.torch import load_file

from engine.errors import Stopped
from engine.run import run

FLASHCARDS, VAE_REPLAY = {"kind": "flashcards", "count": 60, "weight": 0.3}, {"kind": "vae_replay", "count": 60}
CASES = [("reconstruction", FLASHCARDS)]
OTHERS = [
    ("reconstruction", {"kind": "si", "weight": 0.1}),
    ("denoising", VAE_REPLAY),
    ("denoising", FLASHCARDS | {"fresh": True}),
    ("denoising", {"kind": "lwf", "weight": 0.1}),
    ("reconstruction", VAE_REPLAY),
    ("reconstruction", {"kind": "naive"}),
    ("reconstruction", {"kind": "joint"}),
    ("reconstruction", {"kind": "coreset", "size": 20}),
    ("reconstruction", {"kind": "coreset", "size": 20, "choice": "reservoir"}),
    ("reconstruction", {"kind": "ewc", "weight": 1}),
    ("reconstruction", {"kind": "cl_vae", "count": 60}),
]


def named(value) -> str:
    return value if isinstance(value, str) else "-".join(str(part) for part in value.values())


def files_of(work) -> dict[str, bytes]:
    """Everything that the next task starts from."""
    kept = {}
    for path in work.out.iterdir():
        if path.suffix == ".safetensors":
            kept |= {f"{path.name}/{name}": tensor.numpy().tobytes() for name, tensor in load_file(path).items()}
        elif path.suffix == ".npz":
            with np.load(path) as arrays:
                kept |= {name: array.tobytes() for name, array in arrays.items()}
    return kept


def stop_at(nth):
    asked = iter(range(10**6))
    return lambda: next(asked) >= nth


@pytest.mark.parametrize(
    ("scenario", "strategy"), [*CASES, *(pytest.param(*case, marks=pytest.mark.slow) for case in OTHERS)], ids=named
)
def test_it_ends_with_the_same_bits(new_learner, new_report, never, scenario, strategy):
    family = "vae" if strategy["kind"] == "cl_vae" else "blk"
    learner = new_learner(architecture=f"{family}_1_fil_8", scenario=scenario, noise=0.05)
    asked = {"strategy": strategy, "epochs": 5, "batch_size": 12, "learning_rate": 0.02, "decay": 0}
    first = learner.learn("low", **asked)
    unbroken = first.learn("high", **asked)
    # At first it is asked while cards are made; then after each of nine steps an epoch, and while validating.
    work, report = first.task("high", **asked), new_report()
    with pytest.raises(Stopped):
        run(work, report, stop_at(18))
    assert 9 < int(report.points[-1].stem) < 27
    resumed = first.task("high", resume=report.points[-1], **asked)
    outcome = run(resumed, new_report(), never)
    assert files_of(resumed) == files_of(unbroken.work)
    assert outcome.result.measures == unbroken.result.measures
    assert outcome.result.recipes == unbroken.result.recipes


CLASSES = [{"kind": "flashcards", "count": 40}]
OTHER_CLASSES = [
    {"kind": "eeil", "size": 20},
    {"kind": "flashcards", "count": 40, "loss": "soft_labels", "by_class": False, "fresh": True},
    {"kind": "flashcards", "count": 40, "loss": "local_distill"},
    {"kind": "vae_replay", "count": 40},
    {"kind": "imm", "merge": "mode"},
    {"kind": "agem", "size": 20},
    {"kind": "si"},
    {"kind": "ewc"},
    {"kind": "lwf"},
    {"kind": "joint"},
    {"kind": "coreset", "size": 20},
]


@pytest.mark.parametrize("optimizer", ["adam", pytest.param("sgd", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "strategy", [*CLASSES, *(pytest.param(each, marks=pytest.mark.slow) for each in OTHER_CLASSES)], ids=named
)
def test_so_does_a_learner_of_classes(new_class_learner, new_report, never, strategy, optimizer):
    learner = new_class_learner(architecture="tasknet_width_2_hidden_16_latent_4", autoencoder="blk_1_fil_4")
    learner = replace(learner, refuse_collapse=False)  # so small a network may learn nothing: the same nothing again
    asked = {"strategy": strategy, "epochs": 4, "autoencoder_epochs": 12, "batch_size": 12, "learning_rate": 0.01}
    asked |= {"decay": 0, "optimizer": optimizer}
    first = learner.learn("low", **asked)
    unbroken = first.learn("high", **asked)
    steps = unbroken.result.steps
    # In the first training, and where there is a second one in that as well.
    for stopped in {steps // 6, steps - 5 if strategy["kind"] == "flashcards" else steps // 2}:
        work, report = first.task("high", **asked), new_report()
        with pytest.raises(Stopped):
            run(work, report, lambda report=report, at=stopped: bool(report.told) and report.told[-1].step >= at)
        resumed = first.task("high", resume=report.points[-1], **asked)
        outcome = run(resumed, new_report(), never)
        assert files_of(resumed) == files_of(unbroken.work)
        assert outcome.result.measures == unbroken.result.measures
