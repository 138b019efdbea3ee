"""Every recipe is run as it is written, against a real service with keys."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from making import make_key, npz
from pipelines import RECIPES, TOOLS, Run, StepFailed
from safetensors.numpy import load_file

PAGE = RECIPES.parent / "recipes.md"


def test_every_recipe_is_run_here_and_told_of():
    there = {path.name for path in RECIPES.iterdir() if path.is_file()}
    assert there == set(TOOLS)
    assert [name for name in there if f"(recipes/{name})" not in PAGE.read_text()] == []


@pytest.mark.parametrize("name", [name for name in TOOLS if name.endswith(".py")])
def test_python_recipes_need_httpx_and_their_tool_alone(name):
    tree = ast.parse((RECIPES / name).read_text())
    imported = {
        (node.module or "").split(".")[0] if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert imported - {"os", "pathlib", "datetime"} == {"httpx", name.split("_")[0]}


def shell_blocks(name: str) -> list[str]:
    text = yaml.safe_load((RECIPES / name).read_text())
    if name.startswith("github"):
        (job,) = text["jobs"].values()
        return [step["run"] for step in job["steps"] if "run" in step]
    scripts = [template["script"] for template in text["spec"]["templates"] if "script" in template]
    return [
        {each["name"]: each.get("value") for each in scripts[0]["env"]}["ASK"],
        *(s["source"] for s in scripts),
    ]


@pytest.mark.parametrize(("name", "shell"), [("github-actions.yml", "bash"), ("argo-workflow.yaml", "sh")])
def test_shell_blocks_are_sound(name, shell, tmp_path):
    """But for what a block sources (SC109x) and what steps before it have set (SC215x): that is not seen from there."""
    for number, block in enumerate(shell_blocks(name)):
        path = tmp_path / f"{number}.sh"
        path.write_text(re.sub(r"\{\{[^}]*\}\}", "1", block))
        found = subprocess.run(
            ["shellcheck", f"--shell={shell}", "--exclude=SC1090,SC1091,SC2153,SC2154", str(path)],
            capture_output=True,
            text=True,
            env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"},
        )
        assert found.returncode == 0, found.stdout


def test_the_workflow_is_one_that_github_takes():
    found = subprocess.run(
        [
            str(Path(sys.executable).with_name("check-jsonschema")),
            "--builtin-schema=vendor.github-workflows",
            str(RECIPES / "github-actions.yml"),
        ],
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stdout


def test_the_workflow_of_argo_asks_the_service_that_our_manifests_make():
    """By its name in the namespace, and with a secret that is not that of the service itself."""
    base = RECIPES.parents[1] / "docker/kubernetes/base"
    namespace = yaml.safe_load((base / "namespace.yaml").read_text())["metadata"]["name"]
    parts = list(yaml.safe_load_all((base / "api.yaml").read_text()))
    (service,) = [part for part in parts if part["kind"] == "Service"]
    (deployment,) = [part for part in parts if part["kind"] == "Deployment"]
    spec = yaml.safe_load((RECIPES / "argo-workflow.yaml").read_text())["spec"]
    given = {each["name"]: each["value"] for each in spec["arguments"]["parameters"]}
    assert given["url"] == f"http://{service['metadata']['name']}.{namespace}.svc"
    assert [port["port"] for port in service["spec"]["ports"]] == [80]
    ours = {
        volume["secret"]["secretName"]
        for volume in deployment["spec"]["template"]["spec"]["volumes"]
        if "secret" in volume
    }
    scripts = [template["script"] for template in spec["templates"] if "script" in template]
    keys = {each["valueFrom"]["secretKeyRef"]["name"] for s in scripts for each in s["env"] if "valueFrom" in each}
    assert len(keys) == 1
    assert not keys & ours


@pytest.fixture
def run(locked, admin, digits, tmp_path, request):
    (tmp_path / "first.npz").write_bytes(npz(x=digits["x_train"]))
    (tmp_path / "next.npz").write_bytes(npz(x=255 - digits["x_train"]))
    tenant = re.sub(r"[\W_]+", "-", request.node.callspec.params["name"])
    key = make_key(admin, tenant=tenant, scopes=["read", "write"])
    return Run(tmp_path, f"run-of-{tenant}", locked.url, key, tmp_path / "first.npz", tmp_path / "next.npz")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", TOOLS)
def test_it_runs_as_written_and_twice_without_doing_anything_twice(name, run, knock, monkeypatch):
    TOOLS[name](run, monkeypatch)
    weights = run.target.read_bytes()
    assert load_file(run.target)
    with knock(run.key) as api:
        jobs = api.get("/v1/jobs").json()["items"]
        assert sorted((job["kind"], job["state"]) for job in jobs) == [
            ("capture", "succeeded"),
            ("learn", "succeeded"),
            ("train", "succeeded"),
        ]
        (learner,) = api.get("/v1/learners").json()["items"]
        assert learner["version"] == 1
        assert api.get(f"/v1/learners/{learner['id']}/versions/1/weights").content == weights

        run.target.unlink()
        run.max_forgetting = -10
        with pytest.raises((RuntimeError, StepFailed), match="became worse by"):
            TOOLS[name](run, monkeypatch)
        assert not run.target.exists()
        assert [job["id"] for job in api.get("/v1/jobs").json()["items"]] == [job["id"] for job in jobs]
        assert api.get(f"/v1/learners/{learner['id']}").json()["version"] == 0
    assert len(run.steps) >= 6
