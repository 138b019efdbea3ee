"""Links that the service answers with lead away from it: what goes along, and what may come back."""

import hashlib
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from flashcards import Client
from flashcards.errors import ApiError, UnexpectedAnswer

CONTENT = b"what the store holds"
MODEL = "model_" + "0" * 32


@contextmanager
def server(answer):
    """`answer` gets the request and gives status, headers and body."""
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append((self.path, dict(self.headers)))
            status, headers, body = answer(self)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}", seen
    finally:
        httpd.shutdown()
        thread.join()
        httpd.server_close()


@contextmanager
def linked(store_answer, digest: str):
    """A client of a service that answers downloads with a link to a store."""
    with server(store_answer) as (store_url, seen):
        link = (307, {"Location": f"{store_url}/object", "ETag": f'"{digest}"'}, b"")
        with server(lambda _: link) as (url, _), Client(url, direct_downloads=True) as client:
            client._http._client.headers["Authorization"] = "Bearer a secret"
            yield client, seen


def test_the_store_gets_no_header_of_ours(tmp_path):
    digest = hashlib.sha256(CONTENT).hexdigest()
    with linked(lambda _: (200, {"ETag": '"md5-of-the-store"'}, CONTENT), digest) as (client, seen):
        assert client.models.weights(MODEL, tmp_path / "weights.safetensors").read_bytes() == CONTENT
    ((path, headers),) = seen
    assert path == "/object"
    assert "Authorization" not in headers


def test_what_comes_from_the_store_is_checked_against_the_service_s_digest(tmp_path):
    with (
        linked(lambda _: (200, {}, CONTENT), "0" * 64) as (client, _),
        pytest.raises(UnexpectedAnswer, match="damaged"),
    ):
        client.models.weights(MODEL, tmp_path / "weights.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_a_link_that_is_over_is_an_error_in_words(tmp_path):
    with linked(lambda _: (403, {}, b"<Error>expired</Error>"), "0" * 64) as (client, _), pytest.raises(ApiError):
        client.models.weights(MODEL, tmp_path / "weights.safetensors")


def test_no_link_leads_further(tmp_path):
    with (
        linked(lambda _: (302, {"Location": "http://127.0.0.1:1/elsewhere"}, b""), "0" * 64) as (client, seen),
        pytest.raises(ApiError),
    ):
        client.models.weights(MODEL, tmp_path / "weights.safetensors")
    assert len(seen) == 1


def test_a_link_into_the_machine_is_not_followed(tmp_path):
    link = (307, {"Location": "file:///etc/passwd"}, b"")
    with (
        server(lambda _: link) as (url, _),
        Client(url, direct_downloads=True) as client,
        pytest.raises(UnexpectedAnswer),
    ):
        client.models.weights(MODEL, tmp_path / "weights.safetensors")
