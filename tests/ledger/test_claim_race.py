"""Up to sixteen processes go for five hundred jobs at once, on each database: every job is won, and won once."""

import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import claimer
import pytest
from soundness import assert_ledger_sound

RUNG = 40


@pytest.mark.parametrize(("claimers", "jobs"), [(4, 150), pytest.param(16, 500, marks=pytest.mark.slow)])
def test_each_job_is_won_exactly_once(db, queue_job, claimers, jobs):
    ids = [queue_job() for _ in range(jobs)]
    url = db.url.replace("postgresql+psycopg", "postgresql")
    processes = [
        subprocess.Popen(
            [sys.executable, str(Path(claimer.__file__)), url, *Random(number).sample(ids[:100], RUNG)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(claimers)
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate(timeout=120)[0].splitlines() for process in processes]
    assert [process.returncode for process in processes] == [0] * claimers
    won = Counter(line for lines in said for line in lines)
    assert won == Counter(f"{job_id} 1" for job_id in ids)
    assert sum(bool(lines) for lines in said) > 1, "one claimer took them all: there was no race"
    assert_ledger_sound(db)
