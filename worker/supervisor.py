"""Runs one attempt: stage the inputs, give them to a runner, keep the lease, heed cancel and deadline, settle."""

import errno
import queue
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from ledger import artifacts, events, jobs, lifecycle, outcomes
from ledger.artifacts import Product
from ledger.jobs import Reports
from ledger.lifecycle import Claim, Pulse
from worker import staging
from worker.child import Child, LogLine
from worker.messages import FileMade, Last, Said, SaidDone, SaidFailed, SaidNote, SaidProgress, SaidResumePoint
from worker.station import Station

TICK_SECONDS = 0.1
LOOK_SECONDS = 0.5  # between two looks at the cancel column, and two writes of progress
SPARE_DELAY_SECONDS = 0.5  # a new spare is prepared once the job is under way, not while it starts
LOG_LINES_KEPT = 2000

log = structlog.get_logger()


class ClaimLost(Exception):
    """Somebody else holds the job by now, or the lease has surely lapsed."""


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


Verb = Callable[[Session], bool]


def supervise(station: Station, claim: Claim) -> None:
    Attempt(station, claim).run()


class Attempt:
    def __init__(self, station: Station, claim: Claim) -> None:
        self.station = station
        self.claim = claim
        self.folder = station.folder / f"{claim.job_id}-{claim.attempt}"
        self.watch = Watch()
        self.log = log.bind(job=claim.job_id, attempt=claim.attempt)

    def run(self) -> None:
        self.log.info("attempt.started", kind=self.claim.spec["kind"])
        try:
            self._run()
        except ClaimLost:
            self.log.warning("attempt.claim_lost")
        except DBAPIError as error:
            # Unsettled: the lease lapses, and another attempt starts from the last resume point.
            self.log.error("attempt.database_away", error=str(error.orig))
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self) -> None:
        try:
            assignment = staging.stage(self.station, self.claim, self.folder)
        except staging.InputGone as gone:
            self._fail("input-gone", "Something the job reads is not there any more", str(gone))
            return
        except OSError as error:
            self._fail(*_in_words(error))
            return
        child = self.station.spare.take()
        replacement = threading.Timer(SPARE_DELAY_SECONDS, self.station.spare.prepare)
        replacement.start()
        try:
            child.assign(assignment)
            code = self._watch(child)
        finally:
            child.close()
            replacement.cancel()
            self.station.spare.prepare()
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
                reports.progress = message.progress.model_dump(mode="json", exclude_none=True)
                reports.metrics.extend(message.metrics)
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
            (point,) = staging.keep(self.station, self.claim, self.folder / "out" / "resume", files)
            with self.station.db.write() as session:
                entry = ("resume_point", {"step": message.step})
                mine = lifecycle.mine(self.claim)
                if not events.append(session, self.claim.job_id, [entry], *mine, strikes=0):
                    raise ClaimLost
                artifacts.record_resume_point(session, self.claim.tenant, self.claim.job_id, self.claim.attempt, point)
        except (OSError, DBAPIError) as error:
            self.log.warning("attempt.resume_point_not_kept", error=str(error))

    # When it has ended

    def _settle(self, code: int) -> None:
        last = self.watch.last
        if isinstance(last, SaidDone):
            self._succeed(last)
        elif isinstance(last, SaidFailed):
            self._end("failed", last.files, error=last.error.model_dump())
        elif self.watch.stop_reason == "cancel":
            self._end("cancelled", last.files if last else [], reason="cancelled by the user")
        elif self.watch.stop_reason == "deadline":
            self._end("failed", last.files if last else [], error=_overdue(self.claim))
        elif self.watch.stop_reason == "drain":
            self._write(lambda session: lifecycle.release(session, self.claim, "its worker is closing"))
        else:
            self._lose(code)

    def _succeed(self, last: SaidDone) -> None:
        products = self._keep(last.files)
        if products is not None:
            self._write(lambda session: outcomes.succeed(session, self.claim, last.result, products))

    def _end(self, state: str, files: list[FileMade], **what: object) -> None:
        products = self._keep(files)
        if products is not None:
            self._write(lambda session: outcomes.end(session, self.claim, state, products, **what))

    def _keep(self, files: list[FileMade]) -> list[Product] | None:
        """What is not kept goes at once: on a full disk the record needs the room to say so."""
        try:
            products = staging.keep(self.station, self.claim, self.folder / "out", files)
        except OSError as error:
            shutil.rmtree(self.folder, ignore_errors=True)
            self._fail(*_in_words(error))
            return None
        shutil.rmtree(self.folder, ignore_errors=True)
        return products

    def _fail(self, type: str, title: str, detail: str) -> None:
        error = {"type": type, "title": title, "detail": detail}
        self._write(lambda session: outcomes.end(session, self.claim, "failed", [], error=error))

    def _lose(self, code: int) -> None:
        reason = f"the runner was killed by signal {-code}" if code < 0 else f"the runner exited with code {code}"
        if code == -9:
            reason += " (out of memory, or killed by hand)"
        job_id, attempt = self.claim.job_id, self.claim.attempt
        self._write(lambda session: lifecycle.lose(session, job_id, attempt, reason))

    def _write(self, verb: Verb) -> None:
        """One transaction; with the database away, again and again until the lease has surely lapsed."""
        while True:
            try:
                with self.station.db.write() as session:
                    settled = verb(session)
            except DBAPIError as error:
                if time.monotonic() - self.watch.renewed_at > self.station.settings.lease_seconds:
                    raise ClaimLost from error
                time.sleep(1)
                continue
            if not settled:
                raise ClaimLost
            self.log.info("attempt.ended", last=type(self.watch.last).__name__, stopped_for=self.watch.stop_reason)
            return


def _join(earlier: Reports, later: Reports) -> Reports:
    return Reports(
        entries=earlier.entries + later.entries,
        progress=later.progress or earlier.progress,
        metrics=earlier.metrics + later.metrics,
    )


def _overdue(claim: Claim) -> dict[str, str]:
    seconds = claim.spec.get("timeout_seconds")
    return {
        "type": "timeout",
        "title": "The job ran out of its time",
        "detail": f"timeout_seconds was {seconds}. Retry gives it the same time again, from its last resume point on.",
    }


def _in_words(error: OSError) -> tuple[str, str, str]:
    if error.errno == errno.ENOSPC:
        return "disk-full", "The worker's disk is full", "Make room, then retry: it goes on from the last resume point."
    return "storage", "A file could not be read or written", str(error)
