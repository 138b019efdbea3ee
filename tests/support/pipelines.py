"""Runs the recipes of docs/recipes as their tools would, without the tools: the very functions and shell blocks."""

import importlib.util
import inspect
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import yaml

RECIPES = Path(__file__).parents[2] / "docs" / "recipes"


class StepFailed(Exception):
    pass


@dataclass
class Run:
    """One run of a pipeline: its name, who asks whom, and what is asked for."""

    folder: Path
    name: str
    url: str
    key: str
    first: Path
    following: Path
    max_forgetting: float = 10
    architecture: str = "blk_1_fil_8"
    epochs: int = 30
    count: int = 20
    steps: list[str] = field(default_factory=list)

    @property
    def target(self) -> Path:
        return self.folder / "line-7.safetensors"

    @property
    def environment(self) -> dict[str, str]:
        return {"FLASHCARDS_URL": self.url, "FLASHCARDS_KEY": self.key}

    @property
    def parameters(self) -> dict[str, Any]:
        """As the two Python recipes name them."""
        sizes = {"architecture": self.architecture, "epochs": self.epochs, "count": self.count}
        places = {"first": str(self.first), "following": str(self.following), "target": str(self.target)}
        return {**sizes, **places, "max_forgetting": self.max_forgetting}


def run_airflow(run: Run, monkeypatch) -> None:
    made: list[Any] = []
    sdk = ModuleType("airflow.sdk")
    sdk.PokeReturnValue = SimpleNamespace
    sdk.dag = lambda **_: lambda function: lambda: made.append(function)
    sdk.task = _airflow_task(run)
    monkeypatch.setitem(sys.modules, "airflow", ModuleType("airflow"))
    monkeypatch.setitem(sys.modules, "airflow.sdk", sdk)
    _load("airflow_dag.py", run, monkeypatch)
    (dag,) = made
    dag(**run.parameters)


def _airflow_task(run: Run) -> Any:
    def task(function: Any) -> Any:
        def step(*words: Any) -> Any:
            run.steps.append(function.__name__)
            context = {"run_id": run.name} if "run_id" in inspect.signature(function).parameters else {}
            return function(*words, **context)

        return step

    def sensor(**_: Any) -> Any:
        def made(function: Any) -> Any:
            def step(*words: Any) -> Any:
                run.steps.append(function.__name__)
                while not (found := function(*words)).is_done:
                    continue  # the question itself waits for some seconds
                return found.xcom_value

            return step

        return made

    task.sensor = sensor  # type: ignore[attr-defined]
    return task


def run_prefect(run: Run, monkeypatch) -> None:
    prefect, runtime = ModuleType("prefect"), ModuleType("prefect.runtime")

    def task(**_: Any) -> Any:
        def made(function: Any) -> Any:
            def step(*words: Any) -> Any:
                run.steps.append(function.__name__)
                return function(*words)

            return step

        return made

    prefect.task, prefect.flow = task, lambda function: function
    runtime.flow_run = SimpleNamespace(id=run.name)
    monkeypatch.setitem(sys.modules, "prefect", prefect)
    monkeypatch.setitem(sys.modules, "prefect.runtime", runtime)
    _load("prefect_flow.py", run, monkeypatch).continual(**run.parameters)


