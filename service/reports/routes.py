import hashlib
from typing import Annotated

from fastapi import APIRouter, Header, Response

from flashcards.contract.base import JobId
from flashcards.contract.reports import Report
from service.deps import HouseDep, TenantDep
from service.downloads import FRESH, conflict
from service.reports.gather import gather
from service.reports.pictures import pictures
from service.reports.render import CONTENT_POLICY, render

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])
UNFINISHED = conflict("the job has not ended")


@router.get("/{job_id}/report.json", responses=UNFINISHED)
def get_job_report(job_id: JobId, house: HouseDep, tenant: TenantDep) -> Report:
    """All that is on record of a job that has ended."""
    with house.db.read() as session:
        return gather(session, tenant, job_id)


@router.head("/{job_id}/report.html", include_in_schema=False)
@router.get(
    "/{job_id}/report.html",
    response_class=Response,
    responses={
        200: {"content": {"text/html": {}}},
        304: {"description": "what you have is what there is"},
        **UNFINISHED,
    },
)
def get_job_report_page(
    job_id: JobId,
    house: HouseDep,
    tenant: TenantDep,
    if_none_match: Annotated[str | None, Header(max_length=1000, description="ETag of what you have")] = None,
) -> Response:
    """The same to look at, to print and to send: one file, with the pictures in it."""
    with house.db.read() as session:
        report = gather(session, tenant, job_id)
    page = render(report, pictures(house.store, tenant, report.job.artifacts)).encode()
    tag = f'"{hashlib.sha256(page).hexdigest()}"'
    headers = {
        **FRESH,
        "ETag": tag,
        "Content-Security-Policy": CONTENT_POLICY,
        "Content-Disposition": f'inline; filename="{job_id}-report.html"',
    }
    if if_none_match == tag:
        return Response(status_code=304, headers=headers)
    return Response(page, headers=headers, media_type="text/html; charset=utf-8")
