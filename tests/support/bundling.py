"""Bundles on their way, and bundles that lie."""

import hashlib
import io
import json
import zipfile


def bundle_of(api, what: str) -> bytes:
    answer = api.get(f"/v1/{what}/bundle")
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/zip"), answer.text
    return answer.content


def take(api, content: bytes, **query) -> dict:
    answer = api.post("/v1/bundles", params=query, content=content)
    assert answer.status_code == 201, answer.text
    return answer.json()


def refusal(api, content: bytes) -> dict:
    answer = api.post("/v1/bundles", content=content)
    assert answer.status_code == 422, answer.text
    assert answer.json()["type"] == "/problems/unfit-file"
    return answer.json()


def opened(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def packed(files: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def changed(bundle: bytes, names: dict[str, bytes | None] | None = None, **manifest) -> bytes:
    """A bundle whose manifest tells of these files as they are, unless `manifest` says otherwise."""
    files = opened(bundle)
    told = json.loads(files["bundle.json"])
    for name, content in (names or {}).items():
        if content is None:
            del files[name], told["files"][name]
        else:
            files[name] = content
            told["files"][name] = {"size": len(content), "digest": hashlib.sha256(content).hexdigest()}
    files["bundle.json"] = json.dumps({**told, **manifest}).encode()
    return packed(files)
