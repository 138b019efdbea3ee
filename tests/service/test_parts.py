"""Files that come in parts: the same model or dataset in the end, and nothing else in between."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import httpx
import numpy as np
import pytest
from making import make_key, npz, weights
from pieces import PART_BYTES, begin, content_digest, digest_of, piece, put, send

QUERY = {"name": "net", "architecture": "blk_2_fil_4", "input": "16x16x1"}


@pytest.fixture(scope="module")
def api(alice):
    return alice


def images(seed: int, count: int = 40) -> bytes:
    return npz(x=np.random.default_rng(seed).integers(0, 256, (count, 8, 8), np.uint8))


def complete(api, upload: dict, where: str = "/v1/models", headers: dict | None = None, **query) -> httpx.Response:
    query = query or (QUERY if where == "/v1/models" else {"name": "d"})
    return api.post(where, params={**query, "upload": upload["id"]}, headers=headers)


def refused(answer: httpx.Response, status: int, slug: str) -> str:
    assert (answer.status_code, answer.json().get("type")) == (status, f"/problems/{slug}"), answer.text
    return answer.json()["detail"]


class TestTheWay:
    def test_a_model_is_the_one_that_a_plain_upload_makes(self, api):
        sent = weights(seed=1)
        upload = send(api, sent)
        assert (upload["missing"], upload["parts"], upload["became"]) == ([], -(-len(sent) // PART_BYTES), None)
        made = complete(api, upload)
        assert made.status_code == 201, made.text
        plain = api.post("/v1/models", params=QUERY, content=sent)
        own = {"id", "created_at"}
        assert {k: v for k, v in made.json().items() if k not in own} == {
            k: v for k, v in plain.json().items() if k not in own
        }
        assert made.headers["location"] == f"/v1/models/{made.json()['id']}"
        assert api.get(f"{made.headers['location']}/weights").content == sent
        assert api.get(f"/v1/uploads/{upload['id']}").json()["became"] == made.headers["location"]

    def test_a_dataset_too_with_what_is_asked_of_it(self, api):
        made = complete(api, send(api, images(1)), "/v1/datasets", name="d", input="16x16x3", invert="true")
        assert made.status_code == 201, made.text
        assert made.json()["splits"]["train"]["shape"] == "16x16x3"

    def test_a_bundle_too(self, api):
        model = api.post("/v1/models", params=QUERY, content=weights(seed=2)).json()
        bundle = api.get(f"/v1/models/{model['id']}/bundle").content
        made = complete(api, send(api, bundle), "/v1/bundles", name="again")
        assert made.status_code == 201, made.text
        assert (made.json()["model"]["name"], made.json()["model"]["digest"]) == ("again", model["digest"])

    def test_parts_come_in_any_order_and_may_come_twice(self, api):
        sent = weights(seed=3)
        upload = begin(api, sent)
        for part in [*reversed(upload["missing"]), 1]:
            data = piece(upload, sent, part)
            answer = put(api, upload, part, data, **{"Content-Digest": content_digest(data)})
            assert answer.json() == {"part": part, "size": len(data), "digest": digest_of(data)}
        assert complete(api, upload).status_code == 201

    def test_a_file_of_one_part(self, api):
        sent = npz(x=np.zeros((2, 4, 4), np.uint8))
        assert len(sent) < PART_BYTES
        made = complete(api, send(api, sent), "/v1/datasets").json()
        assert api.get(f"/v1/datasets/{made['id']}/file").content == sent

    def test_begun_again_it_goes_on_where_it_was(self, api):
        sent = weights(seed=4)
        first = send(api, sent, but=(2, 3))
        assert first["missing"] == [2, 3]
        again = api.post("/v1/uploads", json={"digest": digest_of(sent), "size": len(sent)})
        assert (again.status_code, again.json()["id"], again.json()["missing"]) == (200, first["id"], [2, 3])
        assert again.json()["expires_at"] > first["expires_at"]
        assert complete(api, send(api, sent)).status_code == 201
        after = api.post("/v1/uploads", json={"digest": digest_of(sent), "size": len(sent)})
        assert after.status_code == 201, "another file of the same bytes"
        api.delete(f"/v1/uploads/{after.json()['id']}")

    def test_parts_go_when_it_has_become_something(self, api, locked):
        sent = weights(seed=5)
        upload = send(api, sent)
        parts = [digest_of(piece(upload, sent, part)) for part in range(1, upload["parts"] + 1)]
        assert all(file_of(api, digest)["kept_for"] for digest in parts)
        assert file_of(api, parts[1])["kept_for"] == [f"{upload['id']}/parts/2"]
        assert complete(api, upload).status_code == 201
        assert not any(is_kept(api, digest) for digest in parts)
        assert is_kept(api, digest_of(sent))
        assert not any((locked.home / "spool").iterdir())

    def test_deleted_it_is_gone_with_its_parts(self, api):
        sent = weights(seed=6)
        upload = send(api, sent)
        assert upload["id"] in [item["id"] for item in api.get("/v1/uploads").json()["items"]]
        assert api.delete(f"/v1/uploads/{upload['id']}").status_code == 204
        for answer in (
            api.get(f"/v1/uploads/{upload['id']}"),
            api.delete(f"/v1/uploads/{upload['id']}"),
            put(api, upload, 1, piece(upload, sent, 1)),
            complete(api, upload),
        ):
            refused(answer, 404, "not-found")
        assert not is_kept(api, digest_of(piece(upload, sent, 1)))


class TestOnce:
    def test_the_same_request_again_gets_the_same_answer(self, api):
        upload = send(api, weights(seed=7))
        first, second = complete(api, upload), complete(api, upload)
        assert (first.status_code, second.status_code) == (201, 201)
        assert (first.json(), first.headers["location"]) == (second.json(), second.headers["location"])
        assert second.headers["idempotency-replayed"] == "true"
        refused(complete(api, upload, **QUERY | {"name": "other"}), 409, "upload-complete")
        refused(complete(api, upload, "/v1/datasets"), 409, "upload-complete")
        refused(put(api, upload, 1, b"x" * PART_BYTES), 409, "upload-complete")

    def test_with_a_key_as_any_other_post(self, api):
        upload, headers = send(api, weights(seed=8)), {"Idempotency-Key": "parts-8"}
        first, second = (complete(api, upload, headers=headers) for _ in range(2))
        assert first.json() == second.json()
        other = complete(api, send(api, weights(seed=9)), headers=headers)
        refused(other, 409, "idempotency-key-reused")

    def test_many_at_once_make_one(self, api):
        upload = send(api, weights(seed=10))
        before = len(api.get("/v1/models?limit=200").json()["items"])
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: complete(api, upload), range(4)))
        assert {answer.status_code for answer in answers} == {201}
        assert len({answer.json()["id"] for answer in answers}) == 1
        assert len(api.get("/v1/models?limit=200").json()["items"]) == before + 1

    def test_two_that_put_the_same_part_at_once(self, api):
        sent = weights(seed=11)
        upload = send(api, sent, but=(1,))
        data = piece(upload, sent, 1)
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: put(api, upload, 1, data), range(8)))
        assert {answer.status_code for answer in answers} == {200}
        assert complete(api, upload).status_code == 201


class TestBadInput:
    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({"digest": "0" * 64}, "body.size"),
            ({"digest": "0" * 64, "size": 0}, "body.size"),
            ({"digest": "0" * 64, "size": -1}, "body.size"),
            ({"digest": "A" * 64, "size": 1}, "body.digest"),
            ({"digest": "0" * 63, "size": 1}, "body.digest"),
            ({"digest": "0" * 64, "size": 1, "name": "x"}, "body.name"),
        ],
    )
    def test_what_cannot_be_begun(self, api, body, field):
        answer = api.post("/v1/uploads", json=body)
        refused(answer, 422, "invalid")
        assert [error["field"] for error in answer.json()["errors"]] == [field]

    def test_more_than_may_be_uploaded(self, api):
        refused(api.post("/v1/uploads", json={"digest": "0" * 64, "size": 2**43}), 413, "too-large")

    def test_parts_that_there_are_not(self, api):
        sent = weights(seed=12)
        upload = begin(api, sent)
        for part in (0, upload["parts"] + 1, 10**9, "x"):
            answer = api.put(f"/v1/uploads/{upload['id']}/parts/{part}", content=b"x" * PART_BYTES)
            refused(answer, 422, "invalid")
            assert answer.json()["errors"][0]["field"] == "path.part"

    def test_too_much_and_too_little_announced_or_not(self, api, locked):
        sent = weights(seed=13)
        upload = begin(api, sent)
        refused(put(api, upload, 1, b"x" * (PART_BYTES + 1)), 413, "too-large")
        refused(put(api, upload, 1, b"x" * (PART_BYTES - 1)), 422, "invalid")
        refused(put(api, upload, 1, b""), 422, "invalid")
        path = f"/v1/uploads/{upload['id']}/parts/1"
        refused(api.put(path, content=(b"x" * 100 for _ in range(11))), 413, "too-large")
        refused(api.put(path, content=(b"x" * 100 for _ in range(9))), 422, "invalid")
        refused(put(api, upload, upload["parts"], b"x" * PART_BYTES), 413, "too-large")
        assert api.get(f"/v1/uploads/{upload['id']}").json()["missing"] == upload["missing"]
        assert not any((locked.home / "spool").iterdir())

    def test_a_part_that_was_damaged_on_the_way(self, api):
        upload = begin(api, weights(seed=14))
        damaged = put(api, upload, 1, b"y" * PART_BYTES, **{"Content-Digest": content_digest(b"x" * PART_BYTES)})
        refused(damaged, 422, "digest-mismatch")
        for header in ("sha-256=x", "sha-256=:AAAA:", "md5=:1B2M2Y8AsgTpgAmY7PhCfg==:"):
            refused(put(api, upload, 1, b"x" * PART_BYTES, **{"Content-Digest": header}), 422, "invalid")
        assert 1 in api.get(f"/v1/uploads/{upload['id']}").json()["missing"]

    def test_a_part_is_missing(self, api):
        upload = send(api, weights(seed=15), but=(2, 4))
        assert "2, 4" in refused(complete(api, upload), 409, "upload-incomplete")

    def test_another_file_than_was_announced_can_be_mended(self, api):
        sent = weights(seed=16)
        upload = send(api, sent, but=(2,))
        put(api, upload, 2, b"z" * PART_BYTES)
        assert digest_of(sent) in refused(complete(api, upload), 422, "digest-mismatch")
        put(api, upload, 2, piece(upload, sent, 2))
        assert complete(api, upload).status_code == 201

    def test_a_file_that_is_no_good_is_refused_by_the_same_checks(self, api, locked):
        sent = weights(seed=17)[:-7]
        upload = send(api, sent)
        theirs, ours = api.post("/v1/models", params=QUERY, content=sent), complete(api, upload)
        refused(ours, 422, "unfit-file")
        assert ours.json() | {"instance": ""} == theirs.json() | {"instance": ""}
        assert not any((locked.home / "spool").iterdir())

    def test_a_wrong_word_costs_no_second_upload(self, api):
        upload = send(api, weights(seed=18))
        assert complete(api, upload, **QUERY | {"architecture": "blk_3_fil_4"}).status_code == 422
        assert complete(api, upload, **QUERY | {"input": "16x16"}).status_code == 422
        assert complete(api, upload).status_code == 201

    def test_a_body_beside_it(self, api):
        upload = send(api, weights(seed=19))
        both = api.post("/v1/models", params={**QUERY, "upload": upload["id"]}, content=weights())
        assert "send no body" in refused(both, 422, "invalid")
        assert complete(api, upload).status_code == 201

    def test_a_folder_gives_no_links(self, api):
        upload = begin(api, weights(seed=20))
        refused(api.post(f"/v1/uploads/{upload['id']}/links", json={"parts": [1]}), 409, "no-links")
        for parts in ([], [0], [upload["parts"] + 1], [1] * 101):
            refused(api.post(f"/v1/uploads/{upload['id']}/links", json={"parts": parts}), 422, "invalid")


class TestOthers:
    def test_a_foreign_tenant_sees_nothing_of_it(self, api, admin, knock):
        sent = weights(seed=21)
        upload = send(api, sent)
        with knock(make_key(admin, tenant="mallory", scopes=["read", "write"])) as mallory:
            for answer in (
                mallory.get(f"/v1/uploads/{upload['id']}"),
                mallory.delete(f"/v1/uploads/{upload['id']}"),
                put(mallory, upload, 1, piece(upload, sent, 1)),
                mallory.post(f"/v1/uploads/{upload['id']}/links", json={"parts": [1]}),
                complete(mallory, upload),
            ):
                refused(answer, 404, "not-found")
            assert mallory.get("/v1/uploads").json()["items"] == []
            theirs = begin(mallory, sent)
            assert (theirs["id"] != upload["id"], len(theirs["missing"])) == (True, upload["parts"])
        assert complete(api, upload).status_code == 201

    def test_a_key_that_may_only_read(self, admin, knock):
        with knock(make_key(admin, tenant="reader", scopes=["read"])) as reader:
            refused(reader.post("/v1/uploads", json={"digest": "0" * 64, "size": 1}), 403, "scope")

    def test_the_quota_counts_from_the_beginning_and_once(self, admin, knock):
        first, second = images(2, count=60), images(3, count=60)
        key = make_key(admin, tenant="narrow", scopes=["read", "write"], max_stored_bytes=len(first) + 100)
        with knock(key) as narrow:
            upload = begin(narrow, first)
            answer = narrow.post("/v1/uploads", json={"digest": digest_of(second), "size": len(second)})
            refused(answer, 403, "quota")
            refused(narrow.post("/v1/datasets?name=d", content=second), 403, "quota")
            assert send(narrow, first)["id"] == upload["id"]
            assert complete(narrow, upload, "/v1/datasets").status_code == 201
            refused(narrow.post("/v1/uploads", json={"digest": digest_of(second), "size": len(second)}), 403, "quota")


def test_one_that_nobody_goes_on_with_is_there_no_more(api, locked):
    sent = weights(seed=22)
    upload = send(api, sent)
    with closing(sqlite3.connect(locked.home / "flashcards.db", timeout=60)) as ledger, ledger:
        ledger.execute("UPDATE upload SET expires_at = 0 WHERE id = ?", [upload["id"]])
    refused(complete(api, upload), 404, "not-found")
    refused(put(api, upload, 1, piece(upload, sent, 1)), 404, "not-found")
    assert upload["id"] not in [item["id"] for item in api.get("/v1/uploads").json()["items"]]
    assert begin(api, sent)["id"] != upload["id"]


def file_of(api, digest: str) -> dict | None:
    items = api.get("/v1/storage", params={"limit": 200}).json()["items"]
    return next((item for item in items if item["digest"] == digest), None)


def is_kept(api, digest: str) -> bool:
    """Else it may be collected, without any grace."""
    file = file_of(api, digest)
    return file is not None and (file["kept_for"] != [] or file["expires_at"] > file["created_at"])
