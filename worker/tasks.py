import structlog
from sqlalchemy.exc import DBAPIError

from worker.app import app
from worker.station import station
from worker.supervisor import supervise

AWAY_SECONDS = 1
log = structlog.get_logger()


@app.task(name="flashcards.run")
def run(job_id: str | None) -> None:
    """Somebody rang: take that job, then whatever waits longest, until the queue is empty."""
    here = station()
    while not here.draining.is_set():
        try:
            claim = here.claim(job_id)
        except DBAPIError as error:
            # Whoever rang will not ring again soon, so wait here: what is queued is taken as soon as it is back.
            log.warning("claim.database_away", error=str(error.orig))
            here.draining.wait(AWAY_SECONDS)
            continue
        if claim is not None:
            supervise(here, claim)
        elif job_id is None:
            return
        job_id = None
