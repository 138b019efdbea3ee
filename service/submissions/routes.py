from typing import Annotated

from fastapi import APIRouter, Query
from sqlalchemy import or_, select

from flashcards.contract.resources import Page
from flashcards.contract.submissions import Submission, SubmissionId, SubmissionState
from ledger import paging, submissions, tables
from service import views
from service.deps import HouseDep, PrincipalDep
from service.paging import Cursor, Limit, decode_cursor

router = APIRouter(prefix="/v1/submissions", tags=["submissions"])


@router.get("")
def list_submissions(
    house: HouseDep,
    principal: PrincipalDep,
    state: Annotated[SubmissionState | None, Query(description="only those")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[Submission]:
    """What came of messages on the queue. Those without a key that is good are shown to whoever runs the service."""
    seen = decode_cursor(cursor, "submission")
    theirs = tables.Submission.tenant == principal.tenant
    if principal.is_operator:
        theirs = or_(theirs, tables.Submission.tenant.is_(None))
    statement = select(tables.Submission).where(theirs)
    if state is not None:
        accepted = tables.Submission.job_id.is_not(None)
        statement = statement.where(accepted if state == "accepted" else ~accepted)
    with house.db.read() as session:
        rows, last = paging.page(session, statement, tables.Submission.id, limit, seen)
        return views.page([views.submission(row) for row in rows], last)


@router.get("/{submission_id}")
def get_submission(submission_id: SubmissionId, house: HouseDep, principal: PrincipalDep) -> Submission:
    """What came of the message with this id; 404 until a worker has read it."""
    with house.db.read() as session:
        return views.submission(submissions.find(session, principal.tenant, submission_id, principal.is_operator))
