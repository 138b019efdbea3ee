"""No cluster is asked: what the manifests name must exist, and their form is held against Kubernetes' own schemas."""

import copy
from collections.abc import Iterator
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from deployment import Image, command_problems, setting_problems
from manifests import Manifest, build, containers, pod_of
from promql import asked

import flashcards
from ledger.settings import Settings
from service.serve import STOP_SECONDS

FOLDER = Path("docker/kubernetes")
ALL = ("base", "overlays/production", "overlays/gpu")
CUSTOM = ("ScaledObject", "PodMonitor")
VERSION = "1.34"
SECRETS = "/run/secrets/flashcards/"
API, METRICS = str(Settings.model_fields["port"].default), "9464"


class Cluster:
    """What an overlay makes, and what is wrong with it."""

    def __init__(self, parts: list[Manifest], image: Image, secrets: set[str]) -> None:
        self.parts, self.image, self.secrets = parts, image, secrets

    def of(self, kind: str) -> list[Manifest]:
        return [part for part in self.parts if part["kind"] == kind]

    def one(self, kind: str, name: str) -> Manifest:
        (found,) = [part for part in self.of(kind) if part["metadata"]["name"] == name]
        return found

    def problems(self) -> list[str]:
        found = []
        for part in self.of("Deployment"):
            name, pod = part["metadata"]["name"], pod_of(part)
            checks = (self._labels(part), self._pod(pod), self._volumes(pod))
            found += [f"{name}: {problem}" for check in checks for problem in check]
            for container in containers(part):
                problems = (self._container(container, pod), self._settings(container), self._probes(container))
                found += [f"{name}/{container['name']}: {problem}" for check in problems for problem in check]
        return [*found, *self._selectors(), *self._scaling()]

    def _labels(self, part: Manifest) -> Iterator[str]:
        wanted, has = part["spec"]["selector"]["matchLabels"], part["spec"]["template"]["metadata"]["labels"]
        if not wanted.items() <= has.items():
            yield "it does not select its own pods"

    def _pod(self, pod: Manifest) -> Iterator[str]:
        user = self.image.user("flashcards").split(":")
        context = pod.get("securityContext", {})
        if [str(context.get("runAsUser")), str(context.get("runAsGroup"))] != user or not context.get("runAsNonRoot"):
            yield "its user is not the image's"
        if context.get("seccompProfile") != {"type": "RuntimeDefault"}:
            yield "it may call the kernel as it likes"
        if pod.get("automountServiceAccountToken") is not False:
            yield "it holds a key to the cluster"
        accounts = {account["metadata"]["name"] for account in self.of("ServiceAccount")}
        if pod.get("serviceAccountName") not in accounts:
            yield f"there is no account {pod.get('serviceAccountName')}"

    def _volumes(self, pod: Manifest) -> Iterator[str]:
        for volume in pod["volumes"]:
            for item in volume.get("secret", {}).get("items", []):
                if item["key"] not in self.secrets:
                    yield f"the secret {item['key']} is not made by make-secrets"
            if "emptyDir" in volume and "sizeLimit" not in volume["emptyDir"]:
                yield f"the volume {volume['name']} has no end"

    def _container(self, container: Manifest, pod: Manifest) -> Iterator[str]:
        name, _, tag = container["image"].partition(":")
        if name not in self.image.dockerfile.stages or tag != flashcards.__version__:
            yield f"the image {container['image']} is not ours, or not of this version"
        yield from command_problems(container["command"])
        context = container.get("securityContext", {})
        if not context.get("readOnlyRootFilesystem"):
            yield "its file system is not read-only"
        if context.get("allowPrivilegeEscalation") is not False or context.get("privileged"):
            yield "it may gain privileges"
        if context.get("capabilities") != {"drop": ["ALL"]}:
            yield "it keeps capabilities"
        for limit in ("requests", "limits"):
            if "memory" not in container.get("resources", {}).get(limit, {}):
                yield f"it has no {limit} of memory"
        mounted = {mount["name"] for mount in container.get("volumeMounts", [])}
        if missing := mounted - {volume["name"] for volume in pod["volumes"]}:
            yield f"there are no volumes {sorted(missing)}"

    def _settings(self, container: Manifest) -> Iterator[str]:
        environment = self.environment(container)
        yield from setting_problems(environment)
        given = {item["key"] for volume in self._secret_volumes(container) for item in volume["secret"]["items"]}
        paths = [value for value in environment.values() if value.startswith("/")]
        for path in paths:
            if path.startswith(SECRETS) and path.removeprefix(SECRETS) not in given:
                yield f"it reads the secret {path.removeprefix(SECRETS)} and is not given it"
            elif not any(f"{path}/".startswith(f"{mount['mountPath']}/") for mount in container["volumeMounts"]):
                yield f"{path} lies in no volume"

    def environment(self, container: Manifest) -> dict[str, str]:
        found: dict[str, str] = {}
        for source in container.get("envFrom", []):
            found |= self.one("ConfigMap", source["configMapRef"]["name"])["data"]
        own = {entry["name"]: entry["value"] for entry in container.get("env", []) if "value" in entry}
        return found | own

    def _secret_volumes(self, container: Manifest) -> list[Manifest]:
        (pod,) = [pod_of(part) for part in self.of("Deployment") if any(c is container for c in containers(part))]
        return [volume for volume in pod["volumes"] if "secret" in volume]

    def _probes(self, container: Manifest) -> Iterator[str]:
        ports = {port["name"]: str(port["containerPort"]) for port in container.get("ports", [])}
        environment = self.environment(container)
        said = {"http": environment.get("FLASHCARDS_PORT"), "metrics": environment.get("FLASHCARDS_METRICS_PORT")}
        for name, port in ports.items():
            if said.get(name) != port:
                yield f"nobody listens on its port {name}"
        if ports and not {"startupProbe", "livenessProbe"} <= container.keys():
            yield "nobody asks whether it lives"
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            asks = container.get(probe, {})
            if "exec" in asks:
                yield from command_problems(asks["exec"]["command"])
            elif "httpGet" in asks and (asks["httpGet"]["port"] not in ports or asks["httpGet"]["path"] != "/healthz"):
                yield f"{probe} asks where nobody answers"

    def _selectors(self) -> Iterator[str]:
        pods = [part["spec"]["template"]["metadata"]["labels"] for part in self.of("Deployment")]
        ports = {
            port["name"] for part in self.of("Deployment") for c in containers(part) for port in c.get("ports", [])
        }
        for kind in ("Service", "PodDisruptionBudget", "PodMonitor", "NetworkPolicy"):
            for part in self.of(kind):
                name, wanted = f"{kind} {part['metadata']['name']}", _selected(part)
                if not any(wanted.items() <= labels.items() for labels in pods):
                    yield f"{name}: it is about no pod"
                if missing := _ports(part) - ports:
                    yield f"{name}: there are no ports {sorted(missing)}"

    def _scaling(self) -> Iterator[str]:
        for scaled in self.of("ScaledObject"):
            name = scaled["spec"]["scaleTargetRef"]["name"]
            targets = [part for part in self.of("Deployment") if part["metadata"]["name"] == name]
            if not targets:
                yield f"ScaledObject {scaled['metadata']['name']}: there is no deployment {name}"
            if any("replicas" in part["spec"] for part in targets):
                yield f"{name}: it says how many there are, and so does KEDA"


