"""Schemathesis over the OpenAPI document, against the running service: no 5xx, nothing the document does not say."""

import subprocess
import sys
from pathlib import Path

import pytest
from making import finished


@pytest.mark.timeout(300)
def test_the_service_keeps_to_its_document(service, api, model, dataset, tmp_path):
    finished(api, kind="capture", model=model["id"], count=3, r=1)
    command = [
        str(Path(sys.executable).with_name("schemathesis")),
        "run",
        f"{service.url}/openapi.json",
        "--max-examples=25",
        "--seed=1",
        "--workers=1",
        "--request-timeout=20",
        "--suppress-health-check=all",
        # A schema cannot say that a file is well-formed or that an id exists: valid by the schema may still be refused.
        "--exclude-checks=positive_data_acceptance",
    ]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=280)
    assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-2000:]
