"""Files that are whole or absent.

Everything is turned to bytes first and written with Python's own calls: a full disk is then an OSError with its errno,
where the writers inside safetensors and pillow would wrap it in an error of their own.
"""

import hashlib
import json
import os
from pathlib import Path

import torch
from safetensors.torch import save


def write_whole(path: Path, data: bytes) -> None:
    """Temp, fsync, rename, fsync of the folder: a kill at any moment leaves the old file or the new one."""
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def safetensors_bytes(tensors: dict[str, torch.Tensor], metadata: dict[str, str]) -> bytes:
    """The same tensors and metadata, the same bytes.

    safetensors writes its metadata in the order of a hash map, another one in each process, and files are known by
    their digest. Offsets count from the end of the header, so the header can be written again in a fixed order.
    """
    raw = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, metadata)
    end = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:end])
    header["__metadata__"] = dict(sorted(metadata.items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # data starts at a multiple of 8
    return len(text).to_bytes(8, "little") + text + raw[end:]


def digest_of(path: Path) -> str:
    """SHA-256, by which the ledger knows a file too."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
