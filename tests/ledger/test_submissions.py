import json
import threading
from dataclasses import replace

import pytest
from sqlalchemy import func, select, update

from flashcards.contract import tokens
from ledger import announcements, submissions
from ledger.clock import now
from ledger.envelope import Unreadable, unfold
from ledger.errors import NotFound
from ledger.keys import Keyring
from ledger.settings import Settings
from ledger.tables import DEFAULT_TENANT, Announcement, Job, Submission

NOOP = {"kind": "noop"}


@pytest.fixture
def settings(tmp_path):
    return Settings(home=tmp_path)


@pytest.fixture
def keyring(db):
    return Keyring(db, "a secret of the tests" * 2)


@pytest.fixture
def key(db, keyring):
    """Makes keys, with the tenants that they are for."""

    def key(tenant: str = "alice", scopes=("read", "write"), **values) -> str:
        token = tokens.new_token()
        with db.write() as session:
            keyring.add(session, tenant, token, name="test", scopes=list(scopes), **{"retain_data": True, **values})
        return token

    return key


@pytest.fixture
def send(db, settings):
    def send(keyring=None, **fields):
        return submissions.receive(db, settings, keyring, unfold(json.dumps(fields).encode(), 1024**2))

    return send


def row(db, key: str, tenant: str | None = DEFAULT_TENANT) -> Submission:
    with db.read() as session:
        theirs = Submission.tenant.is_(None) if tenant is None else Submission.tenant == tenant
        return session.scalars(select(Submission).where(theirs, Submission.key == key)).one()


def count(db, table=Job) -> int:
    with db.read() as session:
        return session.scalar(select(func.count()).select_from(table))


def said(db) -> list[tuple[str, str, dict]]:
    with db.read() as session:
        rows = session.scalars(select(Announcement).order_by(Announcement.id))
        return [(each.queue, each.body["event"], each.body) for each in rows]


