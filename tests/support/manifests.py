"""What `kubectl kustomize` would make of a folder, as far as ours need it: resources, components, images, generated
settings, and patches that take a field away."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

Manifest = dict[str, Any]


def build(folder: Path) -> list[Manifest]:
    told = yaml.safe_load((folder / "kustomization.yaml").read_text())
    found = [part for name in told.get("resources", []) for part in _read(folder / name)]
    found += [part for name in told.get("components", []) for part in build(folder / name)]
    found += [_config_map(settings) for settings in told.get("configMapGenerator", [])]
    for patch in told.get("patches", []):
        _apply(found, yaml.safe_load((folder / patch["path"]).read_text()))
    tags = {image["name"]: image["newTag"] for image in told.get("images", [])}
    for container in (container for part in found for container in containers(part)):
        if container["image"] in tags:
            container["image"] += f":{tags[container['image']]}"
    return found


def containers(part: Manifest) -> Iterator[Manifest]:
    pod = pod_of(part)
    yield from pod.get("initContainers", [])
    yield from pod.get("containers", [])


def pod_of(part: Manifest) -> Manifest:
    return part.get("spec", {}).get("template", {}).get("spec", {}) if part["kind"] == "Deployment" else {}


def _read(path: Path) -> list[Manifest]:
    return build(path) if path.is_dir() else [part for part in yaml.safe_load_all(path.read_text()) if part]


def _config_map(settings: dict[str, Any]) -> Manifest:
    data = dict(literal.split("=", 1) for literal in settings["literals"])
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": settings["name"]}, "data": data}


def _apply(found: list[Manifest], patch: Manifest) -> None:
    (target,) = [
        part for part in found if (part["kind"], part["metadata"]["name"]) == (patch["kind"], patch["metadata"]["name"])
    ]
    assert patch["spec"] == {"replicas": None}, "no other patch is known here"
    target["spec"].pop("replicas")
