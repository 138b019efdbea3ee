"""Parts that callers put straight into the bucket, under `{tenant}/uploads/{upload}/{part}`.

They are nobody's word for anything: a caller may put what it likes there, as often as its link is good, and it has
neither a row nor a digest. So no blob is ever one of them; they are read once, when the upload is put together.
"""

import re
from collections.abc import Iterable

from sqlalchemy import select

from ledger.db import Database
from ledger.store import Found, Store
from ledger.tables import Upload

KEY = re.compile(r"(?P<tenant>[^/]+)/uploads/(?P<upload>upload_[0-9a-f]{32})/(?P<part>[1-9][0-9]{0,8})")


def key(tenant: str, upload_id: str, number: int) -> str:
    return f"{_folder(tenant, upload_id)}/{number}"


def sizes(store: Store, tenant: str, upload_id: str) -> dict[int, int]:
    """What is there, part by part."""
    found = [(KEY.fullmatch(entry.key), entry.size) for entry in store.list(_folder(tenant, upload_id))]
    return {int(match["part"]): size for match, size in found if match}


def clear(store: Store, tenant: str, upload_id: str) -> None:
    for entry in list(store.list(_folder(tenant, upload_id))):
        store.delete_key(entry.key)


def clear_strays(db: Database, store: Store, entries: Iterable[Found]) -> int:
    """Those of uploads that are not on record any more: a link may be good for longer than its upload was."""
    there = {entry.key: match["upload"] for entry in entries if (match := KEY.fullmatch(entry.key))}
    with db.read() as session:
        known = set(session.scalars(select(Upload.id).where(Upload.id.in_(set(there.values())))))
    strays = [name for name, upload_id in there.items() if upload_id not in known]
    for name in strays:
        store.delete_key(name)
    return len(strays)


def _folder(tenant: str, upload_id: str) -> str:
    return f"{tenant}/uploads/{upload_id}"