def _selected(part: Manifest) -> dict[str, str]:
    spec = part["spec"]
    if part["kind"] == "Service":
        return spec["selector"]
    return spec.get("selector", spec.get("podSelector", {})).get("matchLabels", {})


def _ports(part: Manifest) -> set[str]:
    spec = part["spec"]
    if part["kind"] == "Service":
        return {port["targetPort"] for port in spec["ports"]}
    if part["kind"] == "PodMonitor":
        return {endpoint["port"] for endpoint in spec["podMetricsEndpoints"]}
    rules = spec.get("ingress", [])
    return {port["port"] for rule in rules for port in rule["ports"]}


@pytest.fixture
def cluster(root, image, secrets) -> Cluster:
    """The one with everything."""
    parts = build(root / FOLDER / "overlays/gpu")
    return Cluster(copy.deepcopy(parts), image, {path.name for path in secrets.iterdir()})


@pytest.mark.parametrize("overlay", ALL)
def test_everything_it_names_exists_and_every_pod_is_locked_down(root, image, secrets, overlay):
    cluster = Cluster(build(root / FOLDER / overlay), image, {path.name for path in secrets.iterdir()})
    assert cluster.problems() == []


@pytest.mark.parametrize("overlay", ALL)
def test_kubernetes_knows_every_kind_and_field(root, overlay):
    for part in build(root / FOLDER / overlay):
        if part["kind"] not in CUSTOM:
            kubernetes_validate.validate(part, VERSION, strict=True)


