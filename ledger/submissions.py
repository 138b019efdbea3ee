"""What comes of a message on the queue: a job, or a rejection on record. Under one id it is one answer for good.

The row of the submission, the job and the answer are one transaction, and the message is let go after it. A message
that is read twice finds the row, and nothing is done again.
"""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import delete, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from flashcards.contract.resources import Problem
from flashcards.contract.specs import job_spec
from flashcards.contract.submissions import Refusal, SubmissionId, Submit
from ledger import announcements, problems, queueing
from ledger.clock import as_datetime, now
from ledger.db import Database
from ledger.envelope import Letter, Unreadable
from ledger.errors import LedgerError, NotFound
from ledger.ids import new_id
from ledger.keys import BadKey, Keyring, Principal
from ledger.settings import Settings
from ledger.summaries import job_summary
from ledger.tables import Job, Submission

CONFLICTS_KEPT = ERRORS_KEPT = 10
WORD_LENGTH, SENTENCE_LENGTH = 100, 500
_id: TypeAdapter[str] = TypeAdapter(SubmissionId)


class Rejected(Exception):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


@dataclass
class Receipt:
    """What came of it, for the log, and whom to ring for."""

    key: str
    job_id: str | None = None
    problem: Problem | None = None
    rings: list[tuple[str, str]] = field(default_factory=list)


def receive(db: Database, settings: Settings, keyring: Keyring | None, letter: Letter) -> Receipt:
    """Raises Unreadable where there is no id to record anything under."""
    try:
        key = _id.validate_python(letter.id)
    except ValidationError as error:
        raise Unreadable(f"its id cannot be one: {error.errors()[0]['msg']}") from None
    try:
        principal = _principal(keyring, letter.token)
    except Rejected as rejected:
        return _turn_away(db, settings, key, letter, rejected.problem)
    with db.write() as session:
        row = _reserve(db, session, principal.tenant, key, _fingerprint(letter))
        if row is None:
            return _again(session, settings, principal.tenant, key, letter)
        return _first(session, settings, principal, row, letter)


def find(session: Session, tenant: str, key: str, sees_nobodys: bool = False) -> Submission:
    """`sees_nobodys`: of messages that came without a key that is good, the last of that id."""
    row = session.scalar(select(Submission).where(Submission.tenant == tenant, Submission.key == key))
    if row is None and sees_nobodys:
        nobodys = select(Submission).where(Submission.tenant.is_(None), Submission.key == key)
        row = session.scalar(nobodys.order_by(Submission.id.desc()).limit(1))
    if row is None:
        raise NotFound("submission", key)
    return row


def forget(db: Database, after_days: float, nobodys_after_hours: float) -> None:
    with db.write() as session:
        session.execute(delete(Submission).where(Submission.created_at < now() - after_days * 86400))
        nobodys = (Submission.tenant.is_(None), Submission.created_at < now() - nobodys_after_hours * 3600)
        session.execute(delete(Submission).where(*nobodys))


def _principal(keyring: Keyring | None, token: str | None) -> Principal:
    if keyring is None:
        return Principal()
    if token is None:
        raise Rejected(problems.problem(401, "unauthorized", "A key is needed", "send your key as `token`"))
    try:
        principal = keyring.recognise(token)
    except BadKey as bad:
        raise Rejected(problems.problem(401, "unauthorized", "A key is needed", str(bad))) from None
    if "write" not in principal.scopes:
        has = ", ".join(sorted(principal.scopes))
        detail = f"this takes a key with the scope write, and yours has {has}"
        raise Rejected(problems.problem(403, "scope", "This key does not open that", detail))
    return principal


def _turn_away(db: Database, settings: Settings, key: str, letter: Letter, problem: Problem) -> Receipt:
    """Nobody's: what comes without a key must not take an id away from those who have one."""
    values = {"key": key, "fingerprint": "", "problem": problem.model_dump(mode="json", exclude_none=True)}
    with db.write() as session:
        session.add(Submission(id=new_id("submission"), **values))
        _reply(session, settings, letter, key, problem=problem)
    return Receipt(key, problem=problem)


