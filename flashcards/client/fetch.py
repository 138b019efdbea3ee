"""Published files: fetched once, taken up where they broke off, and only kept with the digest that they must have."""

import hashlib
from pathlib import Path

import httpx

import flashcards
from flashcards.client.addresses import is_local
from flashcards.client.files import Progress
from flashcards.client.official import OfficialFile
from flashcards.client.patience import PASSING_STATUSES, Pauses
from flashcards.errors import DownloadFailed

PAUSES = (0.5, 1.0, 2.0, 4.0)
SECONDS = 30.0
PAST_THE_END = 416


def fetch(file: OfficialFile, folder: Path, progress: Progress | None = None) -> Path:
    """Into the folder under its own name. What is there already, whole, is not fetched again."""
    folder.mkdir(parents=True, exist_ok=True)
    path, part = folder / file.name, folder / f"{file.name}.part"
    if path.exists() and _digest(path) == file.sha256:
        return path
    pauses, farthest = Pauses(PAUSES), _length(part)
    while (have := _length(part)) < file.size:
        reason = _more(file, part, have, progress)
        if _length(part) > farthest:  # than ever: a file that became shorter is not asked for without end
            farthest = _length(part)
            pauses.start_over()
        if reason:
            pauses.take(DownloadFailed(_in_words(file, part, reason)))
    if _length(part) != file.size or _digest(part) != file.sha256:
        part.unlink()
        told = "what came is not the published file: its SHA-256 is not the one that it must have, and it was removed"
        raise DownloadFailed(f"{file.url}: {told}")
    part.replace(path)
    return path


def _more(file: OfficialFile, part: Path, have: int, progress: Progress | None) -> str | None:
    """As much as one request brings. Says what was the matter where that is not the rest."""
    # As it is stored: some servers would have the client unpack a .gz on the way.
    headers = {"Accept-Encoding": "identity", "User-Agent": f"flashcards/{flashcards.__version__}"}
    if have:
        headers["Range"] = f"bytes={have}-"
    trust = not is_local(file.url)
    try:
        with httpx.stream(
            "GET", file.url, headers=headers, timeout=SECONDS, follow_redirects=True, trust_env=trust
        ) as answer:
            return _refusal(file, part, answer) or _append(file, part, answer, progress)
    except httpx.TransportError as error:
        return str(error) or type(error).__name__


def _refusal(file: OfficialFile, part: Path, answer: httpx.Response) -> str | None:
    if answer.is_success:
        return None
    if answer.status_code == PAST_THE_END:
        part.unlink(missing_ok=True)
    elif answer.status_code not in PASSING_STATUSES:
        raise DownloadFailed(f"{file.url} is not to be had: HTTP {answer.status_code}. {ELSEWHERE}")
    return f"HTTP {answer.status_code}"


def _append(file: OfficialFile, part: Path, answer: httpx.Response, progress: Progress | None) -> str | None:
    goes_on = answer.headers.get("Content-Range", "").startswith(f"bytes {_length(part)}-")
    with part.open("ab" if goes_on else "wb") as out:
        for chunk in answer.iter_raw():  # as it comes: of larger chunks the last one would be lost
            out.write(chunk)
            if progress is not None:
                progress(min(out.tell(), file.size), file.size)
            if out.tell() > file.size:  # no use in more of it
                return None
        return None if out.tell() == file.size else "the answer ended early"


ELSEWHERE = "FLASHCARDS_DATA may name a folder that holds it as an npz"


def _in_words(file: OfficialFile, part: Path, reason: str) -> str:
    kept = f" What has come so far stays in {part}, and the same command goes on from there." if part.exists() else ""
    return f"{httpx.URL(file.url).host} does not give {file.name} ({reason}).{kept} {ELSEWHERE}."


def _length(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
