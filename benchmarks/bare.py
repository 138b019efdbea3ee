"""The yardstick for `POST /v1/jobs`: a FastAPI route that commits one row to SQLite, and nothing else."""

import sys

import uvicorn
from fastapi import FastAPI
from sqlalchemy import JSON, insert
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from ledger.db import Database


class Table(DeclarativeBase):
    pass


class Row(Table):
    __tablename__ = "row"
    id: Mapped[int] = mapped_column(primary_key=True)
    body: Mapped[dict[str, object]] = mapped_column(JSON)


def main() -> None:
    port, path = int(sys.argv[1]), sys.argv[2]
    db = Database(f"sqlite:///{path}")
    Table.metadata.create_all(db.bind)
    app = FastAPI()

    @app.post("/rows", status_code=202)
    def create_row(body: dict[str, object]) -> dict[str, object]:
        with db.write() as session:
            session.execute(insert(Row).values(body=body))
        return body

    @app.get("/readyz")
    def is_ready() -> dict[str, bool]:
        return {"ready": True}

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
