import pytest
from prometheus_client import REGISTRY

from engine import device
from flashcards.contract.resources import Progress
from ledger.lifecycle import Claim
from worker import telemetry
from worker.messages import DeviceMemory, SaidProgress


def value(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


@pytest.fixture
def running():
    return telemetry.Running(Claim("job_1", "default", 1, {"kind": "capture"}, waited_seconds=3.0), "cpu")


def said(memory: DeviceMemory | None = None, **progress: object) -> SaidProgress:
    return SaidProgress(progress=Progress(**progress), memory=memory)


def test_rates_go_by_what_the_progress_counts(running):
    running.heard(said(step=10, rate=5.0, unit="cards"))
    assert (value("flashcards_cards_per_second"), value("flashcards_samples_per_second")) == (5.0, 0.0)
    running.heard(said(step=1, rate=70.0, unit="images", loss=0.25))
    assert (value("flashcards_cards_per_second"), value("flashcards_samples_per_second")) == (0.0, 70.0)
    assert value("flashcards_running_loss", kind="capture") == 0.25
    assert value("flashcards_worker_busy", queue="cpu") == 1.0
    running.ended("succeeded")
    assert value("flashcards_samples_per_second") == 0.0
    assert value("flashcards_running_loss", kind="capture") is None
    assert value("flashcards_worker_busy", queue="cpu") == 0.0


@pytest.mark.parametrize(("attempt", "made"), [(1, 30), (2, 20)])
def test_cards_of_an_earlier_attempt_are_not_counted_twice(attempt, made):
    before = value("flashcards_cards_total")
    running = telemetry.Running(Claim("job_1", "default", attempt, {"kind": "capture"}), "cpu")
    for step in (10, 10, 30):
        running.heard(said(step=step, rate=1.0, unit="cards"))
    running.ended("succeeded")
    assert value("flashcards_cards_total") - before == made


def test_the_memory_of_a_device_is_told_while_a_job_runs_on_it(running):
    running.heard(said(DeviceMemory(device="cuda", used_bytes=3, total_bytes=8), step=1, unit="cards"))
    assert value("flashcards_device_memory_used_bytes", device="cuda") == 3.0
    assert value("flashcards_device_memory_total_bytes", device="cuda") == 8.0
    running.ended("failed")
    assert value("flashcards_device_memory_used_bytes", device="cuda") is None


def test_a_cpu_has_no_memory_of_its_own_and_a_gpu_tells_what_is_used(monkeypatch):
    assert device.memory("cpu") is None
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda name: (2, 10))
    assert device.memory("cuda") == (8, 10)


def test_outcomes_and_waits_are_counted(running):
    counted = {"kind": "capture", "outcome": "released"}
    before = value("flashcards_attempts_total", **counted) or 0.0
    running.ended("released")
    assert value("flashcards_attempts_total", **counted) == before + 1
    assert value("flashcards_queue_wait_seconds_bucket", queue="cpu", le="5.0") >= 1
