import os
import sys
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

GIB = 1024**3
SECRETS = (
    "database_url",
    "broker_url",
    "store_url",
    "key_secret",
    "webhook_secret",
    "mlflow_url",
    "mlflow_token",
)


def load_settings() -> "Settings":
    """For the start of a process: a setting that makes no sense ends it in words."""
    try:
        return Settings(**_from_files())
    except ValidationError as error:
        wrong = [f"FLASHCARDS_{str(entry['loc'][0]).upper()}: {entry['msg']}" for entry in error.errors()]
        sys.exit("flashcards: " + "; ".join(wrong))


def _from_files() -> dict[str, Any]:
    """`FLASHCARDS_DATABASE_URL_FILE=/run/secrets/...`: a secret in a file is in no process list and no inspection."""
    found = {}
    for name in SECRETS:
        variable = f"FLASHCARDS_{name.upper()}_FILE"
        if path := os.environ.get(variable):
            try:
                found[name] = Path(path).read_text().strip()
            except (OSError, UnicodeDecodeError) as error:
                sys.exit(f"flashcards: {variable}={path} cannot be read: {error}")
    return found


class Settings(BaseSettings):
    """Every knob of every process, from the environment (`FLASHCARDS_...`). The defaults boot on one machine."""

    model_config = SettingsConfigDict(env_prefix="FLASHCARDS_", frozen=True, extra="ignore")

    # Where things are
    home: Path = Field(
        default=Path.home() / ".local/share/flashcards", description="data folder of the embedded default"
    )
    host: str = "127.0.0.1"
    port: int = Field(default=8642, ge=0, le=65535)
    allowed_hosts: list[str] = Field(default=[], description="further names this service answers to")
    database_url: str = Field(default="", description="empty: SQLite in the home folder")
    broker_url: str = Field(default="", description="empty: files in the home folder")
    store_url: str = Field(
        default="", pattern=r"^$|^(file|s3|gs|az)://.+", description="empty: a folder in the home folder"
    )

    # Who may come in
    admin_key_file: Path | None = Field(default=None, description="the first key; with it every request needs a key")
    key_secret: str = Field(default="", description="what stored keys are hashed with; empty: made in the home folder")

    requests_per_minute: int = Field(default=6000, gt=0, description="of a key that has no limit of its own")

    # Who is told
    public_url: str = Field(
        default="",
        pattern=r"^$|^https?://[^\s/?#]+(/[^\s?#]*)?$",
        description="where users find this service, for links in webhooks; empty: links are paths",
    )
    webhook_private_networks: list[IPv4Network | IPv6Network] = Field(
        default=[], description="webhooks may also go to addresses in these, and there by plain http"
    )
    webhook_secret: str = Field(
        default="", description="makes secrets of webhooks together with what the database keeps of them"
    )
    webhook_seconds: float = Field(default=10, gt=0, le=60, description="a receiver answers within, over all")
    webhook_pauses: list[float] = Field(
        default=[5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400],
        description="seconds before the second, third, ... try; after the last a delivery is given up",
    )
    webhook_poll_seconds: float = Field(default=1, gt=0, description="between two looks for deliveries that are due")
    delivery_days: float = Field(default=30, gt=0, description="those that came to their end are kept for")
    # Who keeps track
    mlflow_url: str = Field(
        default="",
        pattern=r"^$|^https?://[^\s/?#]+(/[^\s?#]*)?$",
        description="a tracking server that jobs are mirrored to, and models taken from; empty: none",
    )
    mlflow_token: str = Field(default="", description="a bearer token for it; name and password go into its address")
    mlflow_experiment: str = Field(default="flashcards", min_length=1, description="where a job names no experiment")
    mlflow_tenants: list[str] = Field(
        default=["default"], description='who may use it: its users see all that is there; ["*"]: every tenant'
    )
    mlflow_poll_seconds: float = Field(default=5, gt=0, description="between two looks for what it was not told yet")
    mlflow_timeout_seconds: float = Field(default=10, gt=0, le=300, description="it answers within")
    mlflow_days: float = Field(default=7, gt=0, description="what it refuses is offered again for")

    # What is allowed in
    max_upload_bytes: int = Field(default=8 * GIB, gt=0)
    upload_part_bytes: int = Field(default=16 * 1024**2, gt=0, description="a part of a file that comes in parts")
    max_dataset_bytes: int = Field(default=16 * GIB, gt=0, description="inflated")
    max_body_bytes: int = Field(default=1024**2, gt=0, description="every route but uploads")
    max_product_bytes: int = Field(default=64 * GIB, gt=0, description="largest file a job may be asked to make")

    announce_prefix: str = Field(
        default="results.", pattern=r"^[A-Za-z0-9_.-]*$", description="how the names of callers' queues begin"
    )

    # How long things take
    lease_seconds: float = Field(default=60, gt=0)
    cancel_grace_seconds: float = Field(default=3, ge=0, description="between TERM and KILL of a runner")
    resume_seconds: float = Field(default=10, ge=0, description="at least this long between resume points")
    reap_seconds: float = Field(default=5, gt=0, description="between two looks for lost leases and unheard rings")
    ring_again_seconds: float = Field(default=30, gt=0, description="a queued job nobody claimed is rung again after")
    event_poll_seconds: float = Field(default=0.25, gt=0)
    broker_poll_seconds: float = Field(default=0.05, gt=0, description="embedded broker only")
    idempotency_hours: float = Field(default=24, gt=0)
    submission_days: float = Field(default=30, gt=0, description="what came of a message is kept for")
    collect_grace_seconds: float = Field(default=3600, ge=0, description="a file that nothing refers to is kept for")
    collect_seconds: float = Field(default=60, gt=0, description="between two collections")
    resume_point_days: float = Field(default=7, ge=0, description="those of ended jobs are kept for a retry for")
    unread_data_hours: float = Field(
        default=24, gt=0, description="data not to be retained, and never used, goes after"
    )
    upload_hours: float = Field(default=24, gt=0, description="an upload that no further part comes for goes after")
    store_patience_seconds: float = Field(
        default=300, ge=0, description="a job waits this long for a store that does not answer"
    )
    presign_seconds: float = Field(default=300, ge=1, le=604800, description="a link to an object store is good for")

    # What a worker has
    queue: str = Field(default="cpu", pattern="^(cpu|gpu)$")
    courier: bool = Field(default=True, description="this worker brings deliveries; `flashcards courier` does too")
    threads: int = Field(default=0, ge=0, description="torch threads of a runner, at most; 0: one a core")

    # What it says
    log_format: str = Field(default="console", pattern="^(console|json)$")
    log_level: str = Field(default="INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$")
    metrics_host: str = "127.0.0.1"
    metrics_port: int = Field(
        default=0, ge=0, le=65535, description="Prometheus text for whoever reaches it, without a key; 0: no such port"
    )

    @model_validator(mode="before")
    @classmethod
    def _absolute_home(cls, values: dict[str, object]) -> dict[str, object]:
        if home := values.get("home"):
            values["home"] = Path(str(home)).expanduser().absolute()
        return values

    @cached_property
    def database(self) -> str:
        return self.database_url or f"sqlite:///{self.home / 'flashcards.db'}"

    @cached_property
    def broker(self) -> str:
        return self.broker_url or "embedded://localhost"

    @cached_property
    def store(self) -> str:
        return self.store_url or f"file://{quote(str(self.home / 'store'))}"

    @property
    def broker_folder(self) -> Path:
        return self.home / "broker"

    @property
    def spool_folder(self) -> Path:
        """Uploads land here, in the file system of the store, so that adopting one is a rename."""
        return self.home / "spool"

    @property
    def work_folder(self) -> Path:
        return self.home / "work"

    @property
    def embedded(self) -> bool:
        return not (self.database_url or self.broker_url)
