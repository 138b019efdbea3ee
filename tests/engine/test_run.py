import errno

import pytest

from engine.errors import DiskFull, EngineError, OutOfMemory
from engine.run import run


def test_a_full_disk_is_said_in_words(capture_work, report, never):
    work = capture_work()
    (work.out / "cards.npy").symlink_to("/dev/full")
    with pytest.raises(DiskFull, match="no room left"):
        run(work, report, never)


def test_a_full_disk_under_a_resume_point(train_work, report, never):
    work = train_work(resume_seconds=0)
    (work.out / "resume").mkdir()
    (work.out / "resume" / ".00000001.safetensors.tmp").symlink_to("/dev/full")
    with pytest.raises(DiskFull):
        run(work, report, never)


def raising(error: Exception):
    def stop() -> bool:
        raise error

    return stop


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes")]
)
def test_too_little_memory_is_said_in_words(capture_work, report, error):
    with pytest.raises(OutOfMemory, match="batch_size"):
        run(capture_work(), report, raising(error))


@pytest.mark.parametrize("error", [OSError(errno.EACCES, "not allowed"), RuntimeError("a defect")])
def test_a_defect_stays_a_defect(capture_work, report, error):
    with pytest.raises(type(error)) as raised:
        run(capture_work(), report, raising(error))
    assert raised.value is error


def test_every_error_has_a_type_of_its_own():
    kinds = EngineError.__subclasses__()
    assert len({kind.type for kind in kinds}) == len({kind.title for kind in kinds}) == len(kinds) > 5
