"""Runs one attempt: stage the inputs, give them to a runner, keep the lease, heed cancel and deadline, settle."""

import queue
import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TypeVar

import structlog
from pydantic import ValidationError
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError
from sqlalchemy.orm import Session
from structlog.contextvars import bound_contextvars

from flashcards.contract.resources import Failure
from flashcards.contract.specs import MAX_SHARDS
from ledger import artifacts, blobs, events, jobs, lifecycle, outcomes, parents, retention, shards, turns
from ledger.artifacts import Product
from ledger.blobs import Collected
from ledger.errors import StoreAway
from ledger.jobs import Reports
from ledger.lifecycle import Claim, Pulse
from worker import reasons, spans, staging, telemetry
from worker.child import Child, LogLine
from worker.errors import CannotBegin
from worker.holding import ClaimLost, Holding, NoStore
from worker.messages import (
    FileMade,
    Last,
    Said,
    SaidDone,
    SaidFailed,
    SaidNote,
    SaidProgress,
    SaidResumePoint,
    SaidSplit,
    SaidStage,
)
from worker.station import Station

TICK_SECONDS = 0.1
LOOK_SECONDS = 0.5  # between two looks at the cancel column, and two writes of progress
LOG_LINES_KEPT = 2000
CANCELLED, CLOSING = "cancelled by the user", "its worker is closing"

log = structlog.get_logger()


@dataclass
class Watch:
    """What the supervisor knows of the attempt while it runs."""

    reports: Reports = field(default_factory=Reports)
    last: Last | None = None
    stop_reason: str | None = None
    kill_at: float = 0.0
    looked_at: float = 0.0
    renewed_at: float = field(default_factory=time.monotonic)
    log_lines: int = 0
    showed_life: bool = False
    outcome: str = "unsettled"


REFUSED = (DataError, IntegrityError)  # the database is there, and will say the same again

Verb = Callable[[Session], bool]
Done = TypeVar("Done")


def supervise(station: Station, claim: Claim) -> None:
    Attempt(station, claim).run()
    retention.sweep(station.db, station.store)  # the attempt's own copies have gone with its folder
    try:
        for job_id, queue in _following(station, claim):
            station.doorbell.ring(job_id, queue)
    except DBAPIError as error:
        log.warning("following.database_away", error=str(error.orig))


def _following(station: Station, claim: Claim) -> list[tuple[str, str]]:
    """We go on to what waits longest in our queue; the learner's next task may lie in another, or wait for long, and
    the shards of a capture that was split are for others too."""
    learner_id = claim.spec.get("learner")
    if learner_id is None and claim.spec["kind"] != "capture":
        return []
    with station.db.read() as session:
        if learner_id is None:
            return parents.to_ring_for(session, claim.job_id, MAX_SHARDS)
        following = turns.following(session, learner_id)
    return [] if following is None else [following]


