"""A ledger with as many jobs, models and learners as a busy year leaves, written straight into its tables."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import insert

from flashcards.contract.architecture import BlkArchitecture
from flashcards.contract.specs import job_spec
from ledger.db import Database
from ledger.ids import new_id
from ledger.migrate import migrate
from ledger.tables import (
    DEFAULT_TENANT,
    Artifact,
    Attempt,
    Blob,
    Dataset,
    Event,
    Flashcards,
    Job,
    JobInput,
    Learner,
    Metric,
    Model,
    Version,
)

AT_ONCE = 5_000
START = 1.75e9
STEPS_TOLD = 7
ARCHITECTURE = BlkArchitecture(blocks=4, filters=32).model_dump(mode="json")
KINDS = ("train", "capture", "evaluate")
#: Of each kind; the sizes of their files do not matter here, their number does.
FILES = {
    "train": ("model.safetensors", "capsule.safetensors", "reconstructions.png"),
    "capture": ("cards.npy", "sheet.png", "source.png"),
    "evaluate": ("metrics.json", "reconstructions.png"),
}


class Size(NamedTuple):
    jobs: int
    models: int
    learners: int


def fill(home: Path, size: Size) -> dict[str, str]:
    """Ids of the newest of each sort, by the name of the view that shows it."""
    home.mkdir(parents=True)
    db = Database(f"sqlite:///{home / 'flashcards.db'}")
    migrate(db)
    crowd = Crowd(size)
    for table, rows in crowd.rows.items():
        for first in range(0, len(rows), AT_ONCE):
            with db.write() as session:
                session.connection().execute(insert(table.__table__), rows[first : first + AT_ONCE])
    db.close()
    return crowd.newest


class Crowd:
    def __init__(self, size: Size) -> None:
        self.rows: dict[Any, list[dict[str, Any]]] = {
            table: []
            for table in (
                *(Dataset, Model, Flashcards, Learner, Version, Job),
                *(JobInput, Attempt, Event, Metric, Blob, Artifact),
            )
        }
        self.newest: dict[str, str] = {}
        self._add_datasets(size.models)
        self._add_models(size.models)
        for number in range(size.jobs):
            self._add_job(number, size.jobs)
        self._add_learners(size.learners)

    def _add(self, table: Any, **columns: Any) -> None:
        self.rows[table].append(columns)

    def _digest(self, *words: object) -> str:
        return hashlib.sha256(" ".join(map(str, words)).encode()).hexdigest()

    def _add_blob(self, *words: object) -> str:
        digest = self._digest(*words)
        self._add(Blob, tenant=DEFAULT_TENANT, digest=digest, size=1000)
        return digest

    def _add_datasets(self, count: int) -> None:
        for number in range(count):
            id = self.newest["dataset"] = new_id("dataset")
            split = {"count": 60_000, "shape": "32x32x3", "dtype": "uint8", "low": 0, "high": 255, "classes": 10}
            self._add(
                Dataset,
                **self._named(id, f"line {number}", number),
                digest=self._add_blob("dataset", number),
                size=10**6,
                format="npz",
                splits={"train": split, "test": {**split, "count": 10_000}},
                retain=True,
            )

    def _add_models(self, count: int) -> None:
        for number in range(count):
            id = self.newest["model"] = new_id("model")
            self._add(
                Model,
                **self._named(id, f"network of line {number}", number),
                architecture=ARCHITECTURE,
                input="32x32x3",
                range=[0.0, 1.0],
                parameters=94_243,
                digest=self._add_blob("model", number),
                size=377_000,
                origin="upload",
            )

    def _named(self, id: str, name: str, number: int) -> dict[str, Any]:
        return {"id": id, "tenant": DEFAULT_TENANT, "name": name, "created_at": START + number}

    def _add_job(self, number: int, of: int) -> None:
        id, kind = new_id("job"), KINDS[number % len(KINDS)]
        state = "queued" if number >= of - max(2, of // 100) else ("failed" if number % 10 == 7 else "succeeded")
        model = self.rows[Model][-1 - number % len(self.rows[Model])]["id"]
        dataset = self.rows[Dataset][-1 - number % len(self.rows[Dataset])]["id"]
        fields: dict[str, Any] = {
            "train": {"dataset": dataset, "architecture": ARCHITECTURE},
            "capture": {"model": model, "count": 500},
            "evaluate": {"model": model, "dataset": dataset},
        }[kind]
        spec = {**SPECS[kind], **fields}
        ended = START + number + 60 if state != "queued" else None
        if state == "succeeded":
            self.newest[f"{kind} job"] = id
        result = self._result(kind, id, model, dataset, number) if state == "succeeded" else None
        failure = {"type": "timeout", "title": "The job ran out of its time", "detail": "timeout_seconds was 60."}
        self._add(
            Job,
            id=id,
            tenant=DEFAULT_TENANT,
            kind=kind,
            queue="cpu",
            state=state,
            spec=spec,
            labels={"line": str(number % 7)},
            attempt=0 if state == "queued" else 1,
            max_attempts=3,
            seq=1 if state == "queued" else STEPS_TOLD + 3,
            progress={"fraction": 1.0, "step": 1000, "steps": 1000},
            result=result,
            error=failure if state == "failed" else None,
            created_at=START + number,
            started_at=START + number if ended else None,
            ended_at=ended,
        )
        for read in {value for value in fields.values() if isinstance(value, str)}:
            self._add(JobInput, job_id=id, resource_id=read)
        self._add(Event, job_id=id, seq=1, kind="state", attempt=0, data={"state": "queued"}, at=START + number)
        if ended is not None:
            self._add_history(id, kind, state, number)

    def _add_history(self, id: str, kind: str, state: str, number: int) -> None:
        times = {"started_at": START + number, "ended_at": START + number + 60}
        self._add(Attempt, job_id=id, number=1, worker_id="worker_" + "0" * 32, outcome=state, **times)
        steps = [("state", {"state": "running"}), *[("progress", {"fraction": 0.5, "step": 1})] * STEPS_TOLD]
        for seq, (what, data) in enumerate([*steps, ("state", {"state": state})], start=2):
            self._add(Event, job_id=id, seq=seq, kind=what, attempt=1, data=data, at=START + number + seq)
        if kind == "train":
            for name in ("train_mae", "validation_mae"):
                for step in range(15):
                    self._add(Metric, job_id=id, name=name, step=step, attempt=1, value=1 / (step + 1))
        for name in FILES[kind] if state == "succeeded" else ():
            media = "image/png" if name.endswith(".png") else "application/octet-stream"
            digest = self._add_blob(id, name)
            self._add(
                Artifact, job_id=id, name=name, role="product", media_type=media, digest=digest, size=1000, attempt=1
            )

    def _result(self, kind: str, id: str, model: str, dataset: str, number: int) -> dict[str, Any]:
        if kind == "train":
            return {**TRAINED, "model": model}
        if kind == "evaluate":
            return {**EVALUATED, "model": model, "dataset": dataset}
        cards = self.newest["flashcards"] = new_id("flashcards")
        self._add(
            Flashcards,
            **self._named(cards, f"cards {number}", number),
            model_id=model,
            job_id=id,
            recipe=RECIPE,
            digest=self._digest(id, "cards.npy"),
            size=1000,
            sheet_digest=self._digest(id, "sheet.png"),
            materialised=True,
        )
        return {**CAPTURED, "flashcards": cards}

    def _add_learners(self, count: int) -> None:
        for number in range(count):
            id = self.newest["learner"] = new_id("learner")
            self._add(
                Learner,
                **self._named(id, f"learner of line {number}", number),
                scenario="reconstruction",
                noise=0.1,
                clip=True,
                architecture=ARCHITECTURE,
                input="32x32x3",
                range=[0.0, 1.0],
                version=3,
            )
            for version in _versions(id, number):
                self._add_blob("version", id, version["number"])
                self._add(Version, **version, digest=self._digest("version", id, version["number"]))


def _versions(learner: str, place: int) -> Iterator[dict[str, Any]]:
    for number in (1, 2, 3):
        yield {
            "learner_id": learner,
            "number": number,
            "tenant": DEFAULT_TENANT,
            "parent": number - 1 or None,
            "task": f"task {number}",
            "repeated": False,
            "strategy": {"kind": "naive"},
            "size": 377_000,
            "measures": [{"task": f"task {task}", "mae": 0.03 + task / 100} for task in range(1, number + 1)],
            "recipes": [],
            "memory": {"network": 377_000, "capsules": 66_000},
            "keeps_data": False,
            "seconds": 60.0,
            "created_at": START + place + number,
        }


LESSON = {"backend": "torch-cpu", "threads": 1, "seconds": 60.0, "images_per_second": 900.0}
TRAINED = {
    **LESSON,
    "epochs": 15,
    "best_epoch": 15,
    "steps": 14_000,
    "stopped_early": False,
    "parameters": 94_243,
    "train_mae": 0.031,
    "validation_mae": 0.032,
    "constant_mae": 0.21,
    "images": 54_000,
}
RECIPE = {
    "model_digest": "0" * 64,
    "source": "maze",
    "seed": 0,
    "r": 10,
    "count": 500,
    "input": "32x32x3",
    "range": [0.0, 1.0],
    "dtype": "float32",
    "backend": "torch-cpu",
    "threads": 1,
    "chunk": 64,
}
STEPS = [1 / (step + 1) for step in range(10)]
CAPTURED = {
    "recipe": RECIPE,
    "gamma1": STEPS,
    "gamma2": STEPS,
    "mean_step": STEPS,
    "cards_digest": "0" * 64,
    "cards_size": 1000,
    "seconds": 3.0,
    "cards_per_second": 166.0,
}
EVALUATED = {
    "split": "test",
    "images": 10_000,
    "mae": 0.033,
    "psnr": 26.1,
    "ssim": 0.93,
    "constant_mae": 0.21,
    "mae_quantiles": {"0.05": 0.01, "0.5": 0.03, "0.95": 0.06},
    "seconds": 9.0,
}
NOTHING = "_" + "0" * 32
#: As the API would write them down, but for what they read.
SPECS = {
    kind: job_spec.validate_python({"kind": kind, **fields}).model_dump(mode="json")
    for kind, fields in {
        "train": {"dataset": f"dataset{NOTHING}", "architecture": "blk_4_fil_32"},
        "capture": {"model": f"model{NOTHING}"},
        "evaluate": {"model": f"model{NOTHING}", "dataset": f"dataset{NOTHING}"},
    }.items()
}
