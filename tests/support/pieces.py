"""A file in parts, as somebody with nothing but HTTP sends it."""

import base64
import hashlib

import httpx

#: So small that a file of a test has several.
PART_BYTES = 1000


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def begin(api: httpx.Client, content: bytes) -> dict:
    answer = api.post("/v1/uploads", json={"digest": digest_of(content), "size": len(content)})
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


def piece(upload: dict, content: bytes, part: int) -> bytes:
    return content[(part - 1) * upload["part_size"] : part * upload["part_size"]]


def put(api: httpx.Client, upload: dict, part: int, data: bytes, **headers: str) -> httpx.Response:
    return api.put(f"/v1/uploads/{upload['id']}/parts/{part}", content=data, headers=headers)


def content_digest(data: bytes) -> str:
    return f"sha-256=:{base64.b64encode(hashlib.sha256(data).digest()).decode()}:"


def send(api: httpx.Client, content: bytes, but: tuple[int, ...] = ()) -> dict:
    """All of it, or all but some parts: the upload as it is then."""
    upload = begin(api, content)
    for part in upload["missing"]:
        if part not in but:
            answer = put(api, upload, part, piece(upload, content, part))
            assert answer.status_code == 200, answer.text
    return api.get(f"/v1/uploads/{upload['id']}").json()
