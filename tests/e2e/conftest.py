from contextlib import ExitStack
from functools import cached_property

import httpx
import pytest
from making import finished, push_dataset, push_model
from servers import open_folder
from stack import STACKS, Stack, running_stack

#: Long enough to be killed three times half-way, short enough to be run for every kind of kill.
TRAINING = {"kind": "train", "architecture": "blk_2_fil_8", "epochs": 30, "patience": 30, "batch_size": 32}
TEMPO = {"lease_seconds": 6, "reap_seconds": 1}


class Ground:
    """A stack, a client that outlives restarts, and what most tests upload first."""

    def __init__(self, stack: Stack, digits_npz: bytes) -> None:
        self.stack = stack
        self.client = httpx.Client(base_url=stack.url, timeout=60, transport=httpx.HTTPTransport(retries=20))
        self._digits_npz = digits_npz

    @cached_property
    def images(self) -> str:
        return push_dataset(self.client, self._digits_npz)["id"]

    @cached_property
    def model(self) -> str:
        return push_model(self.client)["id"]

    @cached_property
    def unbroken(self) -> str:
        """The weights of the training when it is left alone."""
        job = finished(self.client, **TRAINING, dataset=self.images)
        assert [attempt["outcome"] for attempt in job["attempts"]] == ["succeeded"]
        return digest_of_weights(job)


def digest_of_weights(job: dict) -> str:
    (found,) = [artifact["digest"] for artifact in job["artifacts"] if artifact["name"] == "model.safetensors"]
    return found


@pytest.fixture(scope="session")
def grounds(digits_npz):
    """Each stack is started when the first test asks for it, and serves all that come after."""
    there: dict[str, Ground] = {}

    def ground(name: str) -> Ground:
        if name not in there:
            folder = open_stacks.enter_context(open_folder())
            stack = open_stacks.enter_context(running_stack(name, folder, **TEMPO))
            there[name] = Ground(stack, digits_npz)
            open_stacks.callback(there[name].client.close)
        return there[name]

    with ExitStack() as open_stacks:
        yield ground


@pytest.fixture(params=list(STACKS))
def ground(request, grounds) -> Ground:
    return grounds(request.param)
