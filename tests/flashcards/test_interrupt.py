import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("flashcards")
CTRL_C = "\x03"
QUESTION = "Cancel the job, or only stop watching?"


class Terminal:
    """A command in a terminal of its own, where a key is pressed and the screen is read."""

    def __init__(self, url: str, *words: str) -> None:
        self._ours, theirs = pty.openpty()
        self.screen = ""
        self.process = subprocess.Popen(
            [COMMAND, *words],
            env={**os.environ, "FLASHCARDS_URL": url, "TERM": "xterm", "COLUMNS": "200"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def wait_for(self, words: str, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while words not in self.screen:
            assert time.monotonic() < deadline, self.screen
            if select.select([self._ours], [], [], 0.1)[0]:
                self.screen += self._read()

    def end(self) -> int:
        """To the end of the screen, which the kernel tells by an error."""
        while text := self._read():
            self.screen += text
        return self.process.wait(timeout=60)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def _read(self) -> str:
        try:
            return os.read(self._ours, 65536).decode(errors="replace")
        except OSError:
            return ""


@pytest.fixture
def watched(service, busy):
    """A job in a terminal, when Ctrl-C has been pressed."""
    terminal = Terminal(service.url, "jobs", "watch", busy.id)
    terminal.wait_for("epoch")
    terminal.press(CTRL_C)
    terminal.wait_for(QUESTION)
    yield terminal
    terminal.close()


@pytest.mark.parametrize("keys", ["\n", "what?\n", CTRL_C])
def test_the_job_goes_on_unless_told_otherwise(watched, client, busy, keys):
    watched.press(keys)
    assert watched.end() == 130
    assert f"flashcards jobs watch {busy.id}" in watched.screen
    assert "Traceback" not in watched.screen
    assert not client.jobs.get(busy.id).cancel_requested


def test_the_job_is_cancelled_where_its_user_says_so(watched, client, busy):
    watched.press("c\n")
    assert watched.end() == 130
    assert "cancel requested" in watched.screen
    assert client.jobs.wait(busy.id, timeout=60).state == "cancelled"
