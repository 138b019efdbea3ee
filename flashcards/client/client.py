import os
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Literal, Self, Unpack, overload

import httpx
from pydantic_core import to_jsonable_python

from flashcards.client import storage
from flashcards.client.datasets import Datasets
from flashcards.client.examine import examine
from flashcards.client.fields import (
    AnalyzeFields,
    CaptureFields,
    CompareFields,
    DistillFields,
    EvaluateFields,
    PredictFields,
    TrainFields,
)
from flashcards.client.flashcards import FlashcardSets
from flashcards.client.http import Http
from flashcards.client.jobs import PATH, Jobs
from flashcards.client.keys import Keys
from flashcards.client.learners import Learners
from flashcards.client.models import Models
from flashcards.contract.resources import Job, Storage, StoredFile, Validated
from flashcards.contract.specs import Spec
from flashcards.errors import ApiError
from flashcards.findings import Finding

DEFAULT_URL = "http://127.0.0.1:8642"


class Client:
    """Speaks to one service. Closes its connections at the end of a `with` block, or with `close()`.

    Address and key come from `FLASHCARDS_URL` and `FLASHCARDS_KEY` where they are not given. With `direct_downloads`
    files come straight from an object store, where the service has one.
    """

    def __init__(
        self,
        url: str | None = None,
        timeout: float = 30.0,
        key: str | None = None,
        direct_downloads: bool = False,
    ) -> None:
        key = key or os.environ.get("FLASHCARDS_KEY") or None
        self._http = Http(url or os.environ.get("FLASHCARDS_URL") or DEFAULT_URL, timeout, key, direct_downloads)
        self.models = Models(self._http)
        self.datasets = Datasets(self._http)
        self.jobs = Jobs(self._http)
        self.flashcards = FlashcardSets(self._http)
        self.learners = Learners(self._http)
        self.keys = Keys(self._http)

    @property
    def url(self) -> str:
        return self._http.url

    def train(self, **fields: Unpack[TrainFields]) -> Job:
        """Queue the training of a new autoencoder on a dataset, or of a classifier on its labels."""
        return self.submit({"kind": "train", **fields})

    def capture(self, **fields: Unpack[CaptureFields]) -> Job:
        """Queue the capture of flashcards from a model, without any data."""
        return self.submit({"kind": "capture", **fields})

    def analyze(self, **fields: Unpack[AnalyzeFields]) -> Job:
        """Queue a look at what each further pass does to cards, and how many to take."""
        return self.submit({"kind": "analyze", **fields})

    def distill(self, **fields: Unpack[DistillFields]) -> Job:
        """Queue the teaching of a new network, of any architecture, from flashcards alone."""
        return self.submit({"kind": "distill", **fields})

    def evaluate(self, **fields: Unpack[EvaluateFields]) -> Job:
        """Queue the measurement of a model, or of flashcards, on the images of a dataset."""
        return self.submit({"kind": "evaluate", **fields})

    def predict(self, **fields: Unpack[PredictFields]) -> Job:
        """Have a model answer a few images, and wait for it: the job as it ended, its answers in `result`."""
        return self.jobs.wait(self.submit({"kind": "predict", **fields}).id)

    def compare(self, **fields: Unpack[CompareFields]) -> Job:
        """Queue strategies on the same sequence of tasks: one table of what each keeps and what it forgets."""
        return self.submit({"kind": "compare", **fields})

    @overload
    def submit(self, spec: Spec | Mapping[str, Any], validate_only: Literal[False] = False) -> Job: ...

    @overload
    def submit(self, spec: Spec | Mapping[str, Any], validate_only: Literal[True]) -> Validated: ...

    def submit(self, spec: Spec | Mapping[str, Any], validate_only: bool = False) -> Job | Validated:
        """Queue a job, or only have it checked. The service is the one that knows what it takes."""
        body = to_jsonable_python(spec if isinstance(spec, Spec) else dict(spec))
        if validate_only:
            return self._http.post(Validated, PATH, body, {"validate_only": "true"})
        return self._http.post(Job, PATH, body)

    def storage(self, limit: int = 50, cursor: str | None = None) -> Storage:
        """What is kept, how large, for whom and until when: the sums, and a page of files, newest first."""
        return storage.read(self._http, limit, cursor)

    def stored_files(self) -> Iterator[StoredFile]:
        """All files that are kept, newest first, a page at a time."""
        return storage.each_file(self._http)

    def is_ready(self) -> bool:
        """Are database, broker and store there, and a worker that takes jobs? Asks once."""
        try:
            with self._http.stream("/readyz"):
                return True
        except (httpx.TransportError, ApiError):
            return False

    def examine(self) -> list[Finding]:
        """What is well with the service and what is not, and what to do about it."""
        return examine(self._http)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
