from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from engine import capsule
from engine.class_desk import ClassDesk
from engine.data import Images
from engine.desk import Desk, Try
from engine.files import digest_of
from engine.models import build
from engine.run import run
from engine.weights import load_network, save_weights
from engine.work import CardsInput, DatasetInput, LearnerInput, ModelInput, Outcome, TaskInput, Work
from flashcards.contract.architecture import Architecture, BlkArchitecture, architecture_spec
from flashcards.contract.image import ImageShape
from flashcards.contract.resources import Progress
from flashcards.contract.specs import job_spec

NOBODY = "0" * 32


@dataclass
class Recorder:
    """A Report that remembers."""

    told: list[Progress] = field(default_factory=list)
    metrics: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    points: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def progress(self, progress: Progress) -> None:
        self.told.append(progress)

    def metric(self, step: int, values: dict[str, float]) -> None:
        self.metrics.append((step, values))

    def resume_point(self, path: Path, step: int) -> None:
        assert path.exists()
        assert path.stem == f"{step:08d}"
        self.points.append(path)

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def report():
    return Recorder()


@pytest.fixture
def new_report():
    return Recorder


@pytest.fixture
def never():
    return lambda: False


@pytest.fixture
def folder(tmp_path):
    """A new empty folder at every call, as each attempt at a job gets one."""
    made = iter(range(1000))

    def new() -> Path:
        path = tmp_path / f"out{next(made)}"
        path.mkdir()
        return path

    return new


@pytest.fixture
def as_dataset(tmp_path):
    def write(**arrays: np.ndarray) -> DatasetInput:
        path = tmp_path / f"dataset{len(list(tmp_path.glob('*.npz')))}.npz"
        np.savez(path, **arrays)
        return DatasetInput(path=path, digest="d")

    return write


@pytest.fixture
def few_digits(digits, as_dataset):
    """45 to learn from and 5 held out: five batches of ten, the last one of five."""
    return as_dataset(x=digits["x_train"][:50])


@pytest.fixture
def train_work(folder, few_digits):
    def make(dataset=few_digits, resume=None, resume_seconds=1e9, threads=1, **fields) -> Work:
        asked = {"architecture": "blk_1_fil_8", "epochs": 4, "batch_size": 10, "learning_rate": 0.01} | fields
        spec = job_spec.validate_python({"kind": "train", "dataset": f"dataset_{NOBODY}"} | asked)
        return Work(
            spec=spec, out=folder(), dataset=dataset, resume=resume, resume_seconds=resume_seconds, threads=threads
        )

    return make


@pytest.fixture
def new_model(tmp_path):
    """A network nobody trained, as a file. `spoil` may change its weights first."""

    def make(
        blocks=1,
        filters=4,
        image=(8, 8, 1),
        range=(0.0, 1.0),
        spoil=lambda network: None,
        activation="tanh",
        architecture=None,
    ) -> ModelInput:
        architecture = architecture or BlkArchitecture(blocks=blocks, filters=filters, activation=activation)
        image = ImageShape(*image)
        network = build(architecture, image, torch.Generator().manual_seed(0))
        with torch.no_grad():
            spoil(network)
        path = tmp_path / f"model{len(list(tmp_path.glob('*.safetensors')))}.safetensors"
        save_weights(path, network.state_dict(), architecture, image, range)
        return ModelInput(path=path, digest="m", architecture=architecture, input=image, range=range)

    return make


@pytest.fixture
def with_capsule(new_model, digits, tmp_path):
    """A model beside the capsule of sixty digits."""
    model, cpu = new_model(), torch.device("cpu")
    images = Images(digits["x_train"][:60, :, :, None], model.range)
    measured = capsule.measure(load_network(model, cpu), images, np.arange(60), 64, cpu).capsule()
    path = tmp_path / "model.capsule"
    path.write_bytes(measured.to_bytes())
    return replace(model, capsule=path, capsule_digest="c")


@pytest.fixture
def capture_work(folder, new_model):
    def make(model=None, **fields) -> Work:
        asked = {"kind": "capture", "model": f"model_{NOBODY}", "count": 70, "r": 3, "source": "maze"} | fields
        return Work(spec=job_spec.validate_python(asked), out=folder(), model=model or new_model())

    return make


