"""Holds compose files and Dockerfile against the tree: whatever they name must exist. Says what does not."""

import importlib.util
import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml
from dockerfile import Dockerfile, Instruction, is_left_out
from pydantic import ValidationError
from typer.exceptions import TyperException
from typer.main import get_command

from flashcards.cli import app
from ledger.settings import SECRETS, Settings

TARGETS = ("flashcards", "flashcards-gpu")
VARIABLE = re.compile(r"\$(?:\$|\{(?P<name>\w+):-(?P<default>[^}]*)\})")
FILE_VARIABLES = {f"FLASHCARDS_{name.upper()}_FILE" for name in SECRETS}
SECRETS_FOLDER = "/run/secrets/"
#: Who may be reached from outside, and at which of its ports.
DOORS = {"proxy": "8642", "grafana": "3000"}


def read_compose(path: Path) -> dict[str, Any]:
    """As Compose reads it where no variable is set."""
    return _resolved(yaml.safe_load(path.read_text()))


def variables(path: Path) -> set[str]:
    return {found["name"] for found in VARIABLE.finditer(path.read_text()) if found["name"]}


def _resolved(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _resolved(value) for key, value in part.items()}
    if isinstance(part, list):
        return [_resolved(value) for value in part]
    if isinstance(part, str):
        return VARIABLE.sub(lambda found: "$" if found["name"] is None else found["default"], part)
    return part


def seconds(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)([sm])", text).groups()
    return int(number) * {"s": 1, "m": 60}[unit]


def is_pinned(image: str) -> bool:
    """By a digest, or by a tag that says a version."""
    name, _, tag = image.rpartition("/")[2].partition(":")
    return "@sha256:" in image or bool(name and re.search(r"\d+\.\d+", tag))


def command_problems(words: list[str]) -> Iterator[str]:
    match words:
        case ["flashcards", *rest]:
            yield from _flashcards_problems(rest)
        case ["python", "-m", module]:
            if importlib.util.find_spec(module) is None:
                yield f"there is no module {module}"
        case ["python", "-c", code]:
            compile(code, "healthcheck", "exec")
        case ["mkdir", "-p", _]:
            pass
        case _:
            yield f"nobody knows the command {words}"


def _flashcards_problems(words: list[str]) -> Iterator[str]:
    command = get_command(app)
    while words and hasattr(command, "commands"):
        name, *words = words
        if name not in command.commands:
            yield f"there is no command flashcards {name}"
            return
        command = command.commands[name]
    try:
        command.make_context(command.name, list(words))
    except TyperException as error:
        yield f"flashcards {command.name} does not take {words}: {error}"


@dataclass
class Image:
    """What the Dockerfile says."""

    root: Path
    dockerfile: Dockerfile
    ignore: str

    def problems(self) -> list[str]:
        found = [*self._bases(), *self._copies(), *self._packages()]
        for target in TARGETS:
            if target in self.dockerfile.stages:
                found += [f"{target}: {problem}" for problem in self._target(target)]
            else:
                found.append(f"there is no target {target}")
        return found

    def _bases(self) -> Iterator[str]:
        seen: set[str] = set()
        for stage in self.dockerfile.stages.values():
            if stage.base not in seen and not is_pinned(stage.base):
                yield f"{stage.name}: {stage.base} is neither a stage nor pinned"
            seen.add(stage.name)

    def _copies(self) -> Iterator[str]:
        seen: set[str] = set()
        for stage in self.dockerfile.stages.values():
            for step in stage.instructions:
                if step.word == "COPY":
                    yield from (f"{stage.name}: {problem}" for problem in self._copy(step, seen))
            seen.add(stage.name)

    def _copy(self, step: Instruction, earlier: set[str]) -> Iterator[str]:
        options = [word for word in step.words() if word.startswith("--")]
        sources = [word for word in step.words() if not word.startswith("--")][:-1]
        for option in options:
            if option.startswith("--from=") and option.removeprefix("--from=") not in earlier:
                yield f"{option}: there is no such stage before it"
        if any(option.startswith("--from=") for option in options):
            return
        for source in sources:
            if not (self.root / source).exists():
                yield f"{source} is not in the tree"
            if is_left_out(source, self.ignore):
                yield f"{source} is left out by .dockerignore"

    def _packages(self) -> Iterator[str]:
        project = tomllib.loads((self.root / "pyproject.toml").read_text())
        packages = {name.rstrip("*") for name in project["tool"]["setuptools"]["packages"]["find"]["include"]}
        steps = [step for stage in self.dockerfile.stages.values() for step in stage.instructions]
        copied = {word for step in steps if step.word == "COPY" for word in step.words()}
        yield from (f"the package {name} is not copied" for name in sorted(packages - copied))

    def _target(self, target: str) -> Iterator[str]:
        user = self.dockerfile.last(target, "USER")
        if user is None or not re.fullmatch(r"[1-9]\d*:[1-9]\d*", user.value):
            yield "it must run as a user other than root, given as numbers"
        health = self.dockerfile.last(target, "HEALTHCHECK")
        if health is None:
            yield "it has no health check"
        for step in (
            self.dockerfile.last(target, "CMD"),
            health and Instruction("CMD", health.value.partition("CMD ")[2]),
        ):
            yield from command_problems(step.words() if step else [])
        port = self.dockerfile.last(target, "EXPOSE")
        if port is None or port.value.split()[0] != str(Settings.model_fields["port"].default):
            yield "it does not show the port that the API listens on"
        yield from setting_problems(self.dockerfile.environment(target))

    def user(self, target: str) -> str:
        return self.dockerfile.last(target, "USER").value


