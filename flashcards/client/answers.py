"""Answers of the service as values of the contract."""

from typing import TypeVar

import httpx
from pydantic import ValidationError

from flashcards.contract.base import Record
from flashcards.contract.resources import Problem
from flashcards.errors import ApiError, UnexpectedAnswer, api_error

Value = TypeVar("Value", bound=Record)


def read(kind: type[Value], content: bytes) -> Value:
    """The contract refuses unknown fields in what users write; in answers they come from a newer service."""
    try:
        return kind.model_validate_json(content, extra="ignore")
    except ValidationError as error:
        raise UnexpectedAnswer(
            f"the service answered with something that is no {kind.__name__} to this client; is the client older "
            f"than the service, or is something else at this address? {error.errors()[0]['msg']}"
        ) from error


def refusal(answer: httpx.Response) -> ApiError:
    try:
        problem = read(Problem, answer.content)
    except UnexpectedAnswer:
        # A proxy in between has words of its own.
        title = answer.reason_phrase or f"HTTP status {answer.status_code}"
        problem = Problem(type="about:blank", title=title, status=answer.status_code, detail=answer.text[:200])
    seconds = answer.headers.get("Retry-After", "")
    return api_error(problem, answer.status_code, float(seconds) if seconds.isdigit() else None)