def _load(name: str, run: Run, monkeypatch) -> ModuleType:
    for variable, value in run.environment.items():
        monkeypatch.setenv(variable, value)
    spec = importlib.util.spec_from_file_location(f"recipe_{Path(name).stem}", RECIPES / name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_github(run: Run, _: Any) -> None:
    """Steps in order, in one folder; what a step writes to GITHUB_ENV the next ones have."""
    (job,) = yaml.safe_load((RECIPES / "github-actions.yml").read_text())["jobs"].values()
    assert job["defaults"]["run"]["shell"] == "bash"
    known = {"vars.FLASHCARDS_URL": run.url, "secrets.FLASHCARDS_KEY": run.key}
    known["inputs.max_forgetting"] = str(run.max_forgetting)
    ours = {"FIRST": run.first, "NEXT": run.following, "ARCHITECTURE": run.architecture}
    sizes = {"EPOCHS": run.epochs, "COUNT": run.count}
    assert set(ours) | set(sizes) <= set(job["env"])
    environment = {name: _fill(str(value), known) for name, value in job["env"].items()}
    environment |= {name: str(value) for name, value in {**ours, **sizes}.items()}
    passed_on = run.folder / "github-env"
    passed_on.write_text("")
    environment |= {"GITHUB_RUN_ID": run.name, "GITHUB_ENV": str(passed_on), "RUNNER_TEMP": str(run.folder)}
    for step in job["steps"]:
        if "run" in step:
            run.steps.append(step["name"])
            _shell(["bash", "--noprofile", "--norc", "-eo", "pipefail"], step["run"], environment, run.folder)
            environment |= dict(line.split("=", 1) for line in passed_on.read_text().splitlines())
    files = job["steps"][-1]["with"]["path"].split()
    assert [name for name in files if not (run.folder / name).exists()] == []


def run_argo(run: Run, _: Any) -> None:
    """Task after task as the DAG has them, each in a folder that stands for its container's /tmp."""
    spec = yaml.safe_load((RECIPES / "argo-workflow.yaml").read_text())["spec"]
    templates = {template["name"]: template for template in spec["templates"]}
    tasks = {task["name"]: task for task in templates[spec["entrypoint"]]["dag"]["tasks"]}
    ours = {"url": run.url, "first": run.first.as_uri(), "next": run.following.as_uri(), "count": run.count}
    ours |= {"architecture": run.architecture, "epochs": run.epochs, "max-forgetting": run.max_forgetting}
    assert set(ours) == {parameter["name"] for parameter in spec["arguments"]["parameters"]}
    known = {f"workflow.parameters.{name}": str(value) for name, value in ours.items()} | {"workflow.uid": run.name}
    before = {name: set(re.findall(r"[\w-]+", task.get("depends", ""))) for name, task in tasks.items()}
    for name in TopologicalSorter(before).static_order():
        run.steps.append(name)
        known |= _argo_step(run, name, tasks[name], templates[tasks[name]["template"]], known)
    (run.folder / "download" / run.target.name).rename(run.target)


def _argo_step(run: Run, name: str, task: dict, template: dict, known: dict[str, str]) -> dict[str, str]:
    place = run.folder / name
    place.mkdir(exist_ok=True)
    given = {each["name"]: _fill(each["value"], known) for each in task["arguments"]["parameters"]}
    assert set(given) == {each["name"] for each in template["inputs"]["parameters"]}
    inside = known | {f"inputs.parameters.{each}": value for each, value in given.items()}
    script = template["script"]
    environment = {each["name"]: _fill(each["value"], inside) for each in script["env"] if "value" in each}
    environment["ASK"] = environment["ASK"].replace("/tmp/", f"{place}/")
    environment["FLASHCARDS_KEY"] = run.key
    _shell(script["command"], _fill(script["source"].replace("/tmp/", f"{place}/"), inside), environment, place)
    outputs = template.get("outputs", {})
    for artifact in outputs.get("artifacts", []):
        assert (place / Path(artifact["path"]).name).exists()
    return {
        f"tasks.{name}.outputs.parameters.{each['name']}": _output(place, each["valueFrom"])
        for each in outputs.get("parameters", [])
    }


def _output(place: Path, told: dict[str, str]) -> str:
    path = place / Path(told["path"]).name
    return path.read_text().strip() if path.exists() else told["default"]


def _fill(text: str, known: dict[str, str]) -> str:
    """`${{ name }}` and `{{name}}`: what is not known is a KeyError."""
    return re.sub(r"\$?\{\{\s*([\w.-]+)\s*\}\}", lambda match: known[match[1]], text)


def _shell(command: list[str], script: str, environment: dict[str, str], folder: Path) -> None:
    path = folder / "step.sh"
    path.write_text(script)
    plain = {name: value for name, value in os.environ.items() if not name.startswith("FLASHCARDS_")}
    done = subprocess.run(
        [*command, str(path)], env={**plain, **environment}, cwd=folder, capture_output=True, text=True, timeout=400
    )
    if done.returncode:
        raise StepFailed(done.stdout + done.stderr)


TOOLS = {
    "airflow_dag.py": run_airflow,
    "prefect_flow.py": run_prefect,
    "github-actions.yml": run_github,
    "argo-workflow.yaml": run_argo,
}
