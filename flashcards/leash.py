"""A child that must not outlive its parent holds an end of a pipe, which the kernel closes however the parent dies."""

import os
import signal
import sys
import threading
from collections.abc import Callable

VARIABLE = "FLASHCARDS_LEASH"


def on_leash(when_cut: Callable[[], None]) -> None:
    """Call back, from a thread, once standard input ends."""

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 4096):
            pass
        when_cut()

    threading.Thread(target=wait, name="leash", daemon=True).start()


def leave_with_parent() -> None:
    """Ask this process to stop in good order once its parent is gone, if it was started on a leash."""
    if os.environ.get(VARIABLE):
        on_leash(lambda: os.kill(os.getpid(), signal.SIGTERM))
