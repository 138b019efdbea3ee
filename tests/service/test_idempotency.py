import threading
import time

import pytest
from making import npz, weights
from sqlalchemy import update

from ledger.db import Database
from ledger.migrate import migrate
from ledger.tables import DEFAULT_TENANT, Idempotency
from service import idempotency
from service.errors import TwinInFlight
from service.idempotency import Once

QUERY = {"name": "net", "architecture": "blk_2_fil_4", "input": "16x16x1"}


def post(api, key, **spec):
    return api.post("/v1/jobs", json=spec, headers={"Idempotency-Key": key})


def test_the_same_request_again_gets_the_same_answer(api, model):
    spec = {"kind": "capture", "model": model["id"], "count": 2, "r": 1}
    first, second = post(api, "same", **spec), post(api, "same", **spec)
    assert first.status_code == second.status_code == 202
    assert first.json() == second.json()
    assert first.headers["location"] == second.headers["location"]
    assert second.headers["idempotency-replayed"] == "true"


def test_another_body_under_the_same_key_is_a_conflict(api, model):
    post(api, "other", kind="capture", model=model["id"], count=2, r=1)
    clash = post(api, "other", kind="capture", model=model["id"], count=3, r=1)
    assert clash.status_code == 409
    assert clash.json()["type"] == "/problems/idempotency-key-reused"


def test_a_refused_request_does_not_use_up_its_key(api, model):
    assert post(api, "refused", kind="capture", model="model_" + "0" * 32).status_code == 422
    assert post(api, "refused", kind="capture", model=model["id"], count=2, r=1).status_code == 202


def test_an_upload_is_known_by_its_bytes(api):
    headers = {"Idempotency-Key": "upload"}
    first = api.post("/v1/models", params=QUERY, content=weights(), headers=headers)
    again = api.post("/v1/models", params=QUERY, content=weights(), headers=headers)
    other = api.post("/v1/models", params=QUERY, content=weights(seed=1), headers=headers)
    assert first.json() == again.json()
    assert other.status_code == 409


def test_of_many_twins_at_once_one_is_done(api, model):
    spec = {"kind": "capture", "model": model["id"], "count": 1, "r": 1, "labels": {"batch": "twins"}}
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(post(api, "twins", **spec))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status_code for answer in answers} <= {202, 409}
    assert all(answer.headers["retry-after"] for answer in answers if answer.status_code == 409)
    assert len(api.get("/v1/jobs", params={"label": "batch=twins"}).json()["items"]) == 1


def test_cancel_and_datasets_take_keys_too(api, model):
    import numpy as np

    images = npz(x=np.zeros((2, 4, 4), np.uint8))
    made = [
        api.post("/v1/datasets", params={"name": "d"}, content=images, headers={"Idempotency-Key": "data"}).json()
        for _ in range(2)
    ]
    assert made[0] == made[1]
    job = post(api, "to-cancel", kind="capture", model=model["id"], count=200_000, r=50).json()
    headers = {"Idempotency-Key": "cancel"}
    assert api.post(f"/v1/jobs/{job['id']}/cancel", headers=headers).status_code == 202
    assert api.post(f"/v1/jobs/{job['id']}/retry", headers=headers).status_code == 409


def test_a_key_stays_taken_while_a_file_is_on_its_way_to_the_store(tmp_path, monkeypatch):
    monkeypatch.setattr(idempotency, "HOLD_ON_SECONDS", 0.05)
    db = Database(f"sqlite:///{tmp_path / 'ledger.db'}")
    migrate(db)
    first, twin = Once(db, DEFAULT_TENANT, "slow"), Once(db, DEFAULT_TENANT, "slow")
    first.reserve()
    with db.write() as session:
        session.execute(update(Idempotency).values(locked_until=1.0))
    with first.holding():
        time.sleep(0.5)
        with pytest.raises(TwinInFlight):
            twin.reserve()
    db.close()
