"""No container is started here: what the compose files name must exist, and what can be run of them is run."""

import copy
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from deployment import Image, Stack, read_compose, seconds, variables

import flashcards
from ledger.settings import Settings
from service.serve import STOP_SECONDS

FILES = ("docker-compose.yml", "docker/embedded.yml")


def read_stack(file: Path, image: Image, secrets: Path) -> Stack:
    return Stack(file.parent, read_compose(file), image, {path.name for path in secrets.iterdir()})


@pytest.fixture
def stack(root, image, secrets) -> Stack:
    return read_stack(root / "docker-compose.yml", image, secrets)


@pytest.mark.parametrize("file", FILES)
def test_everything_it_names_exists_and_every_container_is_locked_down(root, image, secrets, file):
    assert read_stack(root / file, image, secrets).problems() == []


@pytest.mark.parametrize("file", FILES)
def test_it_is_a_compose_file(root, file):
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", root / file]
    answer = subprocess.run(check, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout


def worse(**changes: object):
    """Of one service: keys of the compose file, with __ for the way down; None takes one out."""

    def change(compose: dict, service: str) -> None:
        for way, value in changes.items():
            *above, last = way.split("__")
            part = compose["services"][service]
            for key in above:
                part = part[key]
            if value is None:
                del part[last]
            else:
                part[last] = value

    return change


@pytest.mark.parametrize(
    ("service", "change", "problem"),
    [
        ("api", worse(environment__FLASHCARDS_DATABASE="x"), "there is no setting FLASHCARDS_DATABASE"),
        ("api", worse(environment__FLASHCARDS_PORT="eighty"), "port is no good"),
        ("api", worse(environment__FLASHCARDS_HOME="/var/flashcards"), "lies in no volume"),
        ("api", worse(environment__FLASHCARDS_DATABASE_URL="postgresql://u:p@h/d"), "holds a secret for all to see"),
        ("api", worse(command=["flashcards", "apis"]), "there is no command flashcards apis"),
        ("api", worse(build__target="flashcards-tpu"), "there is no target flashcards-tpu"),
        ("api", worse(build__dockerfile="docker/Dockerfiles"), "there is no docker/Dockerfiles"),
        ("proxy", worse(ports=["8642:8642"]), "is open to the network"),
        ("proxy", worse(ports=["127.0.0.1:8642:8000"]), "is not its door"),
        ("proxy", worse(volumes=["./docker/nginx.conf:/x:ro"]), "./docker/nginx.conf is not in the tree"),
        ("api", worse(ports=["127.0.0.1:8642:8642"]), "it may not publish a port"),
        ("grafana", worse(secrets=[]), "it reads the secret grafana_password and is not given it"),
        ("prometheus", worse(networks=["front", "back"]), "it has a way out"),
        (
            "api",
            worse(depends_on={"postgresql": {"condition": "service_healthy"}}),
            "no service postgresql to wait for",
        ),
        ("api", worse(depends_on={"objects": {"condition": "service_healthy"}}), "objects is there only by profile"),
        ("api", worse(networks=["front", "middle"]), "there is no network middle"),
        ("api", worse(stop_grace_period=None), "it has no time to stop"),
        ("worker", worse(command=["flashcards", "worker", "--queue", "tpu"]), "does not take ['--queue', 'tpu']"),
        ("worker", worse(healthcheck__test=["CMD", "python", "-m", "worker.checks"]), "no module worker.checks"),
        ("worker", worse(healthcheck=None), "it needs a health check of its own"),
        ("worker", worse(networks=["front", "back"]), "it has a way out"),
        ("worker", worse(networks=None), "it is on the default network"),
        ("worker", worse(user="0:0"), "it must run as a user other than root"),
        ("worker", worse(user="10002:10002"), "its user is not the image's"),
        ("worker", worse(read_only=None), "its file system is not read-only"),
        ("worker", worse(cap_add=["SYS_ADMIN"]), "it keeps capabilities"),
        ("worker", worse(security_opt=None), "it may gain privileges"),
        ("worker", worse(mem_limit=None), "it has no mem_limit"),
        ("worker", worse(volumes=["store:/store", "scratch:/data"]), "there is no volume scratch"),
        ("worker", worse(secrets=["database_url"]), "it reads the secret broker_url and is not given it"),
        ("redis", worse(secrets=["redis_users", "admin_key"]), "it is given the secret admin_key and does not read it"),
        ("redis", worse(image="redis"), "the image redis is not pinned"),
        ("redis", worse(image="redis:latest"), "the image redis:latest is not pinned"),
        ("redis", worse(ports=["127.0.0.1:6379:6379"]), "it may not publish a port"),
        ("redis", worse(healthcheck=None), "it has no health check"),
        ("postgres", worse(cap_drop=["NET_RAW"]), "it keeps capabilities"),
        ("postgres", worse(volumes=["./docker/init-db:/x:ro"]), "./docker/init-db is not in the tree"),
    ],
)
def test_a_change_for_the_worse_is_said(stack, service, change, problem):
    change(stack.compose, service)
    assert any(found.startswith(f"{service}: ") and problem in found for found in stack.problems()), stack.problems()


def test_a_secret_that_nobody_makes_is_said(stack):
    compose = copy.deepcopy(stack.compose)
    compose["secrets"]["admin_key"]["file"] = "docker/secrets/admin"
    stack.compose = compose
    assert "secret admin_key: docker/secrets/admin is not made by make-secrets" in stack.problems()


def test_only_the_proxy_and_the_pictures_are_reached_from_outside(stack):
    assert [name for name, service in stack.services.items() if "ports" in service] == ["proxy", "grafana"]
    assert stack.compose["networks"]["back"]["internal"] is True


def test_profiles(stack):
    by_profile = {name: service["profiles"] for name, service in stack.services.items() if "profiles" in service}
    watching = {"prometheus": ["metrics"], "grafana": ["metrics"]}
    assert by_profile == {"worker-gpu": ["gpu"], "objects": ["s3"], "bucket": ["s3"], **watching}


def test_the_gpu_worker_asks_for_a_gpu(stack):
    gpu = stack.services["worker-gpu"]
    (device,) = gpu["deploy"]["resources"]["reservations"]["devices"]
    assert (device["driver"], device["capabilities"]) == ("nvidia", ["gpu"])
    assert gpu["build"]["target"] == "flashcards-gpu"


def test_workers_have_longer_to_stop_than_they_take(stack):
    """With the database away a worker tries to give its job back until the lease has lapsed."""
    longest = Settings().cancel_grace_seconds + Settings().lease_seconds
    for name in ("worker", "worker-gpu"):
        assert seconds(stack.services[name]["stop_grace_period"]) > longest
    assert seconds(stack.services["api"]["stop_grace_period"]) > STOP_SECONDS


def test_the_embedded_one_has_longer_to_stop_than_it_takes_and_answers_on_loopback(root, image, secrets):
    service = read_stack(root / "docker/embedded.yml", image, secrets).services["flashcards"]
    assert seconds(service["stop_grace_period"]) > STOP_SECONDS
    assert service["environment"]["FLASHCARDS_HOST"] == "127.0.0.1"


def test_workers_share_the_store_and_no_scratch(stack):
    """Attempt folders are named by process id, and in every container the first process has the same."""
    for name in ("worker", "worker-gpu"):
        assert "store:/store" in stack.services[name]["volumes"]
        assert {"type": "volume", "target": "/data"} in stack.services[name]["volumes"]


def test_the_bucket_is_the_one_of_the_guide(root, stack):
    (bucket,) = re.findall(r"^STORE_URL=s3://(\w+)/", (root / "docs/deploy.md").read_text(), re.M)
    assert stack.services["bucket"]["command"] == ["mkdir", "-p", f"/store/{bucket}"]
    assert stack.services["bucket"]["volumes"] == ["objects:/store"]


def test_images_are_tagged_with_our_version(stack):
    ours = {service["image"] for service in stack.services.values() if "build" in service}
    assert ours == {f"flashcards:{flashcards.__version__}", f"flashcards-gpu:{flashcards.__version__}"}


def test_the_base_is_the_dockerfiles(stack, image):
    assert stack.services["api"]["build"]["args"]["PYTHON_IMAGE"] == image.dockerfile.stages["runtime"].base


@pytest.mark.parametrize("file", FILES)
def test_every_variable_has_a_default_and_stands_in_the_guide(root, file):
    text = (root / file).read_text()
    assert set(re.findall(r"\$\{(\w+)", text)) == variables(root / file)
    guide = (root / "docs/deploy.md").read_text()
    assert {name for name in variables(root / file) if f"`{name}`" not in guide} == set()


class ComposeLoader(yaml.SafeLoader):
    """Knows `!override`, by which a later file replaces a list in place of adding to it."""


ComposeLoader.add_constructor("!override", lambda loader, node: loader.construct_sequence(node, deep=True))


def test_the_guide_names_what_is_there(root, stack):
    guide = (root / "docs/deploy.md").read_text()
    for block in re.findall(r"```yaml\n(.*?)```", guide, re.S):
        for name, service in yaml.load(block, ComposeLoader)["services"].items():
            assert service.get("extends", {"service": name})["service"] in stack.services
    for path in re.findall(r"`(docker/[\w./-]+|docs/[\w./-]+)`", guide):
        assert (root / path).exists() or path.startswith("docker/secrets"), path
    for name in re.findall(r"docker/secrets/(\w+)", guide):
        assert name in stack.secrets_made, name
    for verb, name in re.findall(r"docker compose (exec|logs|stop|start|run)(?: -\S+)* (\w[\w-]*)", guide):
        assert name in stack.services, f"{verb} {name}"
