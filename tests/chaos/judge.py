"""At the end: did every accepted job end well, once, and with what an unbroken run gives?"""

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from ledger.db import Database
from ledger.tables import Artifact, Job
from tests.chaos.state import State, Wanted


@dataclass
class Judge:
    state: State
    complain: Callable[[str], None]

    def judge(self, db: Database) -> dict[str, Any]:
        """Complains of what is wrong, and returns the figures of the report."""
        with db.read() as session:
            jobs = session.scalars(select(Job)).all()
            products = session.scalars(select(Artifact).where(Artifact.role == "product")).all()
        self.digests = {(product.job_id, product.name): product.digest for product in products}
        on_record: dict[str, list[Job]] = defaultdict(list)
        for job in jobs:
            on_record[job.labels["chaos"]].append(job)
        told = Counter({"succeeded": 0, "resumed_trainings": 0, "identical": 0})
        for wanted in self.state.jobs:
            told.update(self._one(wanted, on_record.pop(str(wanted.number), [])))
        strangers = [label for label in on_record if not label.startswith("peace")]
        if strangers:
            self.complain(f"jobs on record that nobody asked for: {strangers}")
        attempts = [job.attempt for job in jobs]
        return {"accepted": len(self.state.jobs), **told, "attempts": sum(attempts), "most_attempts": max(attempts)}

    def _one(self, wanted: Wanted, found: list[Job]) -> list[str]:
        if [job.id for job in found] != [wanted.id]:
            self.complain(f"job {wanted.number}, accepted as {wanted.id}, is on record as {[job.id for job in found]}")
            return []
        (job,) = found
        if job.state != "succeeded":
            if job.state != "cancelled" or not wanted.cancel:
                self.complain(f"{job.id}, {wanted.kind}: it is {job.state}, {job.error}")
            return [job.state]
        same = wanted.kind == "noop" or self._outcome(job) == self.state.expected[f"{wanted.kind}-{wanted.variant}"]
        if not same:
            self.complain(f"{job.id}, {wanted.kind}: not what an unbroken run gives")
        resumed = wanted.kind == "train" and job.attempt > 1
        return ["succeeded", *["resumed_trainings"] * resumed, *["identical"] * (resumed and same)]

    def _outcome(self, job: Job) -> Any:
        match job.kind:
            case "train":
                return self.digests.get((job.id, "model.safetensors"))
            case "capture":
                return self.digests.get((job.id, "cards.npy"))
            case "predict":
                return self.digests.get((job.id, "reconstructions.npy"))
        assert job.result is not None
        return [job.result[name] for name in ("mae", "psnr", "ssim")]
