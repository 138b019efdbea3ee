"""Where a backup lies: a folder, or a tar of one. Nothing of it is ever unpacked; names in it are only looked up."""

import hashlib
import json
import os
import shutil
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

from filelock import FileLock, Timeout

from ledger.backup.record import File
from ledger.errors import BackupError
from ledger.store import CHUNK

FORMAT = 1
MANIFEST = "backup.json"
RECORDS = "record-*.jsonl.gz"
Manifest = dict[str, Any]


class Vault(Protocol):
    """What is added counts once `commit` has returned; until then what was there before is as it was."""

    drafts: Path

    def has(self, file: File) -> bool: ...
    def add(self, file: File, draft: Path) -> None: ...
    def commit(self, manifest: Manifest, record: Path, files: frozenset[File]) -> None: ...


class Source(Protocol):
    def chunks(self, name: str) -> Iterator[bytes]: ...


def name_of(file: File) -> str:
    return f"files/{file.tenant}/{file.digest}"


class Folder:
    def __init__(self, path: Path, drafts: Path | None = None) -> None:
        self.path = path
        self.drafts = drafts or path

    def has(self, file: File) -> bool:
        place = self.path / name_of(file)
        return place.exists() and place.stat().st_size == file.size

    def add(self, file: File, draft: Path) -> None:
        place = self.path / name_of(file)
        place.parent.mkdir(parents=True, exist_ok=True)
        _put_in_place(draft, place)

    def commit(self, manifest: Manifest, record: Path, files: frozenset[File]) -> None:
        _put_in_place(record, self.path / manifest["record"]["name"])
        draft = self.drafts / MANIFEST
        draft.write_text(json.dumps(manifest, indent=2))
        _put_in_place(draft, self.path / MANIFEST)
        self._drop_all_but({MANIFEST, manifest["record"]["name"], *map(name_of, files)})

    def chunks(self, name: str) -> Iterator[bytes]:
        with (self.path / name).open("rb") as file:
            while chunk := file.read(CHUNK):
                yield chunk

    def _drop_all_but(self, names: set[str]) -> None:
        """Of the backup that was here before; what somebody else put here stays."""
        ours = [*self.path.glob(RECORDS), *self.path.glob("files/*/*")]
        for place in ours:
            if str(place.relative_to(self.path)) not in names:
                place.unlink()


class Tar:
    """Written beside its name, and given it at the end."""

    def __init__(self, path: Path, drafts: Path) -> None:
        self.path, self.drafts = path, drafts
        self._draft = drafts / path.name
        self._tar = tarfile.open(self._draft, "w", format=tarfile.PAX_FORMAT)  # noqa: SIM115 (see close)
        self._added: set[File] = set()
        self._lock = threading.Lock()

    def has(self, file: File) -> bool:
        return file in self._added

    def add(self, file: File, draft: Path) -> None:
        with self._lock:
            self._write(name_of(file), draft.stat().st_size, draft)
            self._added.add(file)
        draft.unlink()

    def commit(self, manifest: Manifest, record: Path, files: frozenset[File]) -> None:
        self._write(manifest["record"]["name"], record.stat().st_size, record)
        text = self.drafts / MANIFEST
        text.write_text(json.dumps(manifest, indent=2))
        self._write(MANIFEST, text.stat().st_size, text)
        self._tar.close()
        _put_in_place(self._draft, self.path)

    def close(self) -> None:
        self._tar.close()

    def _write(self, name: str, size: int, path: Path) -> None:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode, entry.mtime = size, 0o600, int(path.stat().st_mtime)
        with path.open("rb") as content:
            self._tar.addfile(entry, content)


class TarSource:
    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with tarfile.open(path, "r:") as tar:
                self._places = {entry.name: (entry.offset_data, entry.size) for entry in tar if entry.isreg()}
        except tarfile.TarError as error:
            raise BackupError(f"{path} is not a backup, or not all of one: {error}") from error

    def chunks(self, name: str) -> Iterator[bytes]:
        if name not in self._places:
            raise FileNotFoundError(name)
        start, left = self._places[name]
        with self.path.open("rb") as file:
            file.seek(start)
            while left and (chunk := file.read(min(left, CHUNK))):
                left -= len(chunk)
                yield chunk


@contextmanager
def open_to_write(path: Path) -> Iterator[Vault]:
    """A name that ends in .tar is a file, every other one a folder."""
    path = path.absolute()
    if path.suffix == ".tar":
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path.with_name(f".{path.name}.partial")) as drafts, closing(Tar(path, drafts)) as tar:
            yield tar
        return
    path.mkdir(parents=True, mode=0o700, exist_ok=True)
    if not _is_ours(path):
        raise BackupError(f"{path} holds something else than a backup: name another folder")
    with _alone(path / ".partial") as drafts:
        yield Folder(path, drafts)


def open_to_read(path: Path) -> tuple[Source, Manifest]:
    if not path.exists():
        raise BackupError(f"there is no {path}")
    source: Source = Folder(path) if path.is_dir() else TarSource(path)
    try:
        manifest = json.loads(b"".join(source.chunks(MANIFEST)))
    except FileNotFoundError:
        raise BackupError(f"{path} is not a backup, or one that was never finished: it has no {MANIFEST}") from None
    except ValueError:
        raise BackupError(f"{MANIFEST} in {path} cannot be read") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise BackupError(f"{path} has another format than this version of flashcards reads")
    return source, manifest


def measure(chunks: Iterator[bytes], write: Callable[[bytes], object] = len) -> tuple[str, int]:
    """Digest and size of what comes, while it is passed on."""
    seen, size = hashlib.sha256(), 0
    for chunk in chunks:
        seen.update(chunk)
        size += len(chunk)
        write(chunk)
    return seen.hexdigest(), size


def copy(chunks: Iterator[bytes], to: Path) -> tuple[str, int]:
    with to.open("xb") as file:
        return measure(chunks, file.write)


def _put_in_place(draft: Path, place: Path) -> None:
    """Its bytes are on the disk before its name is: what a manifest promises is there after a power cut too."""
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    draft.chmod(0o600)
    draft.rename(place)


def _is_ours(path: Path) -> bool:
    seen = {entry.name for entry in path.iterdir() if not entry.name.startswith(".")}
    return seen <= {"files", MANIFEST, *(entry.name for entry in path.glob(RECORDS))}


@contextmanager
def _alone(drafts: Path) -> Iterator[Path]:
    """A place for what is not finished. One that was killed leaves it behind, and the next one clears it."""
    drafts.mkdir(mode=0o700, exist_ok=True)
    try:
        with FileLock(drafts / "lock", timeout=0):
            for left in drafts.iterdir():
                if left.name != "lock":
                    left.unlink()
            try:
                yield drafts
            finally:
                shutil.rmtree(drafts)
    except Timeout:
        raise BackupError(f"another backup is being written there: {drafts} is in use") from None
