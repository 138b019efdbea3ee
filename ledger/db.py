import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.orm import Session

#: A server behind a cut cable says nothing, and would be waited for a quarter of an hour: longer than any lease.
GIVE_UP = {
    "connect_timeout": 5,
    "tcp_user_timeout": 15_000,  # milliseconds until what was sent must be acknowledged
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 2,
}


class Database:
    """One way in for both databases: `read()` for looking, `write()` for a transaction that commits at its end."""

    def __init__(self, url: str) -> None:
        url = url.replace("postgresql://", "postgresql+psycopg://", 1)
        self.url = url
        self.is_sqlite = url.startswith("sqlite")
        options: dict[str, Any] = {} if self.is_sqlite else {"pool_pre_ping": True, "connect_args": GIVE_UP}
        self.bind = create_engine(url, pool_size=8, max_overflow=40, **options)
        # SQLite has one writer, and waits for it by sleeping. Inside one process a lock hands over at once.
        self._writer = threading.RLock() if self.is_sqlite else nullcontext()
        if self.is_sqlite:
            _speak_sqlite(self.bind)
        self._writing = self.bind.execution_options(writing=True)

    @contextmanager
    def read(self) -> Iterator[Session]:
        with Session(self.bind, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        with self._writer, Session(self._writing, expire_on_commit=False) as session, session.begin():
            yield session

    def close(self) -> None:
        self.bind.dispose()


def _speak_sqlite(bind: Engine) -> None:
    @event.listens_for(bind, "connect")
    def _connect(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # the driver must not begin on its own
        cursor = connection.cursor()
        for pragma in (
            "journal_mode=WAL",
            "synchronous=NORMAL",
            "foreign_keys=ON",
            "busy_timeout=60000",
            "journal_size_limit=67108864",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(bind, "begin")
    def _begin(connection: Connection) -> None:
        # A transaction that reads and then writes must hold the write lock from the start, or it can fail half-way.
        writing = connection.get_execution_options().get("writing")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
