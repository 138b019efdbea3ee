import json
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest
from making import finished, make_key, npz, push_dataset, push_model, submit
from sqlalchemy import select

from flashcards.contract.tokens import new_token
from ledger.db import Database
from ledger.tables import ApiKey, Blob, Dataset, Idempotency


def type_of(answer) -> tuple[int, str]:
    return answer.status_code, answer.json()["type"]


class TestWhoComesIn:
    def test_nobody_without_a_key(self, knock):
        with knock(None) as nobody:
            answer = nobody.get("/v1/jobs")
            assert type_of(answer) == (401, "/problems/unauthorized")
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert type_of(nobody.get("/nowhere")) == (401, "/problems/unauthorized")

    @pytest.mark.parametrize(
        "header",
        ["", "Bearer", "Basic YWRtaW46YWRtaW4=", "Bearer fc_", "Bearer a b", "fc_x", "Bearer " + "x" * 5000],
    )
    def test_nobody_with_a_malformed_key(self, knock, header):
        with knock(None) as nobody:
            answer = nobody.get("/v1/jobs", headers={"Authorization": header})
            assert type_of(answer) == (401, "/problems/unauthorized")

    def test_nobody_with_a_key_of_the_right_form(self, knock):
        with knock(new_token()) as stranger:
            assert "nobody here knows" in stranger.get("/v1/jobs").json()["detail"]

    def test_a_mistyped_key_is_told_apart(self, knock, admin_key):
        with knock(admin_key[:-1] + ("a" if admin_key[-1] != "a" else "b")) as clumsy:
            assert "not a key" in clumsy.get("/v1/jobs").json()["detail"]

    def test_probes_and_the_page_need_none(self, knock):
        with knock(None) as nobody:
            for path in ("/healthz", "/readyz", "/openapi.json", "/"):
                assert nobody.get(path).status_code == 200, path

    def test_any_host_name_is_answered_since_the_key_decides(self, admin):
        assert admin.get("/v1/jobs", headers={"Host": "flashcards.example"}).status_code == 200

    def test_figures_of_all_tenants_are_for_the_operator(self, admin, mallory, knock):
        assert admin.get("/metrics").status_code == 200
        assert type_of(mallory.get("/metrics")) == (403, "/problems/scope")
        with knock(None) as nobody:
            assert nobody.get("/metrics").status_code == 401


class TestALifeOfAKey:
    def test_it_is_shown_once(self, admin):
        made = admin.post("/v1/keys", json={"name": "once"}).json()
        assert made["key"].startswith(made["hint"])
        assert made["scopes"] == ["read", "write"]
        read = admin.get(f"/v1/keys/{made['id']}").json()
        assert read == {name: value for name, value in made.items() if name != "key"}
        assert made["key"] not in admin.get("/v1/keys").text

    def test_a_replay_does_not_show_it_again(self, admin, locked):
        headers = {"Idempotency-Key": "make-it-once"}
        first = admin.post("/v1/keys", json={"name": "twice"}, headers=headers)
        again = admin.post("/v1/keys", json={"name": "twice"}, headers=headers)
        assert again.headers["idempotency-replayed"] == "true"
        assert again.json() == {**first.json(), "key": None}
        other = admin.post("/v1/keys", json={"name": "other"}, headers=headers)
        assert type_of(other) == (409, "/problems/idempotency-key-reused")

    def test_neither_it_nor_its_parts_are_in_the_database(self, admin, locked):
        made = admin.post("/v1/keys", json={"name": "hidden"}, headers={"Idempotency-Key": "hidden"}).json()
        db = Database(f"sqlite:///{locked.home / 'flashcards.db'}")
        with db.read() as session:
            row = session.get_one(ApiKey, made["id"])
            kept = json.dumps([row.digest, row.hint, *session.scalars(select(Idempotency.body))])
        db.close()
        assert made["key"] not in kept
        assert made["key"][9:] not in kept

    def test_it_says_when_it_was_used(self, admin, knock):
        made = admin.post("/v1/keys", json={"name": "used"}).json()
        assert made["last_used_at"] is None
        with knock(made["key"]) as client:
            client.get("/v1/jobs")
        assert admin.get(f"/v1/keys/{made['id']}").json()["last_used_at"] is not None

    def test_revoked_it_opens_nothing(self, admin, knock):
        made = admin.post("/v1/keys", json={"name": "revoked"}).json()
        with knock(made["key"]) as client:
            assert client.get("/v1/jobs").status_code == 200
            assert admin.delete(f"/v1/keys/{made['id']}").status_code == 204
            answer = client.get("/v1/jobs")
            assert type_of(answer) == (401, "/problems/unauthorized")
            assert "revoked" in answer.json()["detail"]
        assert admin.delete(f"/v1/keys/{made['id']}").status_code == 204
        assert admin.get(f"/v1/keys/{made['id']}").json()["revoked_at"] is not None

    def test_expired_it_opens_nothing(self, admin, knock, locked):
        made = admin.post("/v1/keys", json={"name": "old", "expires_at": _in(hours=1)}).json()
        with knock(made["key"]) as client:
            assert client.get("/v1/jobs").status_code == 200
            db = Database(f"sqlite:///{locked.home / 'flashcards.db'}")
            with db.write() as session:
                session.get_one(ApiKey, made["id"]).expires_at = 1.0
            db.close()
            assert "expired" in client.get("/v1/jobs").json()["detail"]

    def test_the_key_in_hand_cannot_revoke_itself(self, admin):
        mine = [key for key in admin.get("/v1/keys").json()["items"] if key["name"] == "FLASHCARDS_ADMIN_KEY_FILE"]
        assert admin.delete(f"/v1/keys/{mine[0]['id']}").status_code == 409

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"name": ""},
            {"name": "x", "scopes": []},
            {"name": "x", "scopes": ["root"]},
            {"name": "x", "tenant": "../up"},
            {"name": "x", "tenant": "Upper"},
            {"name": "x", "expires_at": "2001-01-01T00:00:00Z"},
            {"name": "x", "expires_at": "2099-01-01T00:00:00"},
            {"name": "x", "requests_per_minute": 0},
            {"name": "x", "max_stored_bytes": -1},
            {"name": "x", "key": "fc_mine"},
        ],
    )
    def test_a_wish_that_makes_no_sense_is_refused(self, admin, body):
        assert admin.post("/v1/keys", json=body).status_code == 422


