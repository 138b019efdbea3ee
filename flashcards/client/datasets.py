import tempfile
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from flashcards.client.files import Progress
from flashcards.client.resource import Resource, at
from flashcards.contract.resources import Dataset, Page


class Datasets(Resource[Dataset]):
    path = "/v1/datasets"
    item = Dataset
    page = Page[Dataset]

    def push(
        self,
        source: str | PathLike[str] | Mapping[str, Any] | None = None,
        name: str | None = None,
        progress: Progress | None = None,
        **arrays: Any,
    ) -> Dataset:
        """Upload an npz, or arrays by name: `x`, or `x_train` and `x_test`; labels `y...` may come along."""
        if isinstance(source, str | PathLike):
            file = Path(source)
            return self._upload(file, name or file.stem, progress)
        if name is None:
            raise TypeError("arrays have no name of their own: push(x=images, name='what people call them')")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "arrays.npz")
            named = {key: np.asarray(array) for key, array in {**(source or {}), **arrays}.items()}
            np.savez(file, **named)  # type: ignore[arg-type]
            return self._upload(file, name, progress)

    def download(self, id: str, to: str | PathLike[str]) -> Path:
        """The file as it was uploaded, to the file or into the folder `to`."""
        return self._http.download(at(self.path, id, "file"), to, f"{id}.npz")

    def _upload(self, file: Path, name: str, progress: Progress | None) -> Dataset:
        return self._http.upload(Dataset, self.path, file, {"name": name}, progress)
