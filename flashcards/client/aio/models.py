import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from flashcards.client.aio.resource import Resource, at
from flashcards.client.files import Progress
from flashcards.contract.architecture import Architecture
from flashcards.contract.image import ImageShape
from flashcards.contract.resources import Lineage, Model, Page


class Models(Resource[Model]):
    path = "/v1/models"
    item = Model
    page = Page[Model]

    async def push(
        self,
        path: str | PathLike[str],
        name: str | None = None,
        architecture: str | Architecture | Mapping[str, Any] | None = None,
        input: str | Sequence[int] | None = None,
        range: str | Sequence[float] | None = None,
        progress: Progress | bool | None = None,
    ) -> Model:
        """Upload a safetensors file, or a state dict that torch.save wrote.

        What a safetensors file says of itself in its metadata need not be said again.
        """
        file = Path(path)
        params = {
            "name": name or file.stem,
            "architecture": _in_words(architecture),
            "input": input if input is None or isinstance(input, str) else str(ImageShape(*input)),
            "range": range if range is None or isinstance(range, str) else ",".join(str(end) for end in range),
        }
        return await self._http.upload(Model, self.path, file, params, progress)

    async def weights(self, id: str, to: str | PathLike[str]) -> Path:
        """The safetensors file, to the file or into the folder `to`."""
        return await self._http.download(at(self.path, id, "weights"), to, f"{id}.safetensors")

    async def probe(self, id: str, path: str | PathLike[str]) -> Model:
        """Attach images `x` and your own network's answers `y` (safetensors): every use is checked against them."""
        return await self._http.upload(Model, at(self.path, id, "probe"), Path(path), method="PUT")

    async def attach_capsule(self, id: str, path: str | PathLike[str]) -> Model:
        """Attach what was measured where the data is: a file of `measure_capsule` or `flashcards capsule`."""
        return await self._http.upload(Model, at(self.path, id, "capsule"), Path(path), method="PUT")

    async def capsule(self, id: str, to: str | PathLike[str]) -> Path:
        """The capsule, a safetensors file, to the file or into the folder `to`."""
        return await self._http.download(at(self.path, id, "capsule"), to, f"{id}-capsule.safetensors")

    async def lineage(self, id: str) -> Lineage:
        """Which job and data made it, and what was made of it."""
        return await self._http.get(Lineage, at(self.path, id, "lineage"))


def _in_words(architecture: str | Architecture | Mapping[str, Any] | None) -> str | None:
    if isinstance(architecture, Architecture):
        return architecture.model_dump_json()
    if isinstance(architecture, Mapping):
        return json.dumps(dict(architecture))
    return architecture
