"""Schemathesis over the OpenAPI document, against a running service: no 5xx, nothing the document does not say."""

import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from making import finished, push_dataset, push_model
from service_process import running_service

#: An answer that is kept under an Idempotency-Key is given again, also after what it had made was deleted. And who
#: deletes a key revokes it: it opens nothing any more, and can still be looked at.
CONFIG = """
[[operations]]
include-path-regex = "^/v1/learners"
checks.ensure_resource_availability.enabled = false

[[operations]]
include-path-regex = "^/v1/keys"
checks.use_after_free.enabled = false
"""


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(600)
def test_the_service_keeps_to_its_document(digits_npz, tmp_path):
    """A service of its own, with keys: what is there to be found is also there to be deleted."""
    key_file = tmp_path / "key"
    with running_service(tmp_path / "home", threads=1, admin_key_file=key_file, requests_per_minute=10**6) as service:
        authorization = {"Authorization": f"Bearer {key_file.read_text().strip()}"}
        with httpx.Client(base_url=service.url, timeout=60, headers=authorization) as api:
            push_dataset(api, digits_npz)
            model = push_model(api)
            finished(api, kind="capture", model=model["id"], count=3, r=1)
            assert api.post("/v1/learners", json={"model": model["id"]}).status_code == 201
        (tmp_path / "schemathesis.toml").write_text(CONFIG)
        command = [
            str(Path(sys.executable).with_name("schemathesis")),
            "run",
            f"{service.url}/openapi.json",
            f"--header=Authorization: {authorization['Authorization']}",
            "--max-examples=25",
            "--seed=1",
            "--workers=1",
            "--request-timeout=20",
            "--suppress-health-check=all",
            # A schema cannot say that a file is well-formed or that an id exists: what it allows may still be refused.
            "--exclude-checks=positive_data_acceptance",
        ]
        ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=580)
        assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-2000:]
        assert "Traceback" not in service.log.read_text()