class Attempt:
    def __init__(self, station: Station, claim: Claim) -> None:
        self.station = station
        self.claim = claim
        self.folder = station.folder / f"{claim.job_id}-{claim.attempt}"
        self.watch = Watch()
        self.figures = telemetry.Running(claim, station.settings.queue)
        self.spans = spans.spans_of(station.provider, claim, station.settings.queue)

    def run(self) -> None:
        with bound_contextvars(job=self.claim.job_id, attempt=self.claim.attempt, **self.spans.ids()):
            try:
                self._run_logged()
            finally:
                self.figures.ended(self.watch.outcome)
                self.spans.end(self.watch.outcome)

    def _run_logged(self) -> None:
        log.info("attempt.started", kind=self.claim.spec["kind"], waited_seconds=round(self.claim.waited_seconds, 3))
        try:
            self._run()
        except ClaimLost:
            telemetry.claims_lost.inc()
            log.warning("attempt.claim_lost")
        except DBAPIError as error:
            # Unsettled: the lease lapses, and another attempt starts from the last resume point.
            log.error("attempt.database_away", error=str(error.orig))
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self) -> None:
        try:
            if self.claim.spec["kind"] == "noop":
                self._do_nothing()
            else:
                self._run_child()
        except Exception as defect:
            if isinstance(defect, ClaimLost | DBAPIError) and not isinstance(defect, REFUSED):
                raise
            # Left alone it would hold its lease to the end, and then be said to have had no worker.
            log.error("attempt.defect", exc_info=defect)
            self._fail(reasons.defect(defect))

    def _do_nothing(self) -> None:
        """A job without a runner: what is left is the cost of queue and record."""
        log.info("noop.ran")
        result = {"worker": self.station.worker_id}
        self._write("succeeded", lambda session: outcomes.succeed(session, self.claim, result, []))

    def _run_child(self) -> None:
        try:
            with self.spans.stage("stage inputs"):
                assignment = self._hold(lambda: staging.stage(self.station, self.claim, self.folder))
        except CannotBegin as why:
            self._fail(Failure(type=why.type, title=why.title, detail=why.detail))
            return
        except NoStore as none:
            self._do_without_store(none.reason)
            return
        except OSError as error:
            self._fail(reasons.of_files(error))
            return
        child = self.station.parent.bear()
        try:
            with self.spans.stage("run"):
                child.assign(assignment.model_copy(update={"traced": self.spans.are_wanted}))
                code = self._watch(child)
        finally:
            child.close()
            self.station.parent.prepare()
        self._settle(code)

    # While it runs

    def _watch(self, child: Child) -> int:
        """Until the runner has exited. Raises ClaimLost when it must be gone at once."""
        while (code := child.exit_code()) is None or not child.heard.empty():
            self._hear(child)
            now = time.monotonic()
            if self.station.draining.is_set():
                self._stop(child, "drain")
            if now - self.watch.looked_at >= LOOK_SECONDS:
                self.watch.looked_at = now
                self._look(child)
            if self.watch.stop_reason and now >= self.watch.kill_at:
                child.kill()
        self._record()
        return code

    def _hear(self, child: Child) -> None:
        deadline = time.monotonic() + TICK_SECONDS
        while (wait := deadline - time.monotonic()) > 0:
            try:
                self._note(child.heard.get(timeout=wait))
            except queue.Empty:
                return

    def _note(self, message: Said | LogLine) -> None:
        reports = self.watch.reports
        match message:
            case LogLine():
                self._note_log(message)
            case SaidProgress():
                if not self.watch.showed_life:
                    self.watch.showed_life, self.watch.looked_at = (
                        True,
                        0.0,
                    )  # the first sign of life is written at once
                self.figures.heard(message)
                reports.progress = message.progress.model_dump(mode="json", exclude_none=True)
                reports.metrics.extend(message.metrics)
            case SaidStage():
                self.spans.heard(message)
            case SaidNote():
                reports.entries.append(("note", {"text": message.text}))
            case SaidResumePoint():
                self._keep_resume_point(message)
            case _:
                self.watch.last = message

    def _note_log(self, line: str) -> None:
        self.watch.log_lines += 1
        if self.watch.log_lines <= LOG_LINES_KEPT:
            self.watch.reports.entries.append(("log", {"line": line}))
        elif self.watch.log_lines == LOG_LINES_KEPT + 1:
            self.watch.reports.entries.append(("note", {"text": "the log is long: the rest of it is not kept"}))

    def _look(self, child: Child) -> None:
        pulse = self._record()
        if pulse and pulse.cancel_requested:
            self._stop(child, "cancel")
        elif pulse and pulse.overdue:
            self._stop(child, "deadline")

    def _record(self) -> Pulse | None:
        """Write down what was heard and renew the lease. With the database away, wait until the lease has lapsed."""
        reports, self.watch.reports = self.watch.reports, Reports()
        lease = self.station.settings.lease_seconds
        asked_at = time.monotonic()
        try:
            pulse = jobs.record(self.station.db, self.claim, lease, reports)
        except REFUSED:
            raise
        except DBAPIError as error:
            if asked_at - self.watch.renewed_at > lease:
                raise ClaimLost from error
            self.watch.reports = _join(reports, self.watch.reports)
            return None
        if pulse is None:
            raise ClaimLost
        self.watch.renewed_at = asked_at
        return pulse

    def _stop(self, child: Child, reason: str) -> None:
        if self.watch.stop_reason is None:
            self.watch.stop_reason = reason
            self.watch.kill_at = time.monotonic() + self.station.settings.cancel_grace_seconds
            child.ask_to_stop()

    def _keep_resume_point(self, message: SaidResumePoint) -> None:
        """It counts once it is in the store, and clears the strikes: a job that gets on is unlucky, not poison."""
        files = [FileMade(name=message.file, media_type="application/octet-stream")]
        try:
            folder = self.folder / "out" / "resume"
            (point,) = self._hold(lambda: staging.keep(self.station, self.claim, folder, files), patience_seconds=0)
            with self._referring([point]) as session:
                entry = ("resume_point", {"step": message.step})
                mine = lifecycle.mine(self.claim)
                if not events.append(session, self.claim.job_id, [entry], *mine, strikes=0):
                    raise ClaimLost
                artifacts.record_resume_point(session, self.claim.job_id, self.claim.attempt, point)
        except (OSError, NoStore, StoreAway, Collected, DBAPIError) as error:
            log.warning("attempt.resume_point_not_kept", error=str(error))

    # When it has ended

    def _settle(self, code: int) -> None:
        last = self.watch.last
        if isinstance(last, SaidDone):
            self._succeed(last)
        elif isinstance(last, SaidSplit):
            self._write("split", lambda session: shards.split(session, self.claim, last.split))
        elif isinstance(last, SaidFailed):
            self._end("failed", last.files, error=last.error.model_dump())
        elif self.watch.stop_reason == "cancel":
            self._end("cancelled", last.files if last else [], reason=CANCELLED)
        elif self.watch.stop_reason == "deadline":
            self._end("failed", last.files if last else [], error=reasons.overdue(self.claim).model_dump())
        elif self.watch.stop_reason == "drain":
            self._write("released", lambda session: lifecycle.release(session, self.claim, CLOSING))
        elif code == 0:
            self._fail(reasons.no_last_word())
        else:
            self._lose(code)

    def _succeed(self, last: SaidDone) -> None:
        products = self._keep(last.files)
        if products is None:
            return

        def verb(session: Session) -> bool:
            return outcomes.succeed(session, self.claim, last.result, products)

        try:
            self._write("succeeded", verb, products)
        except (ValidationError, KeyError) as odd:
            log.error("attempt.unfit_result", exc_info=odd)
            self._fail(reasons.unfit_result(odd), products)

    def _end(self, state: str, files: list[FileMade], **what: object) -> None:
        products = self._keep(files)
        if products is not None:
            self._write(state, lambda session: outcomes.end(session, self.claim, state, products, **what), products)

    def _keep(self, files: list[FileMade]) -> list[Product] | None:
        """What is not kept goes at once: on a full disk the record needs the room to say so."""
        try:
            with self.spans.stage("keep files"):
                products = self._hold(lambda: staging.keep(self.station, self.claim, self.folder / "out", files))
        except NoStore as none:
            self._do_without_store(none.reason or self.watch.stop_reason)
            return None
        except OSError as error:
            shutil.rmtree(self.folder, ignore_errors=True)
            self._fail(reasons.of_files(error))
            return None
        shutil.rmtree(self.folder, ignore_errors=True)
        return products

    def _hold(self, work: Callable[[], Done], patience_seconds: float | None = None) -> Done:
        """Do this while the lease is renewed."""
        patience = self.station.settings.store_patience_seconds if patience_seconds is None else patience_seconds
        with Holding(self.station, self.claim, self.watch.renewed_at) as holding:
            try:
                return holding.patiently(work, patience)
            finally:
                self.watch.renewed_at = holding.renewed_at

    def _referring(self, products: Iterable[Product]) -> AbstractContextManager[Session]:
        kept = [product.kept for product in products]
        return blobs.referring(self.station.db, self.station.store, self.claim.tenant, kept)

    def _do_without_store(self, reason: str | None) -> None:
        """Nothing of what it made can be kept, so only how it ended is written down."""
        if reason == "drain":
            self._write("released", lambda session: lifecycle.release(session, self.claim, CLOSING))
        elif reason == "cancel":
            self._write(
                "cancelled", lambda session: outcomes.end(session, self.claim, "cancelled", [], reason=CANCELLED)
            )
        elif reason == "deadline":
            self._fail(reasons.overdue(self.claim))
        else:
            self._fail(reasons.no_store())

    def _fail(self, why: Failure, products: Iterable[Product] = ()) -> None:
        error, kept = why.model_dump(), list(products)
        self._write("failed", lambda session: outcomes.end(session, self.claim, "failed", kept, error=error), kept)

    def _lose(self, code: int) -> None:
        reason = f"the runner was killed by signal {-code}" if code < 0 else f"the runner exited with code {code}"
        if code == -9:
            reason += " (out of memory, or killed by hand)"
        self._lose_to(reason)

    def _lose_to(self, reason: str) -> None:
        job_id, attempt = self.claim.job_id, self.claim.attempt
        self._write("lost", lambda session: lifecycle.lose(session, job_id, attempt, reason))

    def _write(self, outcome: str, verb: Verb, products: Iterable[Product] = ()) -> None:
        with self.spans.stage("settle"):
            self._settle_as(outcome, verb, products)

    def _settle_as(self, outcome: str, verb: Verb, products: Iterable[Product]) -> None:
        """One transaction; with database or store away, again and again until the lease has surely lapsed."""
        while True:
            try:
                with self._referring(products) as session:
                    if not verb(session):
                        raise ClaimLost
            except Collected:
                self._lose_to("its files were collected before they were on record")
                return
            except REFUSED:
                raise
            except (DBAPIError, StoreAway) as error:
                if time.monotonic() - self.watch.renewed_at > self.station.settings.lease_seconds:
                    raise ClaimLost from error
                time.sleep(1)
                continue
            self.watch.outcome = outcome
            stopped_for = self.watch.stop_reason
            log.info("attempt.ended", outcome=outcome, last=type(self.watch.last).__name__, stopped_for=stopped_for)
            return


def _join(earlier: Reports, later: Reports) -> Reports:
    return Reports(
        entries=earlier.entries + later.entries,
        progress=later.progress or earlier.progress,
        metrics=earlier.metrics + later.metrics,
    )
