"""Prometheus, its alert rules, Grafana's dashboard and the proxy: what they name is really there."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml
from deployment import read_compose, seconds
from making import finished, push_dataset, push_model, submit, wait_for
from prometheus_client.parser import text_string_to_metric_families
from promql import HISTOGRAMS, asked

from ledger.settings import Settings

PROXY = re.compile(r"^\s+timeout (\S+) (\w+)", re.M)
#: Told by a GPU, which no test has. Their form is looked at in tests/worker/test_telemetry.py.
OF_DEVICES = {"flashcards_device_memory_used_bytes", "flashcards_device_memory_total_bytes"}
#: Of Prometheus itself.
THEIRS = {"up"}


def rules(root: Path) -> list[dict]:
    groups = yaml.safe_load((root / "docker/prometheus/alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def dashboard(root: Path) -> dict:
    return json.loads((root / "docker/grafana/dashboards/flashcards.json").read_text())


def expressions(root: Path) -> Iterator[str]:
    yield from (rule["expr"] for rule in rules(root))
    yield from (target["expr"] for panel in dashboard(root)["panels"] for target in panel["targets"])
    for path in (root / "docker/kubernetes").rglob("scaledobject.yaml"):
        yield from (trigger["metadata"]["query"] for trigger in yaml.safe_load(path.read_text())["spec"]["triggers"])


@pytest.fixture(scope="module")
def told(watched, digits_npz) -> dict[str, set[str]]:
    """What a real API and a real worker expose, by name of the sample: the labels that it has."""
    found: dict[str, set[str]] = {}
    worker = f"http://127.0.0.1:{watched.environment['FLASHCARDS_METRICS_PORT']}"
    with httpx.Client(base_url=watched.url, timeout=60) as client:
        finished(client, kind="capture", model=push_model(client)["id"], count=4, r=1)
        dataset = push_dataset(client, digits_npz)["id"]
        job = submit(client, kind="train", architecture="blk_2_fil_8", dataset=dataset, epochs=200, patience=200)
        while "flashcards_running_loss" not in found:
            assert client.get(f"/v1/jobs/{job['id']}").json()["state"] in ("queued", "running")
            for url in (watched.url, worker):
                _gather(httpx.get(f"{url}/metrics", timeout=30).text, found)
            time.sleep(0.2)
        client.post(f"/v1/jobs/{job['id']}/cancel")
        wait_for(client, job["id"])
    return found


def _gather(text: str, found: dict[str, set[str]]) -> None:
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)


def test_every_figure_and_label_that_is_asked_for_is_told(root, told):
    figures = {name for expression in expressions(root) for name in asked(expression).figures}
    assert figures - told.keys() - THEIRS == OF_DEVICES
    labels = {pair for expression in expressions(root) for pair in asked(expression).labels}
    missing = {(name, label) for name, label in labels if name in told and label not in told[name]}
    assert missing == set()


def test_every_figure_of_ours_is_looked_at_by_somebody(root, told):
    """Or else it is one of those that are there for other questions."""
    looked_at = {name for expression in expressions(root) for name in asked(expression).figures}
    plain = {re.sub("|".join(f"{end}$" for end in HISTOGRAMS), "", name) for name in looked_at}
    ours = {re.sub("|".join(f"{end}$" for end in HISTOGRAMS), "", n) for n in told if n.startswith("flashcards_")}
    assert {name for name in ours - plain if not name.endswith("_created")} == {"flashcards_build_info"}


def test_no_label_grows_without_end(told):
    ours = {label for name, labels in told.items() if name.startswith("flashcards_") for label in labels}
    bounded = {"method", "route", "status", "state", "kind", "queue", "outcome", "device", "version", "le"}
    assert ours <= bounded


@pytest.mark.parametrize(
    "expression", ["flashcards_jobss", 'flashcards_jobs{kinds="train"}', "sum by (q) (flashcards_jobs)"]
)
def test_a_figure_or_label_that_nobody_tells_would_be_found(told, expression):
    found = asked(expression)
    gone = found.figures - told.keys()
    assert gone or [label for name, label in found.labels if label not in told[name]]


def test_what_is_no_promql_would_be_found():
    with pytest.raises(ValueError):
        asked("sum(rate(flashcards_jobs[5m])")


def test_every_alert_says_what_to_do(root):
    for rule in rules(root):
        assert rule["alert"].startswith("Flashcards")
        assert rule["labels"]["severity"] in ("page", "warn")
        assert {"summary", "action"} <= rule["annotations"].keys()
        told_of = set(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
        grouped = re.search(r"by \((.*?)\)", rule["expr"])
        if grouped:
            assert told_of <= {label.strip() for label in grouped[1].split(",")}, rule["alert"]


def test_prometheus_finds_every_process_of_the_compose_file(root):
    services = read_compose(root / "docker-compose.yml")["services"]
    config = yaml.safe_load((root / "docker/prometheus/prometheus.yml").read_text())
    for file in config["rule_files"]:
        assert (root / "docker/prometheus" / file).is_file()
    found = {}
    for scrape in config["scrape_configs"]:
        for lookup in scrape.get("dns_sd_configs", []):
            found |= dict.fromkeys(lookup["names"], str(lookup["port"]))
        for static in scrape.get("static_configs", []):
            found |= dict(target.split(":") for target in static["targets"])
    ours = {name for name, service in services.items() if "FLASHCARDS_METRICS_PORT" in service.get("environment", {})}
    assert ours | {"proxy"} == set(found)
    for name in ours:
        assert services[name]["environment"]["FLASHCARDS_METRICS_PORT"] == found[name]
        assert set(services[name]["networks"]) & set(services["prometheus"]["networks"])
    jobs = {scrape["job_name"] for scrape in config["scrape_configs"]}
    assert all(job.startswith("flashcards-") for job in jobs), "as an alert has it"


def test_grafana_finds_prometheus_and_the_dashboard(root):
    compose = read_compose(root / "docker-compose.yml")["services"]
    provisioning = root / "docker/grafana/provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources/prometheus.yml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    assert "prometheus" in compose
    (provider,) = yaml.safe_load((provisioning / "dashboards/flashcards.yml").read_text())["providers"]
    mounts = dict(mount.split(":")[1::-1] for mount in compose["grafana"]["volumes"])
    assert (root / mounts[provider["options"]["path"]] / "flashcards.json").is_file()
    for panel in dashboard(root)["panels"]:
        assert panel["datasource"]["uid"] == source["uid"]
        assert all(target["datasource"]["uid"] == source["uid"] for target in panel["targets"])


def test_panels_do_not_overlap_and_have_ids_of_their_own(root):
    places = [panel["gridPos"] for panel in dashboard(root)["panels"]]
    taken = [(x, y) for p in places for x in range(p["x"], p["x"] + p["w"]) for y in range(p["y"], p["y"] + p["h"])]
    assert len(taken) == len(set(taken))
    assert len({panel["id"] for panel in dashboard(root)["panels"]}) == len(places)


@pytest.fixture
def proxy(root) -> str:
    return (root / "docker/haproxy.cfg").read_text()


def section(config: str, title: str) -> list[list[str]]:
    """The lines of one section, in words."""
    lines = [line.split("#")[0].split() for line in config.splitlines()]
    start = lines.index(title.split())
    end = next((n for n in range(start + 1, len(lines)) if config.splitlines()[n][:1].isalpha()), len(lines))
    return [words for words in lines[start + 1 : end] if words]


def test_the_proxy_asks_every_api_for_its_health(proxy, root):
    environment = read_compose(root / "docker-compose.yml")["services"]["api"]["environment"]
    backend = section(proxy, "backend api")
    assert ["option", "httpchk"] in backend
    (check,) = [words for words in backend if words[:2] == ["http-check", "send"]]
    assert check[check.index("uri") + 1] == "/healthz"
    (server,) = [words for words in backend if words[0] == "server-template"]
    assert server[-1] == f"api:{environment['FLASHCARDS_PORT']}"
    (default,) = [words for words in backend if words[0] == "default-server"]
    assert "check" in default
    assert ["nameserver", "docker", "127.0.0.11:53"] in section(
        proxy, f"resolvers {default[default.index('resolvers') + 1]}"
    )


def test_the_proxy_listens_where_it_is_published_and_probed(proxy, root):
    service = read_compose(root / "docker-compose.yml")["services"]["proxy"]
    assert ["bind", ":8642"] in section(proxy, "frontend flashcards")
    assert service["ports"][0].endswith(":8642")
    assert ["bind", ":8404"] in section(proxy, "frontend health")
    assert service["healthcheck"]["test"][-1] == "http://127.0.0.1:8404/healthz"


def test_the_proxy_is_more_patient_than_the_service(proxy):
    """A wait lasts up to a minute, a stream speaks every 15 s, and the largest upload is checked before its answer."""
    from service.files.process import SECONDS, SLOWEST
    from service.server import REST_SECONDS

    waits = {name: seconds(value) for name, value in PROXY.findall("\n".join(proxy.split("resolvers")[0].splitlines()))}
    assert waits["server"] > SECONDS + Settings().max_dataset_bytes / SLOWEST
    assert waits["client"] > 60
    assert waits["http-keep-alive"] < REST_SECONDS
    assert "option http-buffer-request" not in proxy
    assert "option http-server-close" not in proxy


def test_the_proxy_leaves_before_it_is_killed(proxy, root):
    (stop,) = [words for words in section(proxy, "global") if words[0] == "hard-stop-after"]
    service = read_compose(root / "docker-compose.yml")["services"]["proxy"]
    assert seconds(stop[1]) < seconds(service["stop_grace_period"])


def test_figures_of_the_api_are_not_for_who_comes_by_the_proxy(proxy):
    rules = [" ".join(words) for words in section(proxy, "frontend flashcards")]
    assert "http-request deny deny_status 404 if { path /metrics }" in rules
