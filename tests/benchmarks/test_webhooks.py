"""A small sample of the gate of `make bench-webhooks`, with the same troubles."""

import pytest
from servers import open_folder

from benchmarks import webhooks


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(400)
def test_every_event_arrives_under_one_id_and_nothing_goes_inside():
    with open_folder() as folder:
        rows = webhooks.bench(folder, count=60, timeout=2, seconds=240)
    assert [what for what, *_, holds in rows if not holds] == []
