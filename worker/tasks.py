from worker.app import app
from worker.station import station
from worker.supervisor import supervise


@app.task(name="flashcards.run")
def run(job_id: str | None) -> None:
    """Somebody rang: take that job, then whatever waits longest, until the queue is empty."""
    here = station()
    while not here.draining.is_set():
        claim = here.claim(job_id)
        if claim is not None:
            supervise(here, claim)
        elif job_id is None:
            return
        job_id = None
