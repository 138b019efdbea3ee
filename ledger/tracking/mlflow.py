"""MLflow by its REST API, which has been the same for years; its package would bring a hundred others along.

Files go through the server (`mlflow-artifacts:`, its default), so no key of its store is needed here. Everything is
asked of the one address that the operator has set: no redirect is followed, and no address that an answer names.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from ledger.errors import RunGone, TrackerAway, TrackerRefused
from ledger.tracking.line import Known, Line, Unknown
from ledger.tracking.mlmodel import folder_of
from ledger.tracking.reference import Reference, read_reference
from ledger.tracking.tracker import Point, Run, TrackedModel

JOB_TAG, TENANT_TAG = "flashcards.job", "flashcards.tenant"
STATES = {"succeeded": "FINISHED", "failed": "FAILED", "cancelled": "KILLED"}
MODEL_FOLDER = "model"
#: What one request may hold, and how long a text may be: of the oldest servers that are still about.
POINTS, PARAMS, TAGS = 1000, 100, 100
PARAM_LENGTH, TAG_LENGTH = 500, 5000
#: Where the weights of a model may lie: ours, what somebody put beside another flavour, and what that flavour wrote.
WEIGHTS = (
    *("model.safetensors", "state_dict.pth", "extra_files/model.safetensors", "extra_files/state_dict.pth"),
    *("model.onnx", "data/model.pth", "data/model.pt2"),
)
NO_PROXY = "it keeps no files for others: start it with --serve-artifacts, as it does by default"
Item = TypeVar("Item")


class Mlflow:
    def __init__(self, url: str, token: str, timeout_seconds: float) -> None:
        self._line = Line(url, token, timeout_seconds)
        self._places: dict[str, str] = {}

    def close(self) -> None:
        self._line.close()

    def is_reachable(self) -> bool:
        try:
            self._line.get("api/2.0/mlflow/experiments/search", {"max_results": 1})
        except (TrackerAway, TrackerRefused):
            return False
        return True

    def begin(self, run: Run) -> str:
        experiment = self._experiment(run.experiment)
        body = {
            "experiment_ids": [experiment],
            "filter": f"tags.`{JOB_TAG}` = '{run.job_id}'",
            "max_results": 1,
            "run_view_type": "ACTIVE_ONLY",
        }
        if found := self._line.post("api/2.0/mlflow/runs/search", body).get("runs"):
            return str(found[0]["info"]["run_id"])
        tags = {**run.tags, JOB_TAG: run.job_id, "mlflow.runName": run.name, "mlflow.source.name": "flashcards"}
        made = self._line.post(
            "api/2.0/mlflow/runs/create",
            {
                "experiment_id": experiment,
                "run_name": run.name,
                "start_time": _milliseconds(run.started_at),
                "tags": _pairs(tags, TAG_LENGTH),
            },
        )
        return str(made["run"]["info"]["run_id"])

    def tell(
        self,
        run_id: str,
        params: Mapping[str, str] | None = None,
        points: Sequence[Point] = (),
        tags: Mapping[str, str] | None = None,
    ) -> None:
        for some in _parts(_pairs(params or {}, PARAM_LENGTH), PARAMS):
            self._of_run("runs/log-batch", run_id, params=some)
        for some in _parts(_pairs(tags or {}, TAG_LENGTH), TAGS):
            self._of_run("runs/log-batch", run_id, tags=some)
        for part in _parts(points, POINTS):
            metrics = [
                {"key": point.name, "value": point.value, "step": point.step, "timestamp": _milliseconds(point.at)}
                for point in part
            ]
            self._of_run("runs/log-batch", run_id, metrics=metrics)

    def end(self, run_id: str, state: str, at: float | None) -> None:
        when = {} if at is None else {"end_time": _milliseconds(at)}
        self._of_run("runs/update", run_id, status=STATES.get(state, "RUNNING"), **when)

    def keep(self, run_id: str, name: str, content: Path | bytes) -> None:
        self._line.put(f"api/2.0/mlflow-artifacts/artifacts/{self._place(run_id)}/{name}", content)

    def keep_model(self, run_id: str, model: TrackedModel) -> None:
        for name, content in folder_of(model, run_id).items():
            self.keep(run_id, f"{MODEL_FOLDER}/{name}", content)

    def register(self, run_id: str, name: str, tags: Mapping[str, str]) -> str:
        self._make("registered-models/create", {"name": name})
        asked = {"filter": f"run_id = '{run_id}'"}
        known = self._line.get("api/2.0/mlflow/model-versions/search", asked).get("model_versions", [])
        for version in known:
            if version["name"] == name:
                return str(version["version"])
        source = f"mlflow-artifacts:/{self._place(run_id)}/{MODEL_FOLDER}"
        body = {"name": name, "source": source, "run_id": run_id, "tags": _pairs(tags, TAG_LENGTH)}
        return str(self._line.post("api/2.0/mlflow/model-versions/create", body)["model_version"]["version"])

    def fetch(self, reference: str, to: Path, tenant: str, file: str | None, most: int) -> str:
        version = self._version(read_reference(reference))
        owner = next((tag["value"] for tag in version.get("tags", []) if tag["key"] == TENANT_TAG), tenant)
        if owner != tenant:
            raise TrackerRefused(f"there is no {reference} for you", final=True)
        place = {"name": version["name"], "version": version["version"]}
        for name in (file,) if file else WEIGHTS:
            if self._line.save("model-versions/get-artifact", {**place, "path": name}, to, most):
                return name
        looked_for = file or ", ".join(WEIGHTS)
        raise TrackerRefused(f"{reference} has no file {looked_for}: name one as `file`", final=True)

    def _version(self, reference: Reference) -> dict[str, Any]:
        """What the registry says of it. An alias is looked up, and so is the newest."""
        name = {"name": reference.name}
        if reference.alias is not None:
            found = self._line.get("api/2.0/mlflow/registered-models/alias", {**name, "alias": reference.alias})
        elif reference.version is not None:
            found = self._line.get("api/2.0/mlflow/model-versions/get", {**name, "version": reference.version})
        else:
            asked = {"filter": f"name = '{reference.quoted}'", "max_results": 1, "order_by": "version_number DESC"}
            newest = self._line.get("api/2.0/mlflow/model-versions/search", asked).get("model_versions", [])
            if not newest:
                raise TrackerRefused(f"{reference.name} has no version", final=True)
            return dict(newest[0])
        return dict(found["model_version"])

    def _experiment(self, name: str) -> str:
        found = self._known_experiment(name)
        if found is None:
            self._make("experiments/create", {"name": name})
            found = self._known_experiment(name) or {}
        if found.get("lifecycle_stage") != "active":
            raise TrackerRefused(f"its experiment {name!r} was deleted: restore it there, or name another")
        return str(found["experiment_id"])

    def _known_experiment(self, name: str) -> dict[str, Any] | None:
        try:
            answer = self._line.get("api/2.0/mlflow/experiments/get-by-name", {"experiment_name": name})
        except Unknown:
            return None
        return dict(answer["experiment"])

    def _place(self, run_id: str) -> str:
        """Where the files of a run are, as the server's own store counts it."""
        if run_id not in self._places:
            try:
                run = self._line.get("api/2.0/mlflow/runs/get", {"run_id": run_id})["run"]
            except Unknown as unknown:
                raise RunGone(unknown.detail) from None
            where = urlsplit(run["info"]["artifact_uri"])
            if where.scheme != "mlflow-artifacts":
                raise TrackerRefused(NO_PROXY, final=True)
            self._places = {run_id: where.path.strip("/")}  # the last one: it is asked for file after file
        return self._places[run_id]

    def _make(self, what: str, body: dict[str, Any]) -> None:
        """Somebody may have made it already, or in this moment."""
        with suppress(Known):
            self._line.post(f"api/2.0/mlflow/{what}", body)

    def _of_run(self, verb: str, run_id: str, **body: Any) -> None:
        try:
            self._line.post(f"api/2.0/mlflow/{verb}", {"run_id": run_id, **body})
        except Unknown as unknown:
            raise RunGone(unknown.detail) from None


def _milliseconds(at: float) -> int:
    return round(at * 1000)


def _pairs(texts: Mapping[str, str], most: int) -> list[dict[str, str]]:
    return [{"key": key, "value": value[:most]} for key, value in texts.items()]


def _parts(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
