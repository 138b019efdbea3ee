"""The client that waits is made from the one that awaits: `make client` after a change of that."""

import pytest
import sync_of


@pytest.mark.parametrize("path", sync_of.sources(), ids=lambda path: path.stem)
def test_both_clients_say_the_same(path):
    assert sync_of.sync_of(path) == (sync_of.CLIENT / path.name).read_text()


def test_every_module_has_its_twin():
    assert {path.name for path in sync_of.SOURCE.glob("*.py")} <= {path.name for path in sync_of.CLIENT.glob("*.py")}
