from typing import Annotated

from fastapi import APIRouter, Query

from flashcards.contract.resources import Amount, Storage, StorageKinds, StoredFile
from ledger import storage
from ledger.clock import as_datetime, maybe_datetime
from ledger.settings import Settings
from ledger.storage import Keepers, Sum
from ledger.tables import Blob
from service.deps import HouseDep, TenantDep
from service.paging import Cursor, decode_mark, encode_mark

router = APIRouter(prefix="/v1/storage", tags=["storage"])


@router.get("")
def get_storage(
    house: HouseDep,
    tenant: TenantDep,
    limit: Annotated[int, Query(ge=1, le=200, description="files a page")] = 50,
    cursor: Cursor = None,
) -> Storage:
    """What is kept, how large, for whom and until when."""
    before = decode_mark(cursor)
    with house.db.read() as session:
        total, kinds = storage.sums(session, tenant)
        rows, last = storage.page(session, tenant, limit, before)
        kept_by = storage.keepers(session, house.settings, tenant, [row.digest for row in rows])
    return Storage(
        files=total.count,
        bytes=total.bytes,
        kinds=StorageKinds(**{kind: _amount(sum) for kind, sum in kinds.items()}),
        items=[_file(house.settings, row, kept_by.get(row.digest, Keepers())) for row in rows],
        next_cursor=encode_mark(last),
    )


def _amount(sum: Sum) -> Amount:
    return Amount(count=sum.count, bytes=sum.bytes)


def _file(settings: Settings, row: Blob, kept_by: Keepers) -> StoredFile:
    return StoredFile(
        digest=row.digest,
        size=row.size,
        created_at=as_datetime(row.created_at),
        kept_for=kept_by.names[: storage.NAMES_AT_MOST],
        expires_at=maybe_datetime(storage.expires_at(settings, row, kept_by)),
    )
