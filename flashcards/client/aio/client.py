import os
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Literal, Self, Unpack, overload

import httpx

from flashcards.client.aio import storage
from flashcards.client.aio.examine import examine
from flashcards.client.aio.http import Http
from flashcards.client.aio.jobs import PATH, BoundJob
from flashcards.client.aio.parts import Parts
from flashcards.client.fields import (
    AnalyzeFields,
    CaptureFields,
    CompareFields,
    DistillFields,
    EvaluateFields,
    ExportFields,
    PredictFields,
    TrainFields,
    as_body,
)
from flashcards.client.files import PARTS_ABOVE
from flashcards.contract.resources import Dataset, Flashcards, Model, Storage, StoredFile, Validated
from flashcards.contract.specs import Spec
from flashcards.errors import ApiError
from flashcards.findings import Finding

DEFAULT_URL = "http://127.0.0.1:8642"


class AsyncClient(Parts):
    """Speaks to one service. Closes its connections at the end of a `with` block, or with `close()`.

    Address and key come from `FLASHCARDS_URL` and `FLASHCARDS_KEY` where they are not given. With `direct_downloads`
    files come straight from an object store, where the service has one. Files of more than `parts_above` bytes are
    uploaded in parts, with `direct_uploads` straight to that store; an upload that breaks off goes on where it was when
    the same file is pushed again.
    """

    def __init__(
        self,
        url: str | None = None,
        timeout: float = 30.0,
        key: str | None = None,
        direct_downloads: bool = False,
        direct_uploads: bool = False,
        parts_above: int = PARTS_ABOVE,
    ) -> None:
        key = key or os.environ.get("FLASHCARDS_KEY") or None
        url = url or os.environ.get("FLASHCARDS_URL") or DEFAULT_URL
        super().__init__(Http(url, timeout, key, direct_downloads, direct_uploads, parts_above))

    @property
    def url(self) -> str:
        return self._http.url

    async def train(self, dataset: str | Dataset, **fields: Unpack[TrainFields]) -> BoundJob:
        """Queue the training of a new autoencoder on a dataset, or of a classifier on its labels."""
        return await self.submit({"kind": "train", "dataset": dataset, **fields})

    async def capture(self, model: str | Model, **fields: Unpack[CaptureFields]) -> BoundJob:
        """Queue the capture of flashcards from a model, without any data."""
        return await self.submit({"kind": "capture", "model": model, **fields})

    async def analyze(self, model: str | Model, **fields: Unpack[AnalyzeFields]) -> BoundJob:
        """Queue a look at what each further pass does to cards, and how many to take."""
        return await self.submit({"kind": "analyze", "model": model, **fields})

    async def distill(self, flashcards: str | Flashcards, **fields: Unpack[DistillFields]) -> BoundJob:
        """Queue the teaching of a new network, of any architecture, from flashcards alone."""
        return await self.submit({"kind": "distill", "flashcards": flashcards, **fields})

    async def evaluate(self, **fields: Unpack[EvaluateFields]) -> BoundJob:
        """Queue the measurement of a model, or of flashcards, on the images of a dataset."""
        return await self.submit({"kind": "evaluate", **fields})

    async def predict(self, model: str | Model, **fields: Unpack[PredictFields]) -> BoundJob:
        """Have a model answer a few images, and wait for it: the job as it ended, its answers in `result`."""
        asked = await self.submit({"kind": "predict", "model": model, **fields})
        return await self.jobs.wait(asked.id)

    async def export(self, model: str | Model, **fields: Unpack[ExportFields]) -> BoundJob:
        """Queue the export of a model as ONNX: `models.onnx` downloads it once the job has succeeded."""
        return await self.submit({"kind": "export", "model": model, **fields})

    async def compare(self, **fields: Unpack[CompareFields]) -> BoundJob:
        """Queue strategies on the same sequence of tasks: one table of what each keeps and what it forgets."""
        return await self.submit({"kind": "compare", **fields})

    @overload
    async def submit(self, spec: Spec | Mapping[str, Any], validate_only: Literal[False] = False) -> BoundJob: ...

    @overload
    async def submit(self, spec: Spec | Mapping[str, Any], validate_only: Literal[True]) -> Validated: ...

    async def submit(self, spec: Spec | Mapping[str, Any], validate_only: bool = False) -> BoundJob | Validated:
        """Queue a job, or only have it checked. The service is the one that knows what it takes."""
        body = as_body(dict(spec))
        if validate_only:
            return await self._http.post(Validated, PATH, body, {"validate_only": "true"})
        return await self._http.post(BoundJob, PATH, body)

    async def storage(self, limit: int = 50, cursor: str | None = None) -> Storage:
        """What is kept, how large, for whom and until when: the sums, and a page of files, newest first."""
        return await storage.read(self._http, limit, cursor)

    def stored_files(self) -> AsyncIterator[StoredFile]:
        """All files that are kept, newest first, a page at a time."""
        return storage.each_file(self._http)

    async def is_ready(self) -> bool:
        """Are database, broker and store there, and a worker that takes jobs? Asks once."""
        try:
            async with self._http.stream("/readyz"):
                return True
        except (httpx.TransportError, ApiError):
            return False

    async def answers(self) -> bool:
        """Is anybody there? Asks once."""
        try:
            async with self._http.stream("/healthz"):
                return True
        except (httpx.TransportError, ApiError):
            return False

    async def examine(self) -> list[Finding]:
        """What is well with the service and what is not, and what to do about it."""
        return await examine(self._http)

    async def close(self) -> None:
        await self._http.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
