"""The OpenAPI document: every operation says which problems it may answer with, as problem+json."""

import gzip
import json
from functools import cache
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from flashcards.contract.resources import Problem
from service.auth import is_open
from service.errors import MEDIA_TYPE

PATH = "/openapi.json"
PROBLEM = {"content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
ALWAYS = {
    "403": "a foreign Host or Origin, or a key without the scope or quota for this",
    "422": "the request does not make sense",
    "500": "a defect of ours",
    "503": "database, store or tracking server do not answer right now",
}
LOCKED = {"401": "no key, or one that opens nothing", "429": "the key's rate limit or quota of jobs is used up"}
WITH_ID = {"404": "there is no such thing"}
CHANGES = {"409": "not in this state, or the Idempotency-Key belongs to another request"}
BODIES = {"400": "the body could not be read", "413": "larger than allowed", "507": "the disk is full"}


def operation_id(route: APIRoute) -> str:
    """Names in generated clients are the names of our functions."""
    return route.name


def install(app: FastAPI, *, locked: bool) -> None:
    def build() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _build(app, locked)
        return app.openapi_schema

    app.openapi = build  # type: ignore[method-assign]

    @cache
    def written(packed: bool) -> bytes:
        text = json.dumps(build(), ensure_ascii=False, separators=(",", ":")).encode()
        return gzip.compress(text, mtime=0) if packed else text

    @app.get(PATH, include_in_schema=False)
    def get_document(request: Request) -> Response:
        """Packed for whoever can unpack: it is by far the largest thing that the page reads."""
        packed = "gzip" in request.headers.get("accept-encoding", "")
        headers = {"Vary": "Accept-Encoding", **({"Content-Encoding": "gzip"} if packed else {})}
        return Response(written(packed), headers=headers, media_type="application/json")


def _build(app: FastAPI, locked: bool) -> dict[str, Any]:
    document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer", "bearerFormat": "fc_..."}}
    schemas["Problem"] = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(schemas["Problem"].pop("$defs", {}))
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            own = {code: words for code, words in operation["responses"].items() if code != "422"}
            operation["responses"] = {**_problems(path, method, _names_something(path, operation)), **own}
            if locked and not is_open(path):
                operation["security"] = [{"key": []}]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    return document


def _names_something(path: str, operation: dict[str, Any]) -> bool:
    """By its id, in the address or behind it."""
    return "{" in path or any(each["name"] == "upload" for each in operation.get("parameters", []))


def _problems(path: str, method: str, names_something: bool) -> dict[str, Any]:
    codes = dict(ALWAYS)
    if not is_open(path):
        codes |= LOCKED
    if names_something:
        codes |= WITH_ID
    if method in ("post", "put", "delete"):
        codes |= CHANGES
    if method in ("post", "put"):
        codes |= BODIES
    return {code: {"description": words, **PROBLEM} for code, words in codes.items()}
