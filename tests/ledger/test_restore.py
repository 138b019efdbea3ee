"""A backup becomes an installation, or is refused in words."""

import pytest
from alembic import command
from backing import back_up, check, keep_file, restore, rewrite, rows_of
from keeping import has_bytes, keep_dataset, keep_model
from rows import fill_every_table
from sqlalchemy import MetaData, select, update

from ledger import events, lifecycle, schema, workers
from ledger.artifacts import record_resume_point, resume_points
from ledger.backup.record import LEFT_OUT
from ledger.backup.vault import open_to_read
from ledger.clock import now
from ledger.db import Database
from ledger.errors import BackupError
from ledger.migrate import alembic_config
from ledger.store import hash_file
from ledger.tables import DEFAULT_TENANT, Attempt, Idempotency, Job, Tenant, Worker


def test_a_running_job_goes_on_from_its_resume_point(db, store, empty, folder, queue_job, tmp_path):
    job_id = queue_job(timeout_seconds=1000)
    claim = lifecycle.claim(db, "cpu", "worker_1", 60)
    digest = keep_file(
        db, store, tmp_path, job_id, b"half-way", lambda session, file: record_resume_point(session, job_id, 1, file)
    )
    with db.write() as session:
        session.execute(update(Job).values(deadline=now() - 4000))
    back_up(db, store, folder)
    rewrite(folder, lambda manifest, lines: manifest.update(taken_at=manifest["taken_at"] - 5000) or lines)
    restore(folder, empty, tmp_path)
    with empty.db.read() as session:
        job, left = session.execute(select(Job, Job.deadline - now())).one()
        attempt = session.get_one(Attempt, (job_id, 1))
        assert (job.state, job.lease_until, job.worker_id, job.strikes) == ("queued", None, None, 0)
        assert 900 < left < 1000  # as much of its time as it had when the backup was taken
        assert (attempt.outcome, attempt.reason) == ("released", "the service was restored from a backup")
        assert [event.seq for event in events.after(session, job_id, 0)] == list(range(1, job.seq + 1))
        assert [point.digest for point in resume_points(session, job_id)] == [digest]
    assert lifecycle.claim(empty.db, "cpu", "worker_2", 60).attempt == claim.attempt + 1
    with db.read() as session:
        assert session.get_one(Job, job_id).state == "running"  # where it was backed up it runs on


def test_one_that_was_to_be_cancelled_is(db, store, empty, folder, queue_job, tmp_path):
    job_id = queue_job()
    lifecycle.claim(db, "cpu", "worker_1", 60)
    with db.write() as session:
        lifecycle.request_cancel(session, DEFAULT_TENANT, job_id)
    back_up(db, store, folder)
    restore(folder, empty, tmp_path)
    with empty.db.read() as session:
        assert session.get_one(Job, job_id).state == "cancelled"


def test_workers_and_requests_under_way_stay_where_they_are(db, store, empty, folder, tmp_path):
    workers.register(db, "cpu")
    with db.write() as session:
        common = {"tenant": DEFAULT_TENANT, "holder": "h", "locked_until": 0.0}
        session.add(Idempotency(key="under way", **common))
        session.add(Idempotency(key="answered", status=202, **common))
    back_up(db, store, folder)
    restore(folder, empty, tmp_path)
    with empty.db.read() as session:
        assert session.scalars(select(Idempotency.key)).all() == ["answered"]
        assert session.scalars(select(Worker)).all() == []


def test_a_backup_of_an_older_schema_is_brought_up_to_date(db, store, empty, folder, tmp_path):
    fill_every_table(db, store, tmp_path)
    back_up(db, store, folder)
    older = sorted(path.name[:4] for path in schema.VERSIONS.glob("[0-9]*.py"))[-2]
    known = columns_at(older, tmp_path)
    rewrite(folder, lambda manifest, lines: manifest.update(schema=older) or only(lines, known))
    before = rows_of(db)
    restore(folder, empty, tmp_path)
    after = rows_of(empty.db)
    assert schema.found(empty.db) == schema.newest()
    for table, columns in known.items():
        if table not in (*LEFT_OUT, "alembic_version"):
            kept = [[{name: row[name] for name in columns} for row in rows[table]] for rows in (before, after)]
            assert sorted(kept[0], key=str) == sorted(kept[1], key=str)


def columns_at(revision, tmp_path):
    db = Database(f"sqlite:///{tmp_path / 'older.db'}")
    with db.bind.execution_options(writing=True).begin() as connection:
        command.upgrade(alembic_config(connection), revision)
        metadata = MetaData()
        metadata.reflect(connection)
    db.close()
    return {table.name: list(table.columns.keys()) for table in metadata.tables.values()}


def only(lines, known):
    """Of these lines of a record, what a schema with these columns had."""
    kept: list[int] | None = None
    for line in lines:
        if isinstance(line, dict):
            there = known.get(line["table"])
            kept = None if there is None else [n for n, name in enumerate(line["columns"]) if name in there]
            if kept is not None:
                yield line | {"columns": [line["columns"][n] for n in kept]}
        elif kept is not None:
            yield [line[n] for n in kept]


@pytest.mark.parametrize("content", [b"", b"a text"])
def test_a_file_that_is_something_else(content, tmp_path):
    (tmp_path / "note.tar").write_bytes(content)
    with pytest.raises(BackupError, match="not a backup"):
        open_to_read(tmp_path / "note.tar")