class TestAccepted:
    def test_it_becomes_a_job_and_says_whom_to_ring_for(self, db, send):
        receipt = send(id="a", job={**NOOP, "labels": {"line": "7"}})
        with db.read() as session:
            job = session.get_one(Job, receipt.job_id)
        assert (job.state, job.kind, job.labels, job.tenant) == ("queued", "noop", {"line": "7"}, DEFAULT_TENANT)
        assert receipt.rings == [(job.id, "cpu")]
        assert (row(db, "a").job_id, row(db, "a").problem) == (job.id, None)

    def test_the_same_again_is_the_same_answer(self, db, send):
        first, second = send(id="a", job=NOOP), send(id="a", job=NOOP)
        assert (second.job_id, count(db)) == (first.job_id, 1)
        assert row(db, "a").conflicts == []

    def test_many_at_once_with_one_id_are_one_job(self, db, send):
        threads = [threading.Thread(target=send, kwargs={"id": "a", "job": NOOP}) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (count(db), count(db, Submission)) == (1, 1)

    def test_the_order_of_fields_does_not_make_another_body(self, db, send):
        send(id="a", job={"kind": "noop", "max_attempts": 2})
        assert send(id="a", job={"max_attempts": 2, "kind": "noop"}).problem is None

    def test_tenants_have_their_own_ids(self, db, send, keyring, key):
        alices = send(keyring, id="a", token=key("alice"), job=NOOP)
        bobs = send(keyring, id="a", token=key("bob"), job={**NOOP, "labels": {"of": "bob"}})
        assert alices.problem is bobs.problem is None
        assert alices.job_id != bobs.job_id

    def test_a_renewed_key_does_not_make_another_body(self, send, keyring, key):
        first, second = (send(keyring, id="a", token=key("alice"), job=NOOP) for _ in range(2))
        assert first.job_id == second.job_id is not None


class TestRejected:
    @pytest.mark.parametrize(
        ("fields", "words"),
        [
            ({"job": {"kind": "nap"}}, "nap"),
            ({"job": {**NOOP, "speed": "high"}}, "job.noop.speed"),
            ({"job": NOOP, "speed": "high"}, "speed: Extra inputs"),
            ({"job": [1]}, "job: "),
            ({}, "job: Field required"),
            ({"job": {"kind": "capture", "model": "model_" + "0" * 32}}, "there is no model"),
            ({"job": {**NOOP, "announce": "elsewhere"}}, "begins with 'results.'"),
            ({"job": NOOP, "reply_to": "elsewhere"}, "begins with 'results.'"),
            ({"job": NOOP, "reply_to": "../elsewhere"}, "reply_to: "),
            ({"job": {"kind": "\x00" * 5000}}, "Input tag"),
            ({"job": {**NOOP, "\x00" * 5000: 1}}, "Extra inputs"),
            ({"job": {**NOOP, "labels": {"a": "\ud800"}}}, "job.noop.labels"),
        ],
    )
    def test_in_words_and_on_record(self, db, send, fields, words):
        receipt = send(id="a", **fields)
        assert words in receipt.problem.detail
        assert len(receipt.problem.model_dump_json()) < 10_000
        assert (row(db, "a").job_id, row(db, "a").problem["detail"]) == (None, receipt.problem.detail)
        assert count(db) == 0

    def test_the_same_again_stays_rejected(self, db, send):
        model = {"kind": "capture", "model": "model_" + "0" * 32}
        assert send(id="a", job=model).problem == send(id="a", job=model).problem
        assert row(db, "a").conflicts == []

    def test_another_body_under_the_same_id_is_written_down_beside_the_first(self, db, send):
        first = send(id="a", job=NOOP)
        for n in range(12):
            other = send(id="a", job={**NOOP, "labels": {"n": str(n)}})
            assert (other.problem.status, other.job_id) == (409, None)
        kept = row(db, "a")
        assert (kept.job_id, kept.problem, len(kept.conflicts)) == (first.job_id, None, 10)
        assert kept.conflicts[0]["problem"]["type"] == "/problems/submission-id-reused"
        assert count(db) == 1

    def test_past_the_quota_of_the_key(self, send, keyring, key):
        token = key(max_unfinished_jobs=1)
        assert send(keyring, id="a", token=token, job=NOOP).problem is None
        assert send(keyring, id="b", token=token, job=NOOP).problem.status == 429

    @pytest.mark.parametrize("id", ["a b", "/", "a/b", "é", "a" * 129, "-a"])
    def test_an_id_that_no_path_takes_cannot_be_recorded_under(self, db, send, id):
        with pytest.raises(Unreadable):
            send(id=id, job=NOOP)
        assert count(db, Submission) == 0


class TestKeys:
    def test_without_a_token(self, db, send, keyring):
        receipt = send(keyring, id="a", job=NOOP)
        assert (receipt.problem.status, row(db, "a", None).problem["status"]) == (401, 401)

    @pytest.mark.parametrize("token", ["", "fc_nonsense", tokens.new_token()], ids=["none", "nonsense", "unknown"])
    def test_with_one_that_opens_nothing(self, send, keyring, token):
        assert send(keyring, id="a", token=token, job=NOOP).problem.status == 401

    def test_with_one_that_may_only_read(self, db, send, keyring, key):
        assert send(keyring, id="a", token=key(scopes=["read"]), job=NOOP).problem.status == 403
        assert count(db) == 0

    def test_the_token_is_kept_nowhere(self, db, send, keyring, key):
        token = key()
        send(keyring, id="a", token=token, job=NOOP)
        send(keyring, id="b", token=token, job={**NOOP, "token": token})
        with db.read() as session:
            kept = [vars(each) for each in session.scalars(select(Submission))]
        assert token not in repr(kept)

    def test_who_has_no_key_takes_no_id_away(self, db, send, keyring, key):
        for _ in range(2):
            send(keyring, id="a", job={"kind": "nap"})
        assert send(keyring, id="a", token=key(), job=NOOP).problem is None
        with db.read() as session:
            assert submissions.find(session, "alice", "a").job_id is not None
            assert submissions.find(session, DEFAULT_TENANT, "a", sees_nobodys=True).problem["status"] == 401
            with pytest.raises(NotFound):
                submissions.find(session, DEFAULT_TENANT, "a")


class TestReplies:
    def test_the_answer_is_said_where_the_message_says(self, db, send):
        receipt = send(id="a", job=NOOP, reply_to="results.mine")
        send(id="b", job={"kind": "nap"}, reply_to="results.mine")
        (accepted, rejected) = said(db)
        assert accepted[:2] == ("results.mine", "submission.accepted")
        assert (accepted[2]["submission"], accepted[2]["job"]["id"]) == ("a", receipt.job_id)
        assert rejected[:2] == ("results.mine", "submission.rejected")
        assert "nap" in rejected[2]["problem"]["detail"]

    def test_also_without_a_key(self, db, send, keyring):
        send(keyring, id="a", job=NOOP, reply_to="results.mine")
        assert [each[:2] for each in said(db)] == [("results.mine", "submission.rejected")]

    @pytest.mark.parametrize("queue", ["cpu", "flashcards.submit", "elsewhere", 7, {}])
    def test_but_not_on_any_queue(self, db, send, queue):
        send(id="a", job=NOOP, reply_to=queue)
        assert said(db) == []

    def test_nobody_may_speak_on_our_own_queues(self, settings):
        anywhere = settings.model_copy(update={"announce_prefix": ""})
        announcements.check_queue(anywhere, "elsewhere")
        for ours in ("cpu", "gpu", "flashcards.submit", "unacked"):
            with pytest.raises(announcements.Unfit):
                announcements.check_queue(anywhere, ours)


def test_a_transaction_that_fails_leaves_nothing(db, settings, send, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("in the middle")

    monkeypatch.setattr(submissions, "_reply", fail)
    with pytest.raises(RuntimeError):
        send(id="a", job=NOOP)
    assert (count(db), count(db, Submission)) == (0, 0)


def test_old_ones_are_forgotten_and_nobodys_sooner(db, send, keyring, key):
    send(keyring, id="nobodys", job=NOOP)
    send(keyring, id="alices", token=key(), job=NOOP)
    submissions.forget(db, after_days=30, nobodys_after_hours=24)
    assert count(db, Submission) == 2
    for days, left in ((2, 1), (31, 0)):
        with db.write() as session:
            session.execute(update(Submission).values(created_at=now() - days * 86400))
        submissions.forget(db, after_days=30, nobodys_after_hours=24)
        assert count(db, Submission) == left


def test_a_letter_in_trouble_is_rejected_under_its_id(db, settings):
    letter = unfold(json.dumps({"id": "a", "job": NOOP}).encode(), 1024)
    receipt = submissions.receive(db, settings, None, replace(letter, trouble="it was pickled"))
    assert receipt.problem.detail == "it was pickled"
