import threading

import pytest
from kombu import Connection

from ledger.broker import celery_config
from ledger.doorbell import Doorbell
from ledger.settings import Settings


@pytest.fixture
def settings(tmp_path):
    return Settings(home=tmp_path)


def receive(settings, count, queue="cpu"):
    options = celery_config(settings)["broker_transport_options"]
    with Connection(settings.broker, transport_options=options) as connection:
        simple = connection.SimpleQueue(queue)
        found = [simple.get(block=False) for _ in range(count)]
        for message in found:
            message.ack()
        assert simple.qsize() == 0
        simple.close()
        return [message.payload[0][0] for message in found]


def test_rings_are_heard_in_order_and_once(settings):
    bell = Doorbell(settings)
    for number in range(5):
        assert bell.ring(f"job_{number}", "cpu")
    assert receive(settings, 5) == [f"job_{number}" for number in range(5)]


def test_queues_do_not_mix(settings):
    bell = Doorbell(settings)
    bell.ring("job_cpu", "cpu")
    bell.ring("job_gpu", "gpu")
    assert receive(settings, 1, "gpu") == ["job_gpu"]
    assert receive(settings, 1, "cpu") == ["job_cpu"]


@pytest.mark.parametrize("rubbish", [b"", b"{", b"\xff\xfe\x00", b"not json"])
def test_a_corrupt_message_is_skipped(settings, rubbish):
    folder = settings.broker_folder / "cpu"
    folder.mkdir(parents=True)
    (folder / "00000000000000000000-first.msg").write_bytes(rubbish)
    Doorbell(settings).ring("job_good", "cpu")
    assert receive(settings, 1) == ["job_good"]


def test_a_half_written_message_is_not_seen(settings):
    folder = settings.broker_folder / "cpu"
    folder.mkdir(parents=True)
    (folder / ".00000000000000000000-draft.msg.tmp").write_bytes(b"{")
    Doorbell(settings).ring("job_good", "cpu")
    assert receive(settings, 1) == ["job_good"]


def test_many_threads_ring_at_once(settings):
    bell = Doorbell(settings)
    threads = [threading.Thread(target=bell.ring, args=(f"job_{n:02d}", "cpu")) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(receive(settings, 20)) == [f"job_{n:02d}" for n in range(20)]


def test_a_bell_that_cannot_ring_says_so_and_does_not_raise(tmp_path):
    (tmp_path / "broker").write_text("a file where the folder should be")
    assert not Doorbell(Settings(home=tmp_path)).ring("job_x", "cpu")
