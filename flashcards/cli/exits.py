"""What the commands end with, for scripts that go on by it."""

from flashcards.errors import ConnectionFailed, FlashcardsError, ServiceFault, TimedOut

WRONG = 1  # refused, or something is not as it must be; the words say what
MISUSE = 2  # as typer ends it: no such option
JOB_FAILED = 3
JOB_CANCELLED = 4
AWAY = 5  # nobody answers, or not now: the same command may do later
INTERRUPTED = 130  # as shells count a Ctrl-C

OF_STATE = {"succeeded": 0, "failed": JOB_FAILED, "cancelled": JOB_CANCELLED}


def of_error(error: Exception) -> int:
    away = isinstance(error, ConnectionFailed | ServiceFault | TimedOut)
    return AWAY if isinstance(error, FlashcardsError) and away else WRONG
