"""What the command line and the client say of a tracking server, to a service that records what it heard."""

import json

import pytest
import typer
from tracking import answering_server
from typer.testing import CliRunner

from flashcards import Client
from flashcards.cli import app
from flashcards.cli.options import as_tracking
from flashcards.errors import ApiError

MODEL = {
    "id": "model_" + "0" * 32,
    "name": "line-7/3",
    "architecture": "blk_2_fil_4",
    "architecture_name": "blk_2_fil_4",
    "task": "reconstruct",
    "input": "16x16x1",
    "range": [0, 1],
    "parameters": 1,
    "digest": "0" * 64,
    "size": 1,
    "origin": "upload",
    "created_at": "2026-03-01T09:30:00.000Z",
}


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (None, None),
        ([], None),
        (["off"], {"mirror": False}),
        (["register_as=line-7", "experiment=a=b"], {"register_as": "line-7", "experiment": "a=b"}),
    ],
)
def test_options_become_the_field(texts, told):
    assert as_tracking(texts) == told


def test_a_misspelt_field_is_refused_before_anything_is_sent():
    done = CliRunner().invoke(app, ["train", "dataset_" + "0" * 32, "--tracking", "registeras=x"])
    assert done.exit_code == typer.BadParameter.exit_code
    assert "register_as" in done.output


def test_a_registered_model_is_asked_for():
    with answering_server(201, json.dumps(MODEL).encode()) as (url, asked):
        with Client(url) as client:
            assert client.models.take("models:/line-7/3", name="mine").id == MODEL["id"]
        done = CliRunner().invoke(app, ["models", "import", "models:/line-7/3"], env={"FLASHCARDS_URL": url})
        assert done.exit_code == 0, done.output
        assert MODEL["id"] in done.output
    assert asked == ["POST /v1/models:import"] * 2


def test_a_service_without_a_tracking_server_says_so(service):
    with Client(service.url) as client, pytest.raises(ApiError, match="FLASHCARDS_MLFLOW_URL"):
        client.models.take("models:/line-7/3")
