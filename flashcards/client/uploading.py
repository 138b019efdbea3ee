# Made from aio/uploading.py by `make client`: change it there.
"""Large files go in parts: what the service has of a file is not sent again, also not by another process later on."""

import base64
import hashlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import httpx

from flashcards.client.addresses import Params
from flashcards.client.answers import Value
from flashcards.client.files import CHUNK, Progress, size_of
from flashcards.client.patience import LONG_PAUSES
from flashcards.contract.uploads import Links, Upload
from flashcards.errors import ApiError, Conflict, FlashcardsError, NotFound

if TYPE_CHECKING:
    from flashcards.client.http import Http

PATH = "/v1/uploads"
TRIES = 3
NO_LINKS = "/problems/no-links"
#: Somebody else brought it to its end or took it away, or a part went wrong: begun again it says what is missing.
BEGIN_AGAIN = frozenset({"/problems/upload-complete", "/problems/upload-incomplete"})


def upload_in_parts(
    http: "Http", kind: type[Value], path: str, file: Path, params: Params, told: Progress | None, check_seconds: float
) -> Value:
    """The service finds an upload that broke off by the digest and the size of the file."""
    with file.open("rb") as opened:
        begun = {"digest": _digest_of(opened), "size": size_of(opened)}
        tries = 0
        while True:
            tries += 1
            upload = http.post(Upload, PATH, begun)
            try:
                _send(http, upload, opened, told)
                made = {**params, "upload": upload.id}
                return http.post(kind, path, params=made, wait=check_seconds, pauses=LONG_PAUSES)
            except ApiError as error:
                again = isinstance(error, NotFound) or error.type in BEGIN_AGAIN
                if tries == TRIES or not again:
                    raise


def _digest_of(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(CHUNK):
        digest.update(chunk)
        time.sleep(0)  # others may have a turn
    return digest.hexdigest()


def _send(http: "Http", upload: Upload, file: BinaryIO, told: Progress | None) -> None:
    straight = http.direct_uploads
    sent = upload.size - sum(_size(upload, number) for number in upload.missing)
    if told is not None:
        told(sent, upload.size)
    for number in upload.missing:
        data = _read(file, upload, number)
        straight = straight and _put_to_store(http, upload, number, data)
        if not straight:
            digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
            headers = {"Content-Digest": f"sha-256=:{digest}:", "Content-Type": "application/octet-stream"}
            http.put(f"{PATH}/{upload.id}/parts/{number}", data, headers)
        sent += len(data)
        if told is not None:
            told(sent, upload.size)


def _put_to_store(http: "Http", upload: Upload, number: int, data: bytes) -> bool:
    """By a link, where the store gives links and can be reached from here. False: send it to the service."""
    try:
        given = http.post(Links, f"{PATH}/{upload.id}/links", {"parts": [number]})
    except Conflict as conflict:
        if conflict.type != NO_LINKS:
            raise
        return False
    link = given.links[0].url
    try:
        with http.plain(link) as store:
            return store.put(link, content=data).is_success
    except httpx.TransportError:
        return False


def _size(upload: Upload, number: int) -> int:
    return min(upload.part_size, upload.size - (number - 1) * upload.part_size)


def _read(file: BinaryIO, upload: Upload, number: int) -> bytes:
    file.seek((number - 1) * upload.part_size)
    data = file.read(_size(upload, number))
    if len(data) != _size(upload, number):
        raise FlashcardsError(f"{file.name} became shorter while it was sent")
    return data
