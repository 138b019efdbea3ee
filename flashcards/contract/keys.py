"""API keys: what each one may do, how much, and for how long."""

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from flashcards.contract.base import Moment, Name, Record

KeyId = Annotated[str, Field(pattern=r"^key_[0-9a-f]{32}$", examples=["key_019a8f3e7c1d7b7e9d2c5a4b3e2f1a0b"])]
TenantName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", examples=["line-7"])]
Scope = Literal["read", "write", "admin"]
Count = Annotated[int, Field(ge=1, lt=2**63)]


class NewKey(Record):
    name: Name
    tenant: TenantName | None = Field(default=None, description="whose key it is; yours, unless you are the operator")
    scopes: list[Scope] = Field(
        default=["read", "write"], min_length=1, max_length=3, description="admin may make keys, and nothing else"
    )
    expires_at: AwareDatetime | None = None
    requests_per_minute: Count | None = Field(default=None, description="the service's own limit where it says none")
    max_unfinished_jobs: Count | None = Field(
        default=None, description="jobs of the tenant, queued and running, up to which this key may add one"
    )
    max_stored_bytes: Count | None = Field(
        default=None, description="bytes of the tenant in the store up to which this key may add some"
    )
    retain_data: bool = Field(
        default=True, description="false: a dataset that came with this key is deleted when its job has ended"
    )


class Key(Record):
    id: KeyId
    name: str
    tenant: str
    hint: str = Field(description="how the key begins")
    scopes: list[Scope]
    requests_per_minute: int | None = None
    max_unfinished_jobs: int | None = None
    max_stored_bytes: int | None = None
    retain_data: bool
    created_at: Moment
    expires_at: Moment | None = None
    revoked_at: Moment | None = None
    last_used_at: Moment | None = Field(default=None, description="to the minute")


class MadeKey(Key):
    key: str | None = Field(description="shown this once and kept nowhere; null when the answer is a replay")
