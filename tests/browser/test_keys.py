"""With keys on: nobody sees anything before they sign in, and then their own alone."""

import pytest
from making import make_key, submit

pytestmark = pytest.mark.slow


def sign_in(page, key: str) -> None:
    page.see("This service takes a key")
    field = page.one("#key")
    field.clear()
    field.send_keys(key)
    page.press("Sign in")


def test_two_tenants_see_their_own(locked_page, alice, mallory, admin):
    mine = submit(alice, kind="noop", labels={"whose": "alice"})["id"]
    submit(mallory, kind="noop", labels={"whose": "mallory"})
    locked_page.open("/jobs", "Sign in")
    locked_page.check()
    assert "alice" not in locked_page.text
    sign_in(locked_page, make_key(admin, tenant="alice"))
    locked_page.see("whose: alice")
    assert "whose: mallory" not in locked_page.text
    assert locked_page.run("return document.cookie") == ""
    locked_page.check()
    locked_page.press("Sign out")
    locked_page.see("This service takes a key")
    assert "whose: alice" not in locked_page.text
    sign_in(locked_page, make_key(admin, tenant="mallory"))
    locked_page.see("whose: mallory")
    assert "whose: alice" not in locked_page.text
    locked_page.open(f"/jobs/{mine}", "There is no such thing")


def test_a_key_that_opens_nothing_is_told(locked_page):
    locked_page.open("/", "Sign in")
    sign_in(locked_page, "fc_wrong")
    locked_page.see("That key opens nothing here")
    assert all("401" in message for message in locked_page.errors())


def test_a_key_revoked_while_the_page_is_open(locked_page, admin):
    made = admin.post("/v1/keys", json={"name": "soon gone"}).json()
    locked_page.open("/jobs")
    sign_in(locked_page, made["key"])
    locked_page.see("Every piece of work")
    admin.delete(f"/v1/keys/{made['id']}")
    locked_page.see("This key was revoked", 30)
    assert not locked_page.is_seen("#view")


def test_a_key_that_may_only_read_has_no_buttons_that_write(locked_page, admin, alice):
    submit(alice, kind="noop")
    locked_page.open("/datasets")
    sign_in(locked_page, make_key(admin, tenant="alice", scopes=["read"]))
    locked_page.see("All datasets")
    assert not locked_page.all(".drop")
