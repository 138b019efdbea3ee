"""Backups taken and restored, and the ways in which somebody may have tampered with one."""

import gzip
import json
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

from rows import every_row

from ledger import blobs
from ledger.artifacts import Product
from ledger.backup.restore import Restoring
from ledger.backup.take import Taking
from ledger.backup.vault import open_to_read, open_to_write
from ledger.db import Database
from ledger.store import Store, hash_file
from ledger.tables import DEFAULT_TENANT


def back_up(db: Database, store: Store, target: Path) -> dict:
    with open_to_write(target) as vault:
        return Taking(db, store, vault).take()


def restore(target: Path, place: SimpleNamespace, tmp_path: Path, **options) -> None:
    source, manifest = open_to_read(target)
    Restoring(source, manifest, tmp_path / "scratch").restore(place.db, place.store, **options)


def check(target: Path, tmp_path: Path) -> None:
    Restoring(*open_to_read(target), tmp_path / "scratch").check()


def rows_of(db: Database) -> dict[str, list[dict]]:
    with db.bind.connect() as connection:
        return every_row(connection)


def keep_file(db, store, tmp_path, job_id, content, write):
    """A file of a job, on record as `write` puts it there."""
    path = tmp_path / uuid4().hex
    path.write_bytes(content)
    product = Product("file", "application/octet-stream", hash_file(path), shows_data=True)
    blobs.put(db, store, DEFAULT_TENANT, product.kept, path)
    with blobs.referring(db, store, DEFAULT_TENANT, [product.kept]) as session:
        write(session, product)
    return product.kept.digest


def rewrite(folder, change):
    """The record of a backup, as somebody else might have left it."""
    manifest = json.loads((folder / "backup.json").read_text())
    path = folder / manifest["record"]["name"]
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    path.write_bytes(gzip.compress("\n".join(json.dumps(line) for line in change(manifest, lines)).encode()))
    kept = hash_file(path)
    manifest["record"] |= {"digest": kept.digest, "size": kept.size}
    (folder / "backup.json").write_text(json.dumps(manifest))
