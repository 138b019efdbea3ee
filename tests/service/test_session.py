"""Signing in: the key goes into a cookie, and the cookie opens what the key opens, from our own page alone."""

import httpx
import pytest
from making import make_key

OURS = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def visitor(locked):
    with httpx.Client(base_url=locked.url, timeout=60) as client:
        yield client


@pytest.fixture
def key(admin) -> str:
    return make_key(admin, tenant="visitors")


@pytest.fixture
def signed_in(visitor, key):
    assert visitor.post("/session", json={"key": key}, headers=OURS).status_code == 200
    return visitor


def test_without_keys_everybody_is_in(api):
    assert api.get("/session").json()["signed_in"]
    assert not api.get("/session").json()["locked"]


def test_with_keys_nobody_is_until_they_sign_in(visitor, key):
    assert visitor.get("/session").json()["signed_in"] is False
    assert visitor.get("/v1/jobs").status_code == 401
    answer = visitor.post("/session", json={"key": f" {key}\n"}, headers=OURS)
    assert answer.json() == visitor.get("/session").json()
    assert (answer.json()["tenant"], answer.json()["scopes"]) == ("visitors", ["read", "write"])
    assert visitor.get("/v1/jobs").status_code == 200


def test_no_script_reads_the_cookie_and_no_other_site_sends_it(visitor, key):
    cookie = visitor.post("/session", json={"key": key}, headers=OURS).headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "path=/" in cookie
    assert key not in visitor.get("/session").text


def test_a_key_that_opens_nothing_is_refused_and_not_kept(visitor):
    answer = visitor.post("/session", json={"key": "fc_nothing"}, headers=OURS)
    assert (answer.status_code, answer.json()["type"]) == (401, "/problems/unauthorized")
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://other.example"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
    ],
    ids=str,
)
def test_another_page_changes_nothing_with_our_cookie(signed_in, headers):
    for method, path in (("POST", "/v1/jobs"), ("POST", "/v1/learners"), ("DELETE", "/session"), ("POST", "/session")):
        answer = signed_in.request(method, path, json={"kind": "noop"}, headers=headers)
        assert (answer.status_code, answer.json()["type"]) == (403, "/problems/foreign-page"), path
    assert signed_in.get("/session").json()["signed_in"]


def test_our_own_page_does(signed_in, locked):
    for ours in (OURS, {"Origin": locked.url}):
        assert signed_in.post("/v1/jobs", json={"kind": "noop"}, headers=ours).status_code == 202


def test_a_header_goes_before_the_cookie(signed_in, admin_key):
    """A script with a key of its own is not held to where it comes from."""
    headers = {"Authorization": f"Bearer {admin_key}"}
    assert signed_in.post("/v1/jobs", json={"kind": "noop"}, headers=headers).status_code == 202
    assert signed_in.get("/v1/keys", headers=headers).status_code == 200
    assert signed_in.get("/v1/keys").status_code == 403


def test_a_revoked_key_says_so(visitor, admin):
    made = admin.post("/v1/keys", json={"name": "short-lived"}).json()
    visitor.post("/session", json={"key": made["key"]}, headers=OURS)
    admin.delete(f"/v1/keys/{made['id']}")
    assert visitor.get("/v1/jobs").json()["detail"] == "this key was revoked"
    assert visitor.get("/session").json()["reason"] == "this key was revoked"


def test_signing_out_leaves_nothing(signed_in):
    assert signed_in.delete("/session", headers=OURS).status_code == 204
    assert signed_in.get("/v1/jobs").status_code == 401


def test_a_second_tenant_sees_nothing_of_the_first(signed_in, locked, admin):
    job = signed_in.post("/v1/jobs", json={"kind": "noop"}, headers=OURS).json()["id"]
    with httpx.Client(base_url=locked.url) as other:
        other.post("/session", json={"key": make_key(admin, tenant="others")}, headers=OURS)
        assert other.get(f"/v1/jobs/{job}").status_code == 404
        assert job not in other.get("/v1/jobs").text


def test_cookies_that_make_no_sense_open_nothing(visitor):
    for cookie in ("flashcards_key", "flashcards_key=", 'flashcards_key="', "a b;;=;flashcards_key=fc_x", "x=1"):
        assert visitor.get("/v1/jobs", headers={"Cookie": cookie}).status_code == 401
