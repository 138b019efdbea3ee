"""What this worker counts for Prometheus. One worker runs one job at a time, so no job's id is needed as a label."""

import time

from prometheus_client import Counter, Gauge, Histogram

from flashcards.contract.resources import Progress
from ledger.lifecycle import Claim
from worker.messages import DeviceMemory, SaidProgress

WAITS = (0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600)
SPANS = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600)

queue_wait = Histogram("flashcards_queue_wait_seconds", "From queue to claim, by queue", ["queue"], buckets=WAITS)
attempts = Counter("flashcards_attempts", "Attempts of this worker that have ended", ["kind", "outcome"])
attempt_seconds = Histogram("flashcards_attempt_seconds", "From claim to end", ["kind"], buckets=SPANS)
leases_lapsed = Counter("flashcards_leases_lapsed", "Jobs that this worker took back from silent ones")
claims_lost = Counter("flashcards_claims_lost", "Attempts of this worker whose job somebody else held by then")
busy = Gauge("flashcards_worker_busy", "1 while this worker runs a job", ["queue"])
cards = Counter("flashcards_cards", "Cards made")
cards_per_second = Gauge("flashcards_cards_per_second", "Of the job that makes cards now; 0 where none does")
samples_per_second = Gauge("flashcards_samples_per_second", "Images of the job that trains or evaluates now")
running_loss = Gauge("flashcards_running_loss", "Last loss of the job that runs now", ["kind"])
device_used = Gauge("flashcards_device_memory_used_bytes", "Of the device that the job runs on", ["device"])
device_total = Gauge("flashcards_device_memory_total_bytes", "All that the device has", ["device"])

#: The unit of a job's progress says what its rate is a rate of.
RATES = {"cards": cards_per_second, "images": samples_per_second}


class Running:
    """The figures of one attempt, from its claim to its end."""

    def __init__(self, claim: Claim, queue: str) -> None:
        self._kind, self._queue = claim.spec["kind"], queue
        self._began_at = time.monotonic()
        self._made: int | None = None
        self._is_first = claim.attempt == 1
        queue_wait.labels(queue).observe(claim.waited_seconds)
        busy.labels(queue).set(1)

    def heard(self, message: SaidProgress) -> None:
        progress = message.progress
        for unit, gauge in RATES.items():
            gauge.set(progress.rate or 0.0 if unit == progress.unit else 0.0)
        if progress.loss is not None:
            running_loss.labels(self._kind).set(progress.loss)
        if progress.unit == "cards":
            self._count(progress)
        if message.memory is not None:
            _note_memory(message.memory)

    def ended(self, outcome: str) -> None:
        attempts.labels(self._kind, outcome).inc()
        attempt_seconds.labels(self._kind).observe(time.monotonic() - self._began_at)
        busy.labels(self._queue).set(0)
        for gauge in RATES.values():
            gauge.set(0)
        for labelled in (running_loss, device_used):
            labelled.clear()

    def _count(self, progress: Progress) -> None:
        """What an earlier attempt has made counts there: later ones are counted from where they are found."""
        before = (0 if self._is_first else progress.step) if self._made is None else self._made
        cards.inc(max(0, progress.step - before))
        self._made = progress.step


def _note_memory(memory: DeviceMemory) -> None:
    device_used.labels(memory.device).set(memory.used_bytes)
    device_total.labels(memory.device).set(memory.total_bytes)
