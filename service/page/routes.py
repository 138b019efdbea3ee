"""The page: a frame for each view, and the files that fill it. What it shows is what `/v1` answers."""

from collections.abc import Awaitable, Callable

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from ledger.errors import NotFound
from service.page import sample
from service.page.assets import load
from service.page.render import page

router = APIRouter(include_in_schema=False)
#: Neither script nor style within the page, nothing from elsewhere, nothing around it.
CONTENT_POLICY = (
    "default-src 'none'; img-src 'self'; connect-src 'self'; style-src 'self'; script-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
FRESH = {"Cache-Control": "no-cache"}
FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}
#: Address -> template, and the section of the navigation that it belongs to.
VIEWS = {
    "/": ("overview", "/"),
    "/jobs": ("jobs", "/jobs"),
    "/jobs/{id}": ("job", "/jobs"),
    "/models": ("models", "/models"),
    "/models/{id}": ("model", "/models"),
    "/datasets": ("datasets", "/datasets"),
    "/datasets/{id}": ("dataset", "/datasets"),
    "/flashcards": ("flashcards", "/flashcards"),
    "/flashcards/{id}": ("cards", "/flashcards"),
    "/learners": ("learners", "/learners"),
    "/learners/{id}": ("learner", "/learners"),
    "/compare": ("compare", "/compare"),
    "/compare/{id}": ("comparison", "/compare"),
    "/api": ("api", "/api"),
}


def _view(template: str, section: str) -> Callable[[Request], Awaitable[Response]]:
    async def show(request: Request) -> Response:
        return HTMLResponse(page(template, section), headers={**FRESH, "Content-Security-Policy": CONTENT_POLICY})

    return show


for _path, (_template, _section) in VIEWS.items():
    router.add_api_route(_path, _view(_template, _section), methods=["GET", "HEAD"], name=f"show_{_template}")


@router.api_route("/page/digits.npz", methods=["GET", "HEAD"])
def get_sample() -> Response:
    """What the first steps upload, as anybody would upload their own."""
    return Response(sample.digits_npz(), headers=FRESH, media_type="application/octet-stream")


@router.api_route("/page/{digest}/{name:path}", methods=["GET", "HEAD"])
async def get_asset(digest: str, name: str, request: Request) -> Response:
    """Of another age than ours, as while a new release comes in one process after the other: what we have, unkept."""
    assets = load()
    asset = assets.files.get(name)
    if asset is None:
        raise NotFound("file", name)
    tag = f'"{assets.digest}"'
    headers = {"ETag": tag, **(FOREVER if digest == assets.digest else FRESH)}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(asset.content, headers=headers, media_type=asset.media_type)
