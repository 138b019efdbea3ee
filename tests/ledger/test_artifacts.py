from ledger import artifacts, lifecycle
from ledger.artifacts import Product
from ledger.store import Kept


def test_the_last_two_resume_points_are_kept(db, queue_job):
    held = lifecycle.claim(db, "cpu", "worker_a", 60, queue_job())
    for step in (10, 20, 30):
        point = Product(f"{step:08d}.safetensors", "application/octet-stream", Kept(f"{step:064d}", 5))
        with db.write() as session:
            artifacts.record_resume_point(session, held.job_id, held.attempt, point)
    with db.read() as session:
        assert [row.name[:8] for row in artifacts.resume_points(session, held.job_id)] == ["00000030", "00000020"]


def test_a_later_attempt_replaces_the_products_of_an_earlier(db, queue_job):
    job_id = queue_job()
    for attempt, names in ((1, ["partial.npy"]), (2, ["cards.npy", "sheet.png"])):
        products = [Product(name, "x/y", Kept(name.rjust(64, "0"), 1)) for name in names]
        with db.write() as session:
            artifacts.record_products(session, job_id, attempt, products)
    with db.read() as session:
        assert [row.name for row in artifacts.products_of(session, job_id)] == ["cards.npy", "sheet.png"]
