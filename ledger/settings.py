import os
import sys
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

GIB = 1024**3
SECRETS = ("database_url", "broker_url", "store_url", "key_secret")


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

    # What is allowed in
    max_upload_bytes: int = Field(default=8 * GIB, gt=0)
    max_dataset_bytes: int = Field(default=16 * GIB, gt=0, description="inflated")
    max_body_bytes: int = Field(default=1024**2, gt=0, description="every route but uploads")
    max_product_bytes: int = Field(default=64 * GIB, gt=0, description="largest file a job may be asked to make")

    # How long things take
    lease_seconds: float = Field(default=60, gt=0)
    cancel_grace_seconds: float = Field(default=3, ge=0, description="between TERM and KILL of a runner")
    resume_seconds: float = Field(default=10, ge=0, description="at least this long between resume points")
    reap_seconds: float = Field(default=5, gt=0, description="between two looks for lost leases and unheard rings")
    ring_again_seconds: float = Field(default=30, gt=0, description="a queued job nobody claimed is rung again after")
    event_poll_seconds: float = Field(default=0.25, gt=0)
    broker_poll_seconds: float = Field(default=0.05, gt=0, description="embedded broker only")
    idempotency_hours: float = Field(default=24, gt=0)
    collect_grace_seconds: float = Field(default=3600, ge=0, description="a file that nothing refers to is kept for")
    collect_seconds: float = Field(default=60, gt=0, description="between two collections")
    resume_point_days: float = Field(default=7, ge=0, description="those of ended jobs are kept for a retry for")
    unread_data_hours: float = Field(
        default=24, gt=0, description="data not to be retained, and never used, goes after"
    )
    store_patience_seconds: float = Field(
        default=300, ge=0, description="a job waits this long for a store that does not answer"
    )
    presign_seconds: float = Field(
        default=300, ge=1, le=604800, description="a download link to an object store is good for"
    )

    # What a worker has
    queue: str = Field(default="cpu", pattern="^(cpu|gpu)$")
    threads: int = Field(default=0, ge=0, description="torch threads of a runner; 0: one a core")

    # What it says
    log_format: str = Field(default="console", pattern="^(console|json)$")
    log_level: str = Field(default="INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$")

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