class TestScopes:
    def test_a_reader_does_not_write(self, admin, knock):
        with knock(make_key(admin, scopes=["read"])) as reader:
            assert reader.get("/v1/jobs").status_code == 200
            assert type_of(reader.post("/v1/jobs", json={"kind": "noop"})) == (403, "/problems/scope")

    def test_a_writer_does_not_read(self, admin, knock):
        with knock(make_key(admin, scopes=["write"])) as writer:
            assert writer.post("/v1/jobs", json={"kind": "noop"}).status_code == 202
            assert type_of(writer.get("/v1/jobs")) == (403, "/problems/scope")

    def test_only_admins_make_keys(self, admin, knock):
        with knock(make_key(admin, scopes=["read", "write"])) as user:
            for answer in (user.post("/v1/keys", json={"name": "more"}), user.get("/v1/keys")):
                assert type_of(answer) == (403, "/problems/scope")

    def test_an_admin_of_a_tenant_stays_in_its_tenant(self, admin, mallory):
        made = mallory.post("/v1/keys", json={"name": "mine"}).json()
        assert made["tenant"] == "mallory"
        answer = mallory.post("/v1/keys", json={"name": "theirs", "tenant": "alice"})
        assert type_of(answer) == (403, "/problems/scope")
        assert type_of(mallory.get("/v1/keys", params={"tenant": "default"})) == (403, "/problems/scope")
        assert {key["tenant"] for key in mallory.get("/v1/keys").json()["items"]} == {"mallory"}
        assert {key["tenant"] for key in admin.get("/v1/keys", params={"tenant": "mallory"}).json()["items"]} == {
            "mallory"
        }


