import socket
import time

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from ledger.db import Database


def test_a_server_that_says_nothing_is_given_up(tmp_path):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        db = Database(f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/nothing")
        began = time.monotonic()
        with pytest.raises(OperationalError), db.read() as session:
            session.execute(text("SELECT 1"))
        assert time.monotonic() - began < 15
        db.close()