def change(way: str, value: object):
    """Of the container or pod of a deployment: keys with . for the way down; None takes one out."""

    def change(part: Manifest) -> None:
        *above, last = [int(key) if key.isdigit() else key for key in way.split(".")]
        for key in above:
            part = part[key]
        if value is None:
            del part[last]
        else:
            part[last] = value

    return change


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        (
            "api",
            change("spec.template.spec.containers.0.command", ["flashcards", "apis"]),
            "no command flashcards apis",
        ),
        ("api", change("spec.template.spec.containers.0.image", "flashcards:0.0.9"), "not of this version"),
        ("api", change("spec.template.spec.containers.0.image", "redis:8.6.5"), "is not ours"),
        ("api", change("spec.template.spec.containers.0.env.1.value", "8000"), "nobody listens on its port http"),
        (
            "api",
            change("spec.template.spec.containers.0.env.1.name", "FLASHCARDS_PORTS"),
            "no setting FLASHCARDS_PORTS",
        ),
        ("api", change("spec.template.spec.containers.0.env.2.value", "/var/data"), "/var/data lies in no volume"),
        ("api", change("spec.template.spec.containers.0.securityContext", {}), "its file system is not read-only"),
        ("api", change("spec.template.spec.containers.0.resources.limits", {}), "no limits of memory"),
        ("api", change("spec.template.spec.containers.0.livenessProbe", None), "nobody asks whether it lives"),
        (
            "api",
            change("spec.template.spec.volumes.0.secret.items", []),
            "reads the secret database_url and is not given",
        ),
        ("api", change("spec.template.spec.volumes.0.secret.items.0.key", "database"), "not made by make-secrets"),
        ("api", change("spec.template.spec.volumes.1.emptyDir", {}), "the volume data has no end"),
        ("api", change("spec.template.spec.securityContext.runAsUser", 0), "its user is not the image's"),
        ("api", change("spec.template.spec.automountServiceAccountToken", True), "a key to the cluster"),
        ("api", change("spec.template.metadata.labels", {}), "PodMonitor flashcards-api: it is about no pod"),
        (
            "worker",
            change("spec.template.spec.initContainers.0.command.2", "ledger.migrates"),
            "no module ledger.migrates",
        ),
        ("worker", change("spec.template.spec.containers.0.startupProbe.exec.command.2", "worker.checks"), "no module"),
        ("worker", change("spec.template.spec.containers.0.livenessProbe.httpGet.path", "/"), "where nobody answers"),
        ("worker", change("spec.replicas", 3), "it says how many there are, and so does KEDA"),
        ("worker-gpu", change("metadata.name", "workers"), "there is no deployment worker-gpu"),
    ],
)
def test_a_change_for_the_worse_is_said(cluster, name, change, problem):
    change(cluster.one("Deployment", name))
    assert any(problem in found for found in cluster.problems()), cluster.problems()


def test_a_field_that_kubernetes_does_not_know_is_said(cluster):
    part = cluster.one("Deployment", "api")
    part["spec"]["template"]["spec"]["containers"][0]["readOnly"] = True
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(part, VERSION, strict=True)


def test_the_gpu_worker_has_a_gpu_of_its_own(cluster):
    pod = pod_of(cluster.one("Deployment", "worker-gpu"))
    (container,) = pod["containers"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 1
    assert container["image"] == f"flashcards-gpu:{flashcards.__version__}"
    assert container["command"][-2:] == ["--queue", "gpu"]


def test_each_has_longer_to_stop_than_it_takes(cluster):
    longest = Settings().cancel_grace_seconds + Settings().lease_seconds
    for name in ("worker", "worker-gpu"):
        assert pod_of(cluster.one("Deployment", name))["terminationGracePeriodSeconds"] > longest
    api = pod_of(cluster.one("Deployment", "api"))
    pause = int(api["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])
    assert api["terminationGracePeriodSeconds"] > STOP_SECONDS + pause


def test_the_gpu_worker_differs_from_the_other_in_its_device_alone(root):
    """Two files, because no patch could give a copy another name."""
    plain = yaml.safe_load_all((root / FOLDER / "base/worker.yaml").read_text())
    (worker,) = [part for part in plain if part["kind"] == "Deployment"]
    gpu = yaml.safe_load((root / FOLDER / "overlays/gpu/worker-gpu.yaml").read_text())
    for part in (worker, gpu):
        pod = pod_of(part)
        pod.pop("tolerations", None)
        for container in containers(part):
            for key in ("image", "command", "resources", "name"):
                del container[key]
    assert pod_of(worker) == pod_of(gpu)


@pytest.mark.parametrize(("name", "queue"), [("worker", "cpu"), ("worker-gpu", "gpu")])
def test_keda_counts_who_is_busy_and_how_long_the_queue_waits(cluster, name, queue):
    spec = cluster.one("ScaledObject", name)["spec"]
    (trigger,) = spec["triggers"]
    assert trigger["type"] == "prometheus"
    found = asked(trigger["metadata"]["query"])
    assert found.figures == {"flashcards_worker_busy", "flashcards_oldest_queued_seconds"}
    assert f'queue="{queue}"' in trigger["metadata"]["query"]
    assert float(trigger["metadata"]["threshold"]) == 1
    assert trigger["metadata"]["ignoreNullValues"] == "false"  # else nothing measured is nothing to do
    assert spec["minReplicaCount"] < spec["maxReplicaCount"]


def test_the_ports_are_those_of_the_network_policy(cluster):
    (rule,) = cluster.one("NetworkPolicy", "api-in")["spec"]["ingress"]
    assert [port["port"] for port in rule["ports"]] == ["http"]
    (_, servers) = cluster.one("NetworkPolicy", "servers-out")["spec"]["egress"]
    assert [port["port"] for port in servers["ports"]] == [5432, 6379, 443]


def test_nobody_may_pass_but_by_a_rule(cluster):
    closed = cluster.one("NetworkPolicy", "closed")["spec"]
    assert closed == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