class TestLimits:
    def test_too_many_requests_in_a_minute(self, admin, knock):
        with knock(make_key(admin, requests_per_minute=5)) as hasty:
            answers = [hasty.get("/v1/jobs") for _ in range(12)]  # two minutes may meet in the middle
        refused = [answer for answer in answers if answer.status_code == 429]
        assert 2 <= len(refused) <= 7
        assert type_of(refused[0]) == (429, "/problems/rate-limit")
        assert 1 <= int(refused[0].headers["retry-after"]) <= 60
        assert answers[0].headers["ratelimit-limit"] == "5"
        assert answers[0].headers["ratelimit-remaining"] == "4"
        assert refused[0].headers["ratelimit-remaining"] == "0"

    def test_too_many_unfinished_jobs(self, admin, knock):
        with knock(make_key(admin, tenant="busy", max_unfinished_jobs=2)) as busy:
            model = push_model(busy)
            long = {"kind": "capture", "model": model["id"], "count": 1000, "r": 1000}
            first = submit(busy, **long)
            second = submit(busy, **long)
            answer = busy.post("/v1/jobs", json=long)
            assert type_of(answer) == (429, "/problems/quota")
            assert answer.headers["retry-after"]
            busy.post(f"/v1/jobs/{second['id']}/cancel")
            busy.post(f"/v1/jobs/{first['id']}/cancel")
            assert busy.get(f"/v1/jobs/{first['id']}", params={"wait": 20}).json()["state"] == "cancelled"
            assert busy.post("/v1/jobs", json={"kind": "noop"}).status_code == 202
            answer = busy.post("/v1/jobs", json={**long, "shards": 2})
            assert type_of(answer) == (429, "/problems/quota")
            assert "this makes 3 more" in answer.json()["detail"]

    def test_too_many_bytes(self, admin, knock, digits_npz):
        size = len(digits_npz)
        with knock(make_key(admin, tenant="full", max_stored_bytes=size + 10)) as full:
            push_dataset(full, digits_npz)
            answer = full.post("/v1/datasets", params={"name": "more"}, content=digits_npz[:-1])
            assert type_of(answer) == (403, "/problems/quota")
            streamed = (part for part in (digits_npz, b"more"))
            assert full.post("/v1/datasets", params={"name": "more"}, content=streamed).status_code in (403, 422)


class TestWithoutKeys:
    def test_there_is_nothing_to_make(self, api):
        assert api.post("/v1/keys", json={"name": "x"}).status_code == 409
        assert api.get("/v1/keys").json()["items"] == []


class TestStart:
    def start(self, service, **settings) -> subprocess.CompletedProcess:
        environment = {
            **service.environment,
            **{f"FLASHCARDS_{name.upper()}": str(value) for name, value in settings.items()},
        }
        command = [sys.executable, "-m", "service.api"]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30)

    def test_a_file_that_holds_no_key_is_refused(self, locked, tmp_path):
        (tmp_path / "key").write_text("hunter2")
        ended = self.start(locked, admin_key_file=tmp_path / "key", home=tmp_path / "home", port=0)
        assert ended.returncode != 0
        assert "keys generate" in ended.stderr
        assert "hunter2" not in ended.stderr

    @pytest.mark.slow
    def test_a_shared_database_needs_a_shared_secret(self, locked, tmp_path):
        url = f"sqlite:///{tmp_path / 'shared.db'}"
        ended = self.start(locked, database_url=url, home=tmp_path / "home", port=0)
        assert ended.returncode != 0
        assert "FLASHCARDS_KEY_SECRET" in ended.stderr

    @pytest.mark.slow
    def test_a_secret_file_that_is_not_there_is_said(self, locked, tmp_path):
        ended = self.start(locked, database_url_file=tmp_path / "nowhere", home=tmp_path / "home")
        assert ended.returncode != 0
        assert "FLASHCARDS_DATABASE_URL_FILE" in ended.stderr

    def test_the_files_are_private(self, locked):
        for path in (locked.home.parent / "admin-key", locked.home / "key-secret"):
            assert path.stat().st_mode & 0o777 == 0o600


def _in(**duration) -> str:
    return (datetime.now(UTC) + timedelta(**duration)).isoformat()


class TestDataThatIsNotRetained:
    def test_no_row_and_no_blob_are_left_when_its_job_has_ended(self, admin, knock, locked, digits):
        images = npz(x_train=digits["x_train"])
        with knock(make_key(admin, tenant="discreet", retain_data=False)) as discreet:
            dataset = push_dataset(discreet, images)
            assert dataset["expires_at"] is not None
            blob = locked.home / "store" / "discreet" / dataset["digest"]
            assert blob.exists()
            job = finished(
                discreet, kind="train", dataset=dataset["id"], architecture="blk_1_fil_8", epochs=4, learning_rate=5e-3
            )
            deadline = time.monotonic() + 10
            while blob.exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            assert not blob.exists()
            assert discreet.get(f"/v1/datasets/{dataset['id']}").status_code == 404
            assert dataset["digest"] not in discreet.get("/v1/storage").text
            assert discreet.get(f"/v1/jobs/{job['id']}/artifacts/reconstructions.png").status_code == 404
            assert discreet.get(f"/v1/models/{job['result']['model']}").status_code == 200
        db = Database(f"sqlite:///{locked.home / 'flashcards.db'}")
        with db.read() as session:
            assert session.get(Dataset, dataset["id"]) is None
            assert session.get(Blob, ("discreet", dataset["digest"])) is None
        db.close()
        left = [path for path in locked.home.rglob("*") if path.is_file() and path.stat().st_size == len(images)]
        assert [path for path in left if path.read_bytes() == images] == []
