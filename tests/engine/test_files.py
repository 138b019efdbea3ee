import json

import pytest
import torch
from safetensors.torch import load

from engine.files import safetensors_bytes, write_whole


def test_the_same_tensors_give_the_same_bytes():
    tensors = {"b": torch.arange(3.0), "a": torch.ones(2, 2, dtype=torch.uint8)}
    metadata = {"z": "1", "m": "2", "a": "3", "q": "4"}
    made = {safetensors_bytes(tensors, metadata) for _ in range(20)}
    assert len(made) == 1
    data = made.pop()
    size = int.from_bytes(data[:8], "little")
    assert list(json.loads(data[8 : 8 + size])["__metadata__"]) == ["a", "m", "q", "z"]
    assert size % 8 == 0
    assert all(torch.equal(tensor, load(data)[name]) for name, tensor in tensors.items())


def test_a_file_is_replaced_whole(tmp_path):
    write_whole(tmp_path / "f", b"old")
    write_whole(tmp_path / "f", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
    assert (tmp_path / "f").read_bytes() == b"new"


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    write_whole(tmp_path / "f", b"old")
    (tmp_path / ".f.tmp").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        write_whole(tmp_path / "f", b"new")
    assert (tmp_path / "f").read_bytes() == b"old"
