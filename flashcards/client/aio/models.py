import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

from flashcards.client.aio.resource import Resource, at
from flashcards.client.fields import ImportFields, as_body
from flashcards.client.files import Progress
from flashcards.contract.architecture import Architecture, Onnx, Task
from flashcards.contract.bundle import BundleTaken
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
        bottleneck: str | None = None,
        task: Task | None = None,
    ) -> Model:
        """Upload a safetensors file, a state dict that torch.save wrote, or an ONNX file of any framework.

        What a safetensors file says of itself in its metadata need not be said again. Of an ONNX file `bottleneck`
        names the tensor that is the latent, where the smallest is not the one, and `task="classify"` says that it is
        a classifier.
        """
        file = Path(path)
        params = {
            "name": name or file.stem,
            "architecture": _in_words(architecture),
            "input": input if input is None or isinstance(input, str) else str(ImageShape(*input)),
            "range": range if range is None or isinstance(range, str) else ",".join(str(end) for end in range),
            "bottleneck": bottleneck,
            "task": task,
        }
        return await self._http.upload(Model, self.path, file, params, progress)

    async def take(self, reference: str, **fields: Unpack[ImportFields]) -> Model:
        """A registered model of the service's tracking server, `models:/name/3`, checked like an upload."""
        body = as_body({"mlflow": reference, **fields})
        return await self._http.post(Model, f"{self.path}:import", {key: value for key, value in body.items() if value})

    async def weights(self, id: str, to: str | PathLike[str]) -> Path:
        """The safetensors file, or the ONNX file as it was uploaded, to the file or into the folder `to`."""
        form = await self._form(id) if Path(to).is_dir() else ""
        return await self._http.download(at(self.path, id, "weights"), to, f"{id}.{form}")

    async def _form(self, id: str) -> str:
        return "onnx" if isinstance((await self.get(id)).architecture, Onnx) else "safetensors"

    async def onnx(self, id: str, to: str | PathLike[str]) -> Path:
        """The ONNX file that an export has made, to the file or into the folder `to`."""
        return await self._http.download(at(self.path, id, "onnx"), to, f"{id}.onnx")

    async def bundle(self, id: str, to: str | PathLike[str]) -> Path:
        """A zip of weights, capsule, recipes, metrics, lineage and a model card, to the file or folder `to`."""
        return await self._http.download(at(self.path, id, "bundle"), to, f"{id}.zip")

    async def import_bundle(
        self, path: str | PathLike[str], name: str | None = None, progress: Progress | bool | None = None
    ) -> BundleTaken:
        """Take in what another installation gave out as a bundle: a model, or a learner."""
        return await self._http.upload(BundleTaken, "/v1/bundles", Path(path), {"name": name}, progress)

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