def setting_problems(environment: dict[str, str]) -> Iterator[str]:
    ours = {name: str(value) for name, value in environment.items() if name.startswith("FLASHCARDS_")}
    for name in ours:
        if name not in FILE_VARIABLES and name.removeprefix("FLASHCARDS_").lower() not in Settings.model_fields:
            yield f"there is no setting {name}"
    try:
        with patch.dict(os.environ, ours, clear=True):
            Settings()
    except ValidationError as error:
        yield from (f"{entry['loc'][0]} is no good: {entry['msg']}" for entry in error.errors())


@dataclass
class Stack:
    """What a compose file says, with the image that it builds."""

    folder: Path
    compose: dict[str, Any]
    image: Image
    secrets_made: set[str]

    @cached_property
    def services(self) -> dict[str, dict[str, Any]]:
        return self.compose["services"]

    def problems(self) -> list[str]:
        found = [f"secret {name}: {problem}" for name, problem in self._secrets()]
        for name, service in self.services.items():
            checks = (self._image, self._commands, self._environment, self._mounts, self._links, self._hardening)
            found += [f"{name}: {problem}" for check in checks for problem in check(service)]
            found += [f"{name}: {problem}" for problem in self._doors(name, service)]
        return found

    def is_ours(self, service: dict[str, Any]) -> bool:
        return "build" in service

    def user(self, service: dict[str, Any]) -> str:
        return service.get("user", "root")

    def _secrets(self) -> Iterator[tuple[str, str]]:
        used = {secret for service in self.services.values() for secret in service.get("secrets", [])}
        for name, secret in self.compose.get("secrets", {}).items():
            path = Path(secret["file"])
            if path.parent != Path("docker/secrets") or path.name not in self.secrets_made:
                yield name, f"{path} is not made by make-secrets"
            if name not in used:
                yield name, "no service reads it"

    def _image(self, service: dict[str, Any]) -> Iterator[str]:
        if not is_pinned(service.get("image", "")):
            yield f"the image {service.get('image')} is not pinned"
        if not self.is_ours(service):
            return
        build = service["build"]
        if not (self.folder / build["context"] / build["dockerfile"]).is_file():
            yield f"there is no {build['dockerfile']}"
        if build["target"] not in self.image.dockerfile.stages:
            yield f"there is no target {build['target']}"
        elif self.user(service) != self.image.user(build["target"]):
            yield "its user is not the image's"

    def _commands(self, service: dict[str, Any]) -> Iterator[str]:
        if self.is_ours(service):
            yield from command_problems(service["command"])
        runs_on = service.get("restart") != "no"
        health = service.get("healthcheck", {}).get("test")
        if health is None and runs_on and not self.is_ours(service):
            yield "it has no health check"
        if health and self.is_ours(service):
            yield from command_problems(health[1:])
        if "worker" in service.get("command", []) and health != ["CMD", "python", "-m", "worker.check"]:
            yield "a worker has no port to ask: it needs a health check of its own"

    def _environment(self, service: dict[str, Any]) -> Iterator[str]:
        environment = service.get("environment", {})
        if self.is_ours(service):
            yield from setting_problems(environment)
        said = " ".join(map(str, [*environment.values(), *service.get("command", [])]))
        read = set(re.findall(rf"{SECRETS_FOLDER}(\w+)", said))
        given = set(service.get("secrets", []))
        yield from (f"it reads the secret {name} and is not given it" for name in sorted(read - given))
        yield from (f"it is given the secret {name} and does not read it" for name in sorted(given - read))
        yield from (
            f"{variable} holds a secret for all to see"
            for variable, value in environment.items()
            if re.search(r"PASSWORD|SECRET|KEY|URL$", variable) and "@" in str(value)
        )

    def _mounts(self, service: dict[str, Any]) -> Iterator[str]:
        targets = []
        for mount in service.get("volumes", []):
            source, target = (None, mount["target"]) if isinstance(mount, dict) else mount.split(":")[:2]
            targets.append(target)
            if source and source.startswith("."):
                if not (self.folder / source).exists():
                    yield f"{source} is not in the tree"
            elif source and source not in self.compose.get("volumes", {}):
                yield f"there is no volume {source}"
        for variable, value in service.get("environment", {}).items():
            path = str(value).removeprefix("file://")
            is_own = path.startswith("/") and not path.startswith(SECRETS_FOLDER) and variable.startswith("FLASHCARDS_")
            if is_own and not any(f"{path}/".startswith(f"{target}/") for target in targets):
                yield f"{variable}={value} lies in no volume, and nothing else can be written"

    def _links(self, service: dict[str, Any]) -> Iterator[str]:
        for name, how in service.get("depends_on", {}).items():
            if name not in self.services:
                yield f"there is no service {name} to wait for"
            elif how["condition"] == "service_healthy" and not self._has_health(self.services[name]):
                yield f"{name} has no health check to wait for"
            elif how.get("required", True) and self.services[name].get("profiles") not in (
                None,
                service.get("profiles"),
            ):
                yield f"{name} is there only by profile"
        networks = self.compose.get("networks", {})
        yield from (f"there is no network {name}" for name in service.get("networks", []) if name not in networks)
        if "networks" not in service and "network_mode" not in service:
            yield "it is on the default network"

    def _has_health(self, service: dict[str, Any]) -> bool:
        """Of its own, or of our image, which asks the API."""
        return "healthcheck" in service or (self.is_ours(service) and "api" in service["command"])

    def _doors(self, name: str, service: dict[str, Any]) -> Iterator[str]:
        networks = self.compose.get("networks", {})
        serves = "FLASHCARDS_HOST" in service.get("environment", {})
        closed = all((networks.get(name) or {}).get("internal") for name in service.get("networks", []))
        carries = service.get("command") == ["flashcards", "courier"]
        if not serves and not carries and name not in DOORS and not closed:
            yield "it has a way out"
        for port in service.get("ports", []):
            if name not in DOORS:
                yield "it may not publish a port"
            elif not re.fullmatch(rf"127\.0\.0\.1:\d+:{DOORS[name]}", port):
                yield f"the port {port} is not its door, or is open to the network"

    def _hardening(self, service: dict[str, Any]) -> Iterator[str]:
        if not re.fullmatch(r"[1-9]\d*:[1-9]\d*", self.user(service)):
            yield "it must run as a user other than root, given as numbers"
        if service.get("read_only") is not True:
            yield "its file system is not read-only"
        if service.get("cap_drop") != ["ALL"] or "cap_add" in service:
            yield "it keeps capabilities"
        if service.get("security_opt") != ["no-new-privileges:true"] or service.get("privileged"):
            yield "it may gain privileges"
        for limit in ("pids_limit", "mem_limit", "logging"):
            if not service.get(limit):
                yield f"it has no {limit}"
        if "max-size" not in service.get("logging", {}).get("options", {}):
            yield "its log has no end"
        if service.get("restart") not in ("unless-stopped", "no"):
            yield "it is not started again"
        if service.get("restart") != "no" and "stop_grace_period" not in service:
            yield "it has no time to stop"
