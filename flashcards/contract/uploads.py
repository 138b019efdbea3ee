"""Large files that come in parts, before they become models, datasets or what a bundle holds."""

from typing import Annotated

from pydantic import Field

from flashcards.contract.base import Moment, Record

UploadId = Annotated[str, Field(pattern=r"^upload_[0-9a-f]{32}$", examples=["upload_019a8f3e7c1d7b7e9d2c5a4b3e2f1a0b"])]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", examples=["9f86d081884c7d65" * 4])]
PartNumber = Annotated[int, Field(ge=1, le=100_000)]
LINKS_AT_ONCE = 100


class NewUpload(Record):
    digest: Digest = Field(description="SHA-256 of the whole file: checked at the end, and found again by")
    size: int = Field(ge=1, le=2**53, description="of the whole file, in bytes")


class Upload(Record):
    """A file on its way. Send the parts that are missing, then name it where the body would be the file."""

    id: UploadId
    digest: str
    size: int
    part_size: int = Field(description="of every part but the last, which has what is left")
    parts: int = Field(description="how many there are; the first is 1")
    missing: list[int] = Field(description="those that are not here yet")
    became: str | None = Field(default=None, description="where what was made of it is")
    created_at: Moment
    expires_at: Moment = Field(description="it is deleted then; every part puts that off")


class UploadedPart(Record):
    part: int
    size: int
    digest: str = Field(description="SHA-256 of what came")


class NewLinks(Record):
    parts: list[PartNumber] = Field(min_length=1, max_length=LINKS_AT_ONCE, description="which to give links for")


class PartLink(Record):
    part: int
    size: int = Field(description="how long the body must be")
    url: str = Field(description="PUT the part there, without any header of this service")


class Links(Record):
    links: list[PartLink]
    expires_at: Moment