@pytest.fixture
def analyze_work(folder, new_model):
    def make(model=None, dataset=None, **fields) -> Work:
        asked = {"kind": "analyze", "model": f"model_{NOBODY}", "count": 16, "max_r": 4} | fields
        if dataset is not None:
            asked["dataset"] = f"dataset_{NOBODY}"
        return Work(spec=job_spec.validate_python(asked), out=folder(), model=model or new_model(), dataset=dataset)

    return make


@pytest.fixture
def evaluate_work(folder, new_model):
    def make(dataset, model=None, **fields) -> Work:
        asked = {"kind": "evaluate", "model": f"model_{NOBODY}", "dataset": f"dataset_{NOBODY}"} | fields
        return Work(spec=job_spec.validate_python(asked), out=folder(), model=model or new_model(), dataset=dataset)

    return make


@pytest.fixture
def evaluate_cards_work(folder, new_model, tmp_path):
    """Cards are given as the array that a capture would have written."""

    def make(cards, dataset, model=None, **fields) -> Work:
        asked = {"kind": "evaluate", "flashcards": f"flashcards_{NOBODY}", "dataset": f"dataset_{NOBODY}"} | fields
        path = tmp_path / f"cards{len(list(tmp_path.glob('*.npy')))}.npy"
        np.save(path, cards)
        return Work(
            spec=job_spec.validate_python(asked),
            out=folder(),
            model=model or new_model(),
            dataset=dataset,
            cards=CardsInput(path=path, digest="c"),
        )

    return make


@dataclass(frozen=True)
class Learner:
    """A learner in files, as the record would hand it to the engine: each task learnt gives the next version."""

    folder: Callable[[], Path]
    datasets: dict[str, DatasetInput]
    input: LearnerInput
    model: ModelInput | None = None
    autoencoder: ModelInput | None = None
    work: Work | None = None
    outcome: Outcome | None = None
    refuse_collapse: bool = True

    @property
    def result(self):
        return self.outcome.result

    @property
    def names(self) -> set[str]:
        return {product.name for product in self.outcome.products}

    def task(self, name: str, resume=None, resume_seconds=1e9, **fields) -> Work:
        asked = {"epochs": 14, "batch_size": 10, "learning_rate": 0.015, "name": name} | fields
        where = {"dataset": f"dataset_{NOBODY}", "learner": f"learner_{NOBODY}"}
        return Work(
            spec=job_spec.validate_python({"kind": "learn"} | where | asked),
            out=self.folder(),
            model=self.model,
            autoencoder=self.autoencoder,
            dataset=self.datasets[name],
            learner=self.input,
            resume=resume,
            resume_seconds=resume_seconds,
            refuse_collapse=self.refuse_collapse,
        )

    def learn(self, name: str, report: Recorder | None = None, **fields) -> "Learner":
        work = self.task(name, **fields)
        return self.after(work, run(work, report or Recorder(), lambda: False))

    def after(self, work: Work, outcome: Outcome) -> "Learner":
        """The next version."""
        out, earlier = work.out, self.input
        names = [*(task.name for task in earlier.tasks), work.spec.name]
        tests = [*(task.test for task in earlier.tasks), work.test_dataset or work.dataset]
        tasks = [
            TaskInput(name=name, capsule=out / f"capsule-{number}.safetensors", test=test)
            for number, (name, test) in enumerate(zip(names, tests, strict=True), start=1)
        ]
        made = {product.name for product in outcome.products}
        if earlier.autoencoder is not None:
            tasks = [*(task for task in self.input.tasks), replace(tasks[-1], classes=outcome.result.classes)]
            tasks[-1] = replace(tasks[-1], lowest=lowest_label(work.dataset) if self.grows else 0)
            files = {number: out / f"capsule-{number}.safetensors" for number in range(1, len(tasks) + 1)}
            tasks = [
                replace(task, capsule=files[number] if files[number].exists() else None)
                for number, task in enumerate(tasks, start=1)
            ]

        def network(name: str, architecture: Architecture) -> ModelInput:
            return ModelInput(
                path=out / name,
                digest=digest_of(out / name),
                architecture=architecture,
                input=ImageShape(8, 8, 1),
                range=earlier.range,
                made_here=True,
            )

        model = network("model.safetensors", getattr(outcome.result, "architecture", earlier.architecture))
        beside = network("autoencoder.safetensors", earlier.autoencoder) if "autoencoder.safetensors" in made else None
        learner = replace(
            earlier,
            tasks=tasks,
            measures=[*earlier.measures, outcome.result.measures],
            state=out / "state.safetensors" if "state.safetensors" in made else None,
            images=out / "images.npz" if "images.npz" in made else None,
        )
        return replace(self, input=learner, model=model, autoencoder=beside, work=work, outcome=outcome)

    @property
    def grows(self) -> bool:
        return self.input.scenario == "task_incremental"

    def without_images(self) -> "Learner":
        """As it is when the datasets of the earlier tasks are gone."""
        tasks = [replace(task, test=None) for task in self.input.tasks]
        rows = [[measure.model_copy(update={"mae": None}) for measure in row] for row in self.input.measures]
        return replace(self, input=replace(self.input, tasks=tasks, measures=rows))


