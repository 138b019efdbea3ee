"""Runs the child. Whatever becomes of it, the uploader gets an answer and no process stays behind."""

import asyncio
import errno
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from math import ceil
from typing import BinaryIO, NamedTuple

import structlog
from pydantic import BaseModel, ValidationError

from service.files.errors import UNCHECKED, BadFile

MAX_ANSWER = 1 << 20
SECONDS = 30
SLOWEST = 10_000_000  # bytes a second: deflated floats, on a busy machine
#: More threads would take the address space that the child is allowed, and start-up time; and one that pyarrow's
#: allocators start when they are loaded would stay outside of the filter of system calls.
ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
COMMAND = (sys.executable, "-I", "-m", "service.files.child")
PASSED_ON = ("LD_LIBRARY_PATH",)
STOPPED = "the check stopped before its end: the file may be damaged, or need more than a check may use"

log = structlog.get_logger()


class Making(NamedTuple):
    """The empty file that a conversion fills, and how large it may become."""

    fd: int
    most: int


class Refusal(BaseModel):
    title: str
    detail: str


class Answer(BaseModel):
    facts: dict[str, object] | None = None
    bad: Refusal | None = None
    full: int | None = None
    crash: str | None = None


async def ask_child(
    upload: BinaryIO, read: Mapping[str, object], work: int, making: Making | None = None
) -> dict[str, object]:
    """`work` is how many bytes there are to go through, at most."""
    seconds = SECONDS + ceil(work / SLOWEST)
    order = json.dumps({"read": read, "seconds": seconds, "out": making._asdict() if making else {}})
    try:
        async with asyncio.timeout(seconds):
            output, status = await _run(upload, order, making)
    except TimeoutError:
        raise unchecked(f"it took longer than {seconds} seconds", order=order) from None
    except OSError as error:
        raise unchecked("the check did not start: try again", order=order, error=str(error)) from error
    return _facts(output, status)


def unchecked(detail: str, **clues: object) -> BadFile:
    """The uploader learns little, whoever runs the service everything."""
    log.warning("file_unchecked", detail=detail, **clues)
    return BadFile(UNCHECKED, detail)


async def _run(upload: BinaryIO, order: str, making: Making | None) -> tuple[bytes, int]:
    # Shielded: a start that is cancelled half way would leave a process that nobody holds.
    starting = asyncio.ensure_future(_start(upload, order, making))
    try:
        process = await asyncio.shield(starting)
        return await _read(process), await process.wait()
    finally:
        await _end(await starting)


async def _start(upload: BinaryIO, order: str, making: Making | None) -> Process:
    return await asyncio.create_subprocess_exec(
        *COMMAND,
        order,
        stdin=upload,
        stdout=PIPE,
        stderr=DEVNULL,
        pass_fds=(making.fd,) if making else (),
        env=ENVIRONMENT | {name: os.environ[name] for name in PASSED_ON if name in os.environ},
        cwd="/",
        start_new_session=True,
    )


async def _end(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    await process.communicate()


async def _read(process: Process) -> bytes:
    assert process.stdout is not None
    output = b""
    while part := await process.stdout.read(MAX_ANSWER):
        output += part
        if len(output) > MAX_ANSWER:
            raise unchecked(STOPPED, output=output[:200])
    return output


def _facts(output: bytes, status: int) -> dict[str, object]:
    try:
        answer = Answer.model_validate_json(output)
    except ValidationError as error:
        raise unchecked(STOPPED, status=status, output=output[:200]) from error
    if answer.bad:
        raise BadFile(answer.bad.title, answer.bad.detail)
    if answer.full == errno.ENOSPC:
        raise OSError(errno.ENOSPC, "no room for the converted file")
    if answer.full is not None:
        raise unchecked("it becomes larger than it may", errno=answer.full)
    if answer.facts is None or status != 0:
        raise unchecked(STOPPED, status=status, crash=answer.crash)
    return answer.facts
