# Made from aio/datasets.py by `make client`: change it there.
import tempfile
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from flashcards.client.files import Progress, zip_images
from flashcards.client.resource import Resource, at
from flashcards.contract.image import ImageShape
from flashcards.contract.resources import Dataset, Page


class Datasets(Resource[Dataset]):
    path = "/v1/datasets"
    item = Dataset
    page = Page[Dataset]

    def push(
        self,
        source: str | PathLike[str] | Mapping[str, Any] | None = None,
        name: str | None = None,
        progress: Progress | bool | None = None,
        input: str | Sequence[int] | None = None,
        invert: bool = False,
        image: str | None = None,
        label: str | None = None,
        **arrays: Any,
    ) -> Dataset:
        """Upload an npz, a zip or folder of images, or arrays by name: `x`, or `x_train` and `x_test`.

        Or parquet with a column of encoded images, or one of the files that MNIST, CIFAR and SVHN are published as.
        Labels `y...` may come along with arrays; the folders that images lie in are their labels. `input` is the
        height, width and channels that images are brought to, and `invert` makes dark ink on white white on black.
        `image` and `label` name columns of a parquet file.
        """
        params = {
            "name": name,
            "input": input if input is None or isinstance(input, str) else str(ImageShape(*input)),
            "invert": "true" if invert else None,
            "image": image,
            "label": label,
        }
        if isinstance(source, str | PathLike):
            return self._push_path(Path(source), params, progress)
        if name is None:
            raise TypeError("arrays have no name of their own: push(x=images, name='what people call them')")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "arrays.npz")
            named = {key: np.asarray(array) for key, array in {**(source or {}), **arrays}.items()}
            np.savez(file, **named)  # type: ignore[arg-type]
            return self._upload(file, params, progress)

    def download(self, id: str, to: str | PathLike[str]) -> Path:
        """The npz, to the file or into the folder `to`."""
        return self._http.download(at(self.path, id, "file"), to, f"{id}.npz")

    def _push_path(self, path: Path, params: dict[str, str | None], progress: Progress | bool | None) -> Dataset:
        if not path.is_dir():
            return self._upload(path, {**params, "name": params["name"] or path.stem}, progress)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "images.zip")
            zip_images(path, file)
            return self._upload(file, {**params, "name": params["name"] or path.resolve().name}, progress)

    def _upload(self, file: Path, params: dict[str, str | None], progress: Progress | bool | None) -> Dataset:
        return self._http.upload(Dataset, self.path, file, params, progress)
