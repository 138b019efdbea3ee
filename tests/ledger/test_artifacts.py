import pytest

from ledger import artifacts, lifecycle
from ledger.artifacts import Kept, Product, Store
from ledger.tables import DEFAULT_TENANT


@pytest.fixture
def store(tmp_path):
    return Store(f"file://{tmp_path / 'a store with spaces'}".replace(" ", "%20"))


def keep(store, tmp_path, content: bytes) -> Kept:
    path = tmp_path / "made"
    path.write_bytes(content)
    kept = artifacts.hash_file(path)
    store.keep("default", kept.digest, path)
    assert not path.exists()
    return kept


def test_what_is_kept_can_be_read_in_parts_and_fetched(store, tmp_path):
    kept = keep(store, tmp_path, b"0123456789")
    assert store.read("default", kept.digest, 3, 4) == b"3456"
    assert store.size("default", kept.digest) == 10
    store.fetch("default", kept.digest, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"0123456789"


def test_the_same_bytes_twice_are_one_file(store, tmp_path):
    assert keep(store, tmp_path, b"same") == keep(store, tmp_path, b"same")


def test_what_is_not_there_says_so(store, tmp_path):
    with pytest.raises(FileNotFoundError):
        store.size("default", "0" * 64)
    with pytest.raises(FileNotFoundError):
        store.fetch("default", "0" * 64, tmp_path / "copy")


def test_another_tenant_does_not_see_it(store, tmp_path):
    kept = keep(store, tmp_path, b"mine")
    with pytest.raises(FileNotFoundError):
        store.size("somebody", kept.digest)


def test_the_last_two_resume_points_are_kept(db, queue_job):
    held = lifecycle.claim(db, "cpu", "worker_a", 60, queue_job())
    for step in (10, 20, 30):
        point = Product(f"{step:08d}.safetensors", "application/octet-stream", Kept(f"{step:064d}", 5))
        with db.write() as session:
            artifacts.record_resume_point(session, DEFAULT_TENANT, held.job_id, held.attempt, point)
    with db.read() as session:
        assert [row.name[:8] for row in artifacts.resume_points(session, held.job_id)] == ["00000030", "00000020"]


def test_a_later_attempt_replaces_the_products_of_an_earlier(db, queue_job):
    job_id = queue_job()
    for attempt, names in ((1, ["partial.npy"]), (2, ["cards.npy", "sheet.png"])):
        products = [Product(name, "x/y", Kept(name.rjust(64, "0"), 1)) for name in names]
        with db.write() as session:
            artifacts.record_products(session, DEFAULT_TENANT, job_id, attempt, products)
    with db.read() as session:
        assert [row.name for row in artifacts.products_of(session, job_id)] == ["cards.npy", "sheet.png"]
