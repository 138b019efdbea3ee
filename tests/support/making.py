"""Small things that tests upload: networks with random weights, images, job bodies."""

import io

import numpy as np
from safetensors.numpy import save

from flashcards.contract.architecture import architecture_spec
from flashcards.contract.image import parse_image_shape


def npz(**arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def weights(architecture: str = "blk_2_fil_4", input: str = "16x16x1", seed: int = 0, metadata=None) -> bytes:
    """A network with small random weights: it reconstructs nothing, but it runs."""
    chance = np.random.default_rng(seed)
    tensors = architecture_spec.validate_python(architecture).tensors(parse_image_shape(input))
    return save({name: _drawn(chance, name, shape) for name, shape in tensors}, metadata)


def _drawn(chance: np.random.Generator, name: str, shape: tuple[int, ...]) -> np.ndarray:
    if not shape:
        return np.array(7)
    drawn = (chance.normal(size=shape) * 0.2).astype(np.float32)
    return abs(drawn) + 1 if name.endswith("running_var") else drawn


def push_model(api, architecture: str = "blk_2_fil_4", input: str = "16x16x1", **query) -> dict:
    params = {"name": "net", "architecture": architecture, "input": input, **query}
    answer = api.post("/v1/models", params=params, content=weights(architecture, input))
    assert answer.status_code == 201, answer.text
    return answer.json()


def push_dataset(api, content: bytes, name: str = "digits") -> dict:
    answer = api.post("/v1/datasets", params={"name": name}, content=content)
    assert answer.status_code == 201, answer.text
    return answer.json()


def submit(api, **spec) -> dict:
    answer = api.post("/v1/jobs", json=spec)
    assert answer.status_code == 202, answer.text
    return answer.json()


def wait_for(api, job_id: str, seconds: float = 120) -> dict:
    for _ in range(int(seconds / 30) + 1):
        job = api.get(f"/v1/jobs/{job_id}", params={"wait": 30}).json()
        if job["state"] in ("succeeded", "failed", "cancelled"):
            return job
    raise TimeoutError(job)


def finished(api, **spec) -> dict:
    job = wait_for(api, submit(api, **spec)["id"])
    assert job["state"] == "succeeded", job
    return job


def make_key(admin, **fields) -> str:
    answer = admin.post("/v1/keys", json={"name": "test", **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()["key"]
