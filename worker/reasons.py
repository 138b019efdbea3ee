"""Why an attempt failed, in words that a user can act on: what becomes the `error` of its job."""

import errno

from pydantic import ValidationError

from flashcards.contract.resources import Failure
from ledger.lifecycle import Claim

FIELDS_NAMED = 5
REPORT = "Report it to whoever runs this service: a worker may be of another release than its runner."


def overdue(claim: Claim) -> Failure:
    seconds = claim.spec.get("timeout_seconds")
    return Failure(
        type="timeout",
        title="The job ran out of its time",
        detail=f"timeout_seconds was {seconds}. Retry gives it the same time again, from its last resume point on.",
    )


def of_files(error: OSError) -> Failure:
    if error.errno == errno.ENOSPC:
        detail = "Make room, then retry: it goes on from the last resume point."
        return Failure(type="disk-full", title="The worker's disk is full", detail=detail)
    return Failure(type="storage", title="A file could not be read or written", detail=str(error))


def no_store() -> Failure:
    detail = "Retry: it goes on from the last resume point."
    return Failure(type="storage", title="The store of files does not answer", detail=detail)


def unfit_result(error: ValidationError | KeyError) -> Failure:
    """The work was done, and what was said of it cannot go on record; its files can."""
    return Failure(
        type="unfit-result",
        title="What the job came to cannot be put on record",
        detail=f"{_told(error)}. Its files are kept. {REPORT}",
    )


def no_last_word() -> Failure:
    detail = f"The runner ended as if all were well, and did not say what it came to: see the job's log. {REPORT}"
    return Failure(type="unfit-result", title="What the job came to cannot be put on record", detail=detail)


def defect(error: Exception) -> Failure:
    """Nothing that was thought of. Its message may name what is no tenant's business: it stays in the worker's log."""
    detail = f"{type(error).__name__}, told in full in the worker's log. {REPORT}"
    return Failure(type="internal", title="The worker failed at this job", detail=detail)


def _told(error: ValidationError | KeyError) -> str:
    if isinstance(error, KeyError):
        return f"the runner made no {error.args[0]}"
    found = [f"{'.'.join(map(str, each['loc'])) or 'it'}: {each['msg']}" for each in error.errors(include_input=False)]
    more = f", and {len(found) - FIELDS_NAMED} more" if len(found) > FIELDS_NAMED else ""
    return "; ".join(found[:FIELDS_NAMED]) + more