def _reserve(db: Database, session: Session, tenant: str, key: str, fingerprint: str) -> Submission | None:
    """Of two messages with one id the second waits here for the first. None: the id was there before."""
    insert = (sqlite if db.is_sqlite else postgresql).insert
    values = {"id": new_id("submission"), "tenant": tenant, "key": key, "fingerprint": fingerprint, "conflicts": []}
    added = insert(Submission).values(values).on_conflict_do_nothing().returning(Submission.id)
    id = session.scalar(added)
    return None if id is None else session.get_one(Submission, id)


def _first(session: Session, settings: Settings, principal: Principal, row: Submission, letter: Letter) -> Receipt:
    try:
        with session.begin_nested():
            job = _queue(session, settings, principal, letter)
    except Rejected as rejected:
        row.problem = rejected.problem.model_dump(mode="json", exclude_none=True)
        _reply(session, settings, letter, row.key, problem=rejected.problem)
        return Receipt(row.key, problem=rejected.problem)
    row.job_id = job.id
    _reply(session, settings, letter, row.key, job=job)
    return Receipt(row.key, job.id, rings=queueing.to_ring_for(session, job))


def _queue(session: Session, settings: Settings, principal: Principal, letter: Letter) -> Job:
    if letter.trouble is not None:
        raise Rejected(problems.problem(422, "invalid", problems.NO_SENSE, letter.trouble))
    try:
        asked = Submit.model_validate(letter.fields)
        if asked.reply_to is not None:
            announcements.check_queue(settings, asked.reply_to, "reply_to")
    except ValidationError as error:
        raise Rejected(problems.of_fields(_without_input(error))) from None
    except LedgerError as error:
        raise Rejected(problems.of(error, "message")) from None
    try:
        return queueing.queue(session, settings, principal, job_spec.validate_python(asked.job))
    except ValidationError as error:
        raise Rejected(problems.of_fields(_without_input(error), ("job",))) from None
    except LedgerError as error:
        raise Rejected(problems.of(error, "job")) from None


def _again(session: Session, settings: Settings, tenant: str, key: str, letter: Letter) -> Receipt:
    """The same answer to the same body; another body is refused, and that is written down too."""
    theirs = select(Submission).where(Submission.tenant == tenant, Submission.key == key)
    row = session.scalars(theirs.with_for_update()).one()
    if row.fingerprint == _fingerprint(letter):
        problem = None if row.problem is None else Problem.model_validate(row.problem)
        job = None if row.job_id is None else session.get(Job, row.job_id)
        _reply(session, settings, letter, key, job=job, problem=problem)
        waits = job is not None and job.state in ("queued", "waiting")  # who took it in may have died before it rang
        return Receipt(key, row.job_id, problem, queueing.to_ring_for(session, job) if job and waits else [])
    detail = "the same id came before with another body; take a new id"
    problem = problems.problem(409, "submission-id-reused", "This id belongs to another submission", detail)
    refusal = Refusal(problem=problem, at=as_datetime(session.scalars(select(now())).one()))
    row.conflicts = [*row.conflicts, refusal.model_dump(mode="json", exclude_none=True)][-CONFLICTS_KEPT:]
    _reply(session, settings, letter, key, problem=problem)
    return Receipt(key, problem=problem)


def _reply(
    session: Session,
    settings: Settings,
    letter: Letter,
    key: str,
    job: Job | None = None,
    problem: Problem | None = None,
) -> None:
    """Where the message says, if it says so in a way that can be heeded."""
    try:
        queue = Submit.model_validate({"id": key, "job": {}, "reply_to": letter.fields.get("reply_to")}).reply_to
        if queue is None:
            return
        announcements.check_queue(settings, queue)
    except (ValidationError, LedgerError):
        return
    event = "submission.accepted" if problem is None else "submission.rejected"
    announcements.write(session, queue, event, key, None if job is None else job_summary(job), problem)


def _fingerprint(letter: Letter) -> str:
    """What makes two messages the same: all but who sends them, whose key may be renewed in between."""
    said = {name: value for name, value in letter.fields.items() if name not in ("id", "token")}
    text = json.dumps([said, letter.trouble is not None], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _without_input(error: ValidationError) -> list[dict[str, Any]]:
    """Some of them, in short: names and tags are the sender's, and may be as long as a message."""
    found = error.errors(include_url=False, include_input=False, include_context=False)[:ERRORS_KEPT]
    return [
        {"loc": [str(part)[:WORD_LENGTH] for part in entry["loc"]], "msg": entry["msg"][:SENTENCE_LENGTH]}
        for entry in found
    ]
