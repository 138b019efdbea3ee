import json
from pathlib import Path

from service.document import document

STORED = Path(__file__).parents[2] / "docs" / "openapi.json"


def test_the_stored_document_is_that_of_the_service():
    """Who generated a client from it must be told: look at the difference, and renew it with `make openapi`."""
    same = STORED.read_text(encoding="utf-8") == document()
    assert same, "the API has changed: `make openapi` renews docs/openapi.json; the CHANGELOG tells its users"


def test_a_service_answers_with_it(admin):
    assert admin.get("/openapi.json").json() == json.loads(STORED.read_text(encoding="utf-8"))