@pytest.fixture(scope="session")
def digits_by_class(digits, tmp_path_factory) -> dict[str, DatasetInput]:
    """Tasks of two digits each, with images to learn from and to test on."""
    folder, found = tmp_path_factory.mktemp("tasks"), {}
    for name, classes in {"low": (0, 1), "high": (4, 7), "last": (3, 8)}.items():
        parts = {
            split: digits[f"x_{split}"][np.isin(digits[f"y_{split}"], classes)][:most]
            for split, most in (("train", 120), ("test", 30))
        }
        labels = {
            split: digits[f"y_{split}"][np.isin(digits[f"y_{split}"], classes)][:most]
            for split, most in (("train", 120), ("test", 30))
        }
        # Of two classes each, numbered from 0.
        told = {f"y_{split}": (y == classes[1]).astype(np.int64) for split, y in labels.items()}
        path = folder / f"{name}.npz"
        np.savez(path, x_train=parts["train"], x_test=parts["test"], **told)
        found[name] = DatasetInput(path=path, digest=name)
    return found


def lowest_label(dataset: DatasetInput) -> int:
    with np.load(dataset.path) as arrays:
        return int(arrays["y_train"].min())


@pytest.fixture(scope="session")
def new_learner(digits_by_class, tmp_path_factory):
    def make(architecture="blk_2_fil_8", scenario="reconstruction", noise=0.1, clip=True, **datasets) -> Learner:
        spec = architecture_spec.validate_python(architecture)
        start = LearnerInput(
            scenario=scenario, noise=noise, clip=clip, architecture=spec, range=(0.0, 1.0), tasks=[], measures=[]
        )
        return Learner(lambda: tmp_path_factory.mktemp("learnt"), digits_by_class | datasets, start)

    return make


@pytest.fixture(scope="session")
def new_class_learner(digits_by_class, tmp_path_factory):
    """Of tasks of two digits each, with a head each, or of sessions of them."""

    def make(
        scenario="task_incremental",
        architecture="tasknet_width_4_hidden_32_latent_8",
        autoencoder="tasknet_ae_width_4_hidden_32_latent_8",
        **datasets,
    ) -> Learner:
        specs = [architecture_spec.validate_python(each) for each in (architecture, autoencoder)]
        start = LearnerInput(
            scenario=scenario,
            noise=0.1,
            clip=True,
            architecture=specs[0],
            autoencoder=specs[1],
            range=(0.0, 1.0),
            tasks=[],
            measures=[],
        )
        return Learner(lambda: tmp_path_factory.mktemp("learnt"), digits_by_class | datasets, start)

    return make


@pytest.fixture
def class_setting_of(report, never):
    """What a strategy of a learner of classes finds when this task begins."""

    def make(work: Work):
        return ClassDesk.open(work, report, never).setting(Try())

    return make


@pytest.fixture
def setting_of(report, never):
    """What a strategy finds when this task begins."""

    def make(work: Work):
        return Desk.open(work, report, never).setting(Try())

    return make
