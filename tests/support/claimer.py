"""`python claimer.py DATABASE JOB...`: waits for a line on stdin, then claims what it can and prints it.

First the named jobs, as if somebody had rung for each, then the oldest of the queue until there is none.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from ledger import lifecycle
from ledger.db import Database


def main() -> None:
    url, *rung = sys.argv[1:]
    db = Database(url)
    worker = f"worker_{os.getpid()}"
    with db.read():
        print("ready", flush=True)
    sys.stdin.readline()
    won = [lifecycle.claim(db, "cpu", worker, 60, job_id) for job_id in rung]
    while (got := lifecycle.claim(db, "cpu", worker, 60)) is not None:
        won.append(got)
    for got in won:
        if got is not None:
            print(got.job_id, got.attempt)


if __name__ == "__main__":
    main()
