from collections.abc import AsyncIterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Unpack

from pydantic_core import to_jsonable_python

from flashcards.client.aio.bound import Bound
from flashcards.client.aio.jobs import BoundJob
from flashcards.client.aio.resource import AT_ONCE, Resource, at, each
from flashcards.client.fields import TaskFields, as_body
from flashcards.contract.architecture import Architecture
from flashcards.contract.learners import Learner, LearnerLineage, Matrix, Version
from flashcards.contract.resources import Model, Page
from flashcards.contract.specs import Scenario

#: A learner of classes has an autoencoder beside the network that answers.
Network = Literal["learner", "autoencoder"]


class BoundLearner(Learner, Bound):
    """A learner as it was when it was asked for, that can be taught."""

    async def learn(self, **fields: Unpack[TaskFields]) -> BoundJob:
        """Queue its next task. Tasks of a learner run one after the other, in the order in which they came."""
        return await Learners(self._http).learn(self.id, **fields)

    async def matrix(self) -> Matrix:
        """The error on each task after each task, and how much was forgotten."""
        return await Learners(self._http).matrix(self.id)

    async def refresh(self) -> "BoundLearner":
        """The learner as it is now."""
        return await Learners(self._http).get(self.id)


class Learners(Resource[BoundLearner]):
    path = "/v1/learners"
    item = BoundLearner
    page = Page[BoundLearner]

    async def create(
        self,
        name: str | None = None,
        model: str | Model | None = None,
        architecture: str | Architecture | Mapping[str, Any] | None = None,
        range: tuple[float, float] | None = None,
        scenario: Scenario | None = None,
        noise: float | None = None,
        clip: bool | None = None,
        classifier: str | Model | None = None,
        autoencoder: str | Model | None = None,
        autoencoder_architecture: str | Architecture | Mapping[str, Any] | None = None,
    ) -> BoundLearner:
        """From a model, whose knowledge is the first to be kept, or from an architecture that knows nothing yet.

        A learner of classes begins with a classifier and the autoencoder that makes cards for it.
        """
        fields = {
            "name": name,
            "model": _id(model),
            "architecture": architecture,
            "range": range,
            "scenario": scenario,
            "noise": noise,
            "clip": clip,
            "classifier": _id(classifier),
            "autoencoder": _id(autoencoder),
            "autoencoder_architecture": autoencoder_architecture,
        }
        body = to_jsonable_python({field: value for field, value in fields.items() if value is not None})
        return await self._http.post(BoundLearner, self.path, body)

    def of_compare(self, id: str) -> AsyncIterator[BoundLearner]:
        """Those of a comparison, newest first; lists are without them."""

        async def page(cursor: str | None) -> Page[BoundLearner]:
            return await self._http.get(self.page, self.path, {"compare": id, "limit": AT_ONCE, "cursor": cursor})

        return each(page)

    async def learn(self, id: str, **fields: Unpack[TaskFields]) -> BoundJob:
        """Queue its next task. Tasks of a learner run one after the other, in the order in which they came."""
        return await self._http.post(BoundJob, at(self.path, id, "tasks"), as_body(fields))

    async def versions(self, id: str, limit: int = 50, cursor: str | None = None) -> Page[Version]:
        """One page, newest first; its `next_cursor` asks for the next."""
        return await self._http.get(Page[Version], at(self.path, id, "versions"), {"limit": limit, "cursor": cursor})

    def each_version(self, id: str) -> AsyncIterator[Version]:
        """All of them, newest first, a page at a time."""
        return each(lambda cursor: self.versions(id, AT_ONCE, cursor))

    async def version(self, id: str, number: int) -> Version:
        return await self._http.get(Version, self._version(id, number))

    async def weights(self, id: str, number: int, to: str | PathLike[str], network: Network = "learner") -> Path:
        """The safetensors file of a version, to the file or into the folder `to`."""
        path, name = f"{self._version(id, number)}/weights", f"{id}-{number}.safetensors"
        if network == "learner":
            return await self._http.download(path, to, name)
        return await self._http.download(f"{path}?network={network}", to, f"{id}-{number}-{network}.safetensors")

    async def capsule(self, id: str, number: int, task: int, to: str | PathLike[str]) -> Path:
        """What a version keeps of one of its tasks, the first of which is 1: a safetensors file."""
        path = f"{self._version(id, number)}/capsules/{task}"
        return await self._http.download(path, to, f"{id}-{number}-capsule-{task}.safetensors")

    async def bundle(self, id: str, number: int, to: str | PathLike[str]) -> Path:
        """A zip of the learner along the versions that led to this one; `models.import_bundle` takes it in."""
        return await self._http.download(f"{self._version(id, number)}/bundle", to, f"{id}-{number}.zip")

    async def lineage(self, id: str) -> LearnerLineage:
        """The models that it began with, or the bundle that brought it."""
        return await self._http.get(LearnerLineage, at(self.path, id, "lineage"))

    async def as_model(self, id: str, number: int, network: Network = "learner") -> Model:
        """A model with the weights of a version, for jobs that read models."""
        which = "" if network == "learner" else f"?network={network}"
        return await self._http.post(Model, f"{self._version(id, number)}/model{which}")

    async def matrix(self, id: str) -> Matrix:
        """The error on each task after each task, and how much was forgotten."""
        return await self._http.get(Matrix, at(self.path, id, "matrix"))

    async def matrix_csv(self, id: str) -> str:
        """The same as a table that a spreadsheet opens."""
        return (await self._http.content(at(self.path, id, "matrix"), {"format": "csv"})).decode()

    async def roll_back(self, id: str, version: int) -> BoundLearner:
        """The next task starts from this version. Those after it stay."""
        return await self._http.post(BoundLearner, at(self.path, id, "rollback"), {"version": version})

    def _version(self, id: str, number: int) -> str:
        return at(self.path, id, "versions", str(number))


def _id(model: str | Model | None) -> str | None:
    return model.id if isinstance(model, Model) else model
