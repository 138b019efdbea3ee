"""A bundle of another installation: every entry where, as long and with the digest that its manifest says."""

import hashlib
import json
import os
from typing import Any, NoReturn

from service.files import zipped
from service.files.capsule import read_capsule
from service.files.errors import BadFile
from service.files.looks import HEAD_BYTES
from service.files.safetensors import read_safetensors
from service.files.upload import Upload
from service.files.words import quoted, several, size

FORMAT, VERSION = "flashcards-bundle", 1  # as in `flashcards.contract.bundle`, which is too slow to import here
MANIFEST = "bundle.json"
TEXTS = ("lineage.json", "recipes.json", "metrics.json")
MAX_ENTRIES = 8_000
MAX_TEXT = 400_000  # of all that is told on
MAX_CARD = 4 << 20
CHUNK = 1 << 20
NO_BUNDLE = "not a bundle"
DAMAGED = "the bundle is damaged"


class Slice(Upload):
    """One entry of the zip, as if it were the upload."""

    def __init__(self, upload: Upload, entry: zipped.Entry) -> None:
        super().__init__(upload.fileno())
        self._begin = entry.begin
        self.size = entry.size

    def head(self) -> bytes:
        return os.pread(self.fileno(), min(HEAD_BYTES, self.size), self._begin)

    def fill(self, view: memoryview, offset: int) -> None:
        if offset + len(view) > self.size:
            raise BadFile("the file is cut off", "it ended while it was read: upload it again")
        super().fill(view, self._begin + offset)


def is_model_bundle(names: list[str]) -> bool:
    return MANIFEST in names


def read_model_bundle(upload: Upload) -> dict[str, object]:
    """In the child: all bytes are looked at; what they mean is for the parent, which knows the contract."""
    entries = {entry.name: entry for entry in _entries(upload)}
    manifest = _manifest(upload, entries)
    files = _files(manifest)
    _check_names(set(entries) - {MANIFEST}, set(files))
    for name, told in files.items():
        _check_file(upload, entries[name], told)
    tensors = {name: Slice(upload, entries[name]) for name in files if name.endswith(".safetensors")}
    capsules = [name for name in tensors if name.rpartition("/")[2].startswith("capsule")]
    return {
        "manifest": manifest,
        "texts": {name: _json(upload, entries[name]) for name in TEXTS if name in files},
        "places": {name: entries[name].begin for name in tensors},
        "weights": {name: read_safetensors(tensors[name]).told() for name in tensors if name not in capsules},
        "capsules": {name: read_capsule(tensors[name]) for name in capsules},
    }


def _entries(upload: Upload) -> list[zipped.Entry]:
    if not upload.head().startswith(b"PK\x03\x04"):
        raise BadFile(NO_BUNDLE, "a bundle is a zip, as GET /v1/models/{id}/bundle gives it out")
    found = [entry for entry in zipped.entries(upload, MAX_ENTRIES) if not entry.is_folder]
    if not is_model_bundle([entry.name for entry in found]):
        how = f"there is no {MANIFEST} at its top: GET /v1/models/{{id}}/bundle makes bundles"
        raise BadFile(NO_BUNDLE, f"{how}, POST /v1/models takes plain weights")
    packed = [entry.name for entry in found if entry.method != zipped.STORED]
    if packed:
        how = "upload the bundle as it was given out, or zip it with compression off (zip -0)"
        raise BadFile(NO_BUNDLE, f"{several(packed)} are compressed: {how}")
    return found


def _manifest(upload: Upload, entries: dict[str, zipped.Entry]) -> dict[str, Any]:
    told = _json(upload, entries[MANIFEST])
    if told.get("format") != FORMAT:
        raise BadFile(NO_BUNDLE, f"its {MANIFEST} says format {quoted(str(told.get('format')))}, not {FORMAT}")
    if told.get("version") != VERSION or told["version"] is True:
        which = f"it is of version {quoted(str(told.get('version')))} of the format, and version {VERSION} is read here"
        raise BadFile("the bundle is of another version", f"{which}: update this installation, or export it anew")
    return told


def _files(manifest: dict[str, Any]) -> dict[str, dict[str, Any]]:
    files = manifest.get("files")
    if not isinstance(files, dict) or not all(isinstance(each, dict) for each in files.values()):
        raise BadFile(DAMAGED, f"{MANIFEST} does not list its files")
    return files


def _check_names(there: set[str], told: set[str]) -> None:
    if missing := told - there:
        raise BadFile(DAMAGED, f"{several(missing)} should be in it")
    if strays := there - told:
        raise BadFile(DAMAGED, f"{several(strays)} is in it and not in {MANIFEST}")


def _check_file(upload: Upload, entry: zipped.Entry, told: dict[str, Any]) -> None:
    if told.get("size") != entry.size:
        raise BadFile(DAMAGED, f"{quoted(entry.name)} has {size(entry.size)}, and {MANIFEST} says {told.get('size')}")
    digest = hashlib.sha256()
    for begin in range(0, entry.size, CHUNK):
        digest.update(upload.bytes_at(entry.begin + begin, min(CHUNK, entry.size - begin)))
    if told.get("digest") != digest.hexdigest():
        raise BadFile(
            "a digest is wrong", f"{quoted(entry.name)} is not the file that {MANIFEST} lists: get the bundle anew"
        )


def _json(upload: Upload, entry: zipped.Entry) -> dict[str, Any]:
    if entry.size > MAX_TEXT:
        raise BadFile(DAMAGED, f"{quoted(entry.name)} has {size(entry.size)}; {size(MAX_TEXT)} is the most")
    try:
        told = json.loads(zipped.read(upload, entry).decode(), parse_constant=_no_constant)
        json.dumps(told, allow_nan=False, ensure_ascii=False).encode()  # halves of characters, and 1e999
    except (ValueError, RecursionError) as error:
        raise BadFile(DAMAGED, f"{quoted(entry.name)} is not JSON that can be read: {str(error)[:100]}") from error
    if not isinstance(told, dict):
        raise BadFile(DAMAGED, f"{quoted(entry.name)} holds no object")
    return told


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")