@pytest.mark.parametrize("db", ["sqlite"], indirect=True)
class TestRefused:
    """And nothing is changed. What refuses is where it is restored to, PostgreSQL here."""

    @pytest.fixture
    def made(self, db, store, folder, tmp_path):
        keep_model(db, store, tmp_path, b"weights")
        back_up(db, store, folder)
        return folder

    def test_where_there_is_something_already(self, made, empty, tmp_path):
        schema.ensure_schema(empty.db)
        keep_model(empty.db, empty.store, tmp_path, b"other weights")
        before = rows_of(empty.db)
        with pytest.raises(BackupError, match=r"the database is not empty \(rows: blob 1, model 1\)"):
            restore(made, empty, tmp_path)
        assert rows_of(empty.db) == before

    def test_another_tenant_is_something(self, made, empty, tmp_path):
        schema.ensure_schema(empty.db)
        with empty.db.write() as session:
            session.add(Tenant(id="alice"))
        with pytest.raises(BackupError, match="rows: tenant 1"):
            restore(made, empty, tmp_path)

    def test_tables_without_rows_are_not(self, made, empty, tmp_path):
        schema.ensure_schema(empty.db)
        restore(made, empty, tmp_path)
        assert len(rows_of(empty.db)["model"]) == 1

    def test_where_a_worker_lives(self, made, empty, tmp_path):
        schema.ensure_schema(empty.db)
        workers.register(empty.db, "cpu")
        with pytest.raises(BackupError, match="the service runs there, with 1 live workers"):
            restore(made, empty, tmp_path)

    def test_a_backup_from_the_future(self, made, empty, tmp_path):
        rewrite(made, lambda manifest, lines: manifest.update(schema="9999") or lines)
        with pytest.raises(BackupError, match=r"with schema 9999, and this program knows \d+ at most"):
            restore(made, empty, tmp_path)
        assert schema.found(empty.db) is None

    def test_another_format(self, made):
        rewrite(made, lambda manifest, lines: manifest.update(format=2) or lines)
        with pytest.raises(BackupError, match="another format"):
            open_to_read(made)

    def test_a_store_that_others_use(self, made, empty, tmp_path):
        theirs = tmp_path / "theirs"
        theirs.write_bytes(b"of another installation")
        empty.store.put(DEFAULT_TENANT, hash_file(theirs).digest, theirs)
        with pytest.raises(BackupError, match=r"1 files that are not in the backup.*--keep-store"):
            restore(made, empty, tmp_path)
        restore(made, empty, tmp_path, keep_store=True)
        assert has_bytes(empty.store, hash_file(theirs).digest)

    def test_a_record_that_was_changed(self, made, empty, tmp_path):
        (path,) = made.glob("record-*")
        path.write_bytes(path.read_bytes()[:-1] + b"?")
        for verb in (lambda: check(made, tmp_path), lambda: restore(made, empty, tmp_path)):
            with pytest.raises(BackupError, match="the record of the backup is damaged"):
                verb()

    def test_a_file_that_was_changed(self, made, empty, tmp_path):
        (path,) = made.glob("files/*/*")
        path.write_bytes(b"WEIGHTS")
        for verb in (lambda: check(made, tmp_path), lambda: restore(made, empty, tmp_path)):
            with pytest.raises(BackupError, match=rf"damaged: files/default/{path.name}"):
                verb()
        assert schema.found(empty.db) is None

    def test_a_file_that_is_missing(self, made, empty, tmp_path):
        (path,) = made.glob("files/*/*")
        path.unlink()
        with pytest.raises(BackupError, match=rf"not whole: it has no files/default/{path.name}"):
            restore(made, empty, tmp_path)

    def test_a_record_that_does_not_go_with_its_schema(self, made, empty, tmp_path):
        rewrite(made, lambda _, lines: [*lines, {"table": "users", "columns": ["name"]}, ["mallory"]])
        with pytest.raises(BackupError, match="does not go with its schema: it has users"):
            restore(made, empty, tmp_path)
        assert schema.found(empty.db) is None

    def test_half_a_tar(self, db, store, tmp_path):
        keep_model(db, store, tmp_path, b"weights" * 1000)
        path = tmp_path / "backup.tar"
        back_up(db, store, path)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 3])
        with pytest.raises(BackupError, match="not a backup"):
            open_to_read(path)

    def test_a_database_that_is_not_ours_or_not_of_today(self, db, store, empty, folder):
        with pytest.raises(BackupError, match="there is nothing to back up"):
            back_up(empty.db, store, folder)
        with db.bind.execution_options(writing=True).begin() as connection:
            command.downgrade(alembic_config(connection), "-1")
        with pytest.raises(BackupError, match=rf"and this program at {schema.newest()}"):
            back_up(db, store, folder)


def test_what_a_broken_off_restore_has_put_is_used(db, store, empty, folder, tmp_path, monkeypatch):
    _, first = keep_model(db, store, tmp_path, b"first")
    _, second = keep_dataset(db, store, tmp_path, b"second")
    back_up(db, store, folder)
    empty.store.put(DEFAULT_TENANT, first, folder / "files" / DEFAULT_TENANT / first)
    put, written = empty.store.put, []
    monkeypatch.setattr(
        empty.store, "put", lambda tenant, digest, path: written.append(digest) or put(tenant, digest, path)
    )
    restore(folder, empty, tmp_path)
    assert written == [second]
