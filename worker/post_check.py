"""`python -m worker.post_check`: has the courier of this machine given a sign of life? For a health check."""

import sys
import time

from ledger.settings import load_settings
from worker.post import sign_of_life

ALIVE_SECONDS = 60


def main() -> None:
    sign = sign_of_life(load_settings())
    if not sign.exists() or time.time() - sign.stat().st_mtime > ALIVE_SECONDS:
        sys.exit(f"flashcards: no courier of this machine gave a sign of life in the last {ALIVE_SECONDS} s")


if __name__ == "__main__":
    main()
