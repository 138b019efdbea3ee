import json
import subprocess
import sys

import pytest

from flashcards.contract.tokens import new_token
from ledger.logs import without_secrets

TOKEN = new_token()


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        pytest.param(f"cannot use {TOKEN} here", TOKEN[10:], id="token"),
        ("connection to postgresql://flashcards:hunter2@db:5432/x failed", "hunter2"),
        ("redis://:hunter2@redis:6379/0 is away", "hunter2"),
        ("amqp://a:hunter2@b//, redis://c:hunter2@d/0", "hunter2"),
        ("headers: Authorization: Bearer abcdefgh1234", "abcdefgh1234"),
        ("dsn host=db password=hunter2 dbname=x", "hunter2"),
    ],
)
def test_a_secret_in_a_line_is_masked(text, secret):
    for line in ({"event": text}, {"error": ValueError(text)}, {"deep": [{"er": text}]}):
        assert secret not in repr(without_secrets(None, "info", line))


def test_what_is_no_secret_stays():
    line = {"event": "http://127.0.0.1:8642/v1/jobs answered", "status": 200, "job": "job_1", "at": 1.5, "none": None}
    assert without_secrets(None, "info", line) == line


@pytest.mark.parametrize("form", ["json", "console"])
def test_tracebacks_and_lines_of_libraries_too(form):
    code = (
        "import logging, structlog; from ledger.logs import configure_logs; from ledger.settings import Settings\n"
        f"configure_logs(Settings(log_format={form!r}))\n"
        "def fail(): raise ValueError('postgresql://u:hunter2@h/d')\n"
        "try: fail()\n"
        "except ValueError as error:\n"
        "    structlog.get_logger().error('ours', exc_info=error)\n"
        "    logging.getLogger('library').exception('theirs %s', 'redis://:hunter2@h')\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "ours" in ran.stderr
    assert "theirs" in ran.stderr
    assert ran.stderr.count("ValueError") >= 2
    assert "hunter2" not in ran.stderr
    if form == "json":
        assert all(json.loads(line)["timestamp"] for line in ran.stderr.splitlines())
