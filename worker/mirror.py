"""Mirrors jobs to a tracking server, beside the work and never in its way: a thread like the reaper's, in every worker.

What it tells is read from the record, where the job has long been written down. A server that is away, hangs or
refuses costs the job a warning and nothing else; what it missed it is told when it is back. Every verb may be said
twice, so a worker that is killed half-way leaves nothing behind that another does not put right.
"""

import random
import shutil
import threading
import time
from pathlib import Path

import structlog
from sqlalchemy.exc import DBAPIError

from ledger import mirrors
from ledger.errors import RunGone, StoreAway, TrackerAway, TrackerRefused
from ledger.steps import TERMINAL
from ledger.tables import Job, Mirror
from ledger.tracking import open_tracker
from worker import made, tracked
from worker.made import Made
from worker.station import Station
from worker.tracked import Story

FILES_SECONDS = 900.0  # longer than the files of most jobs take to go up; twice does no harm
LONGEST_SILENCE_SECONDS = 60.0
LONGEST_PAUSE_SECONDS = 3600.0
DAY = 86400
MISSED = "this job goes on as if nothing were, and what was missed is sent when it is back"
log = structlog.get_logger()


class Mirroring:
    def __init__(self, station: Station) -> None:
        self._station = station
        self._tracker = open_tracker(station.settings)
        self._poll = station.settings.mlflow_poll_seconds
        self._quiet_until = float("-inf")
        self._in_vain = 0  # rounds in a row

    def close(self) -> None:
        self._tracker.close()

    def round(self) -> None:
        """All that is due, until the server falls silent; then it is left alone for a while, longer each time."""
        while time.monotonic() >= self._quiet_until:
            row = None if self._station.draining.is_set() else mirrors.take(self._station.db)
            if row is None:
                return
            try:
                self._mirror(row)
                self._in_vain = 0
            except TrackerAway as away:
                self._fall_silent(row, away)
            except RunGone:
                self._put_off(row, run_id=None, seq=0, told={})
            except TrackerRefused as refused:
                self._refuse(row, refused)
            except StoreAway:
                self._put_off(row)
            except (KeyError, TypeError, ValueError) as odd:
                log.warning("mirror.odd_answer", job=row.job_id, exc_info=odd)
                self._refuse(row, TrackerRefused("its answer cannot be read: is it an MLflow server?"))
        for job_id in mirrors.unwarned(self._station.db):
            mirrors.warn(self._station.db, job_id, f"the tracking server does not answer: {MISSED}")

    def _mirror(self, row: Mirror) -> None:
        db = self._station.db
        with db.read() as session:
            story = tracked.read(session, self._station.settings, row)
        if row.run_id is None and story.job.started_at is None and story.has_ended:
            mirrors.advance(db, row.job_id, None)  # it never ran
            return
        if row.run_id is not None and row.seq == story.job.seq and not story.has_ended:
            mirrors.advance(db, row.job_id, self._poll)
            return
        run_id = row.run_id or self._tracker.begin(story.run)
        self._tell(run_id, row, story)
        far = {"run_id": run_id, "seq": story.job.seq, "told": story.told}
        mirrors.advance(db, row.job_id, None if story.has_ended else self._poll, note=_note(row, run_id, story), **far)

    def _tell(self, run_id: str, row: Mirror, story: Story) -> None:
        first = row.run_id is None or story.has_ended
        self._tracker.tell(run_id, story.params if first else None, story.points, story.tags if first else None)
        if story.has_ended:
            self._conclude(run_id, story)
        elif story.job.attempt > 1:
            self._tracker.end(run_id, "running", None)  # it had ended, and was retried

    def _conclude(self, run_id: str, story: Story) -> None:
        """The end last: a run that has one is whole."""
        try:
            self._hand_over(run_id, story)
        except TrackerRefused:
            self._tracker.end(run_id, story.job.state, story.job.ended_at)  # without its files it has ended as well
            raise
        self._tracker.end(run_id, story.job.state, story.job.ended_at)

    def _hand_over(self, run_id: str, story: Story) -> None:
        mirrors.hold(self._station.db, story.job.id, FILES_SECONDS)
        folder = self._station.folder / f"mirror-{story.job.id}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            self._show(run_id, story.job, folder)
            with self._station.db.read() as session:
                network = made.made_by(session, story.job)
            if network is not None:
                self._keep_model(run_id, story, network, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _show(self, run_id: str, job: Job, folder: Path) -> None:
        with self._station.db.read() as session:
            files = tracked.to_show(session, job)
        for file in files:
            path = folder / file.name
            try:
                self._station.store.fetch(job.tenant, file.digest, path)
            except FileNotFoundError:
                continue  # deleted since
            self._tracker.keep(run_id, file.name, path)

    def _keep_model(self, run_id: str, story: Story, network: Made, folder: Path) -> None:
        try:
            model = made.fetch(self._station, story.job.tenant, network, folder)
        except FileNotFoundError:
            return  # deleted since
        self._tracker.tell(run_id, tags=network.tags)
        self._tracker.keep_model(run_id, model)
        if story.register_as is not None and story.job.state == "succeeded":
            self._tracker.register(run_id, story.register_as, {**story.tags, **network.tags})

    def _fall_silent(self, row: Mirror, away: TrackerAway) -> None:
        pause = min(LONGEST_SILENCE_SECONDS, self._poll * 2**self._in_vain) * random.uniform(0.8, 1.2)
        self._in_vain = min(self._in_vain + 1, 30)
        self._quiet_until = time.monotonic() + pause
        mirrors.put_off(self._station.db, row.job_id, pause)
        mirrors.warn(self._station.db, row.job_id, f"{away.detail}: {MISSED}")
        log.warning("mirror.away", error=away.detail, seconds=round(pause, 1))

    def _refuse(self, row: Mirror, refused: TrackerRefused) -> None:
        db = self._station.db
        mirrors.warn(db, row.job_id, f"the tracking server does not take this job: {refused.detail}")
        log.warning("mirror.refused", job=row.job_id, error=refused.detail)
        if refused.final or self._is_old(row):
            mirrors.put_off(db, row.job_id, None)
        else:
            self._put_off(row)

    def _put_off(self, row: Mirror, **far: object) -> None:
        pause = min(LONGEST_PAUSE_SECONDS, self._poll * 2 ** min(row.tries, 30))
        mirrors.put_off(self._station.db, row.job_id, pause, **far)

    def _is_old(self, row: Mirror) -> bool:
        with self._station.db.read() as session:
            job = session.get_one(Job, row.job_id)
        ended_at = job.ended_at if job.state in TERMINAL else None
        return ended_at is not None and time.time() - ended_at > self._station.settings.mlflow_days * DAY


def _note(row: Mirror, run_id: str, story: Story) -> str | None:
    if row.warned:
        return "the tracking server is back, and knows all of this job that it missed"
    return None if row.run_id else f"mirrored to the tracking server, experiment {story.run.experiment}, run {run_id}"


def keep_mirroring(station: Station) -> None:
    mirroring = Mirroring(station)
    try:
        _keep_on(station, mirroring)
    finally:
        mirroring.close()


def _keep_on(station: Station, mirroring: Mirroring) -> None:
    while not station.draining.wait(station.settings.mlflow_poll_seconds):
        try:
            mirroring.round()
        except DBAPIError as error:
            log.warning("mirror.database_away", error=str(error.orig))
        except Exception as error:
            log.warning("mirror.failed", error=str(error), exc_info=error)


def start(station: Station) -> None:
    if station.settings.mlflow_url:
        threading.Thread(target=keep_mirroring, args=(station,), name="mirror", daemon=True).start()
