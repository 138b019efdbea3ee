"""`models:/name/3`, `models:/name@alias`, `models:/name/latest`: how MLflow names a version of a registered model."""

import re
from dataclasses import dataclass

from ledger.errors import TrackerRefused

PATTERN = re.compile(
    r"models:/(?P<name>[^/@\x00-\x1f]{1,250})(?:/(?P<version>[0-9]{1,18}|latest)|@(?P<alias>[A-Za-z0-9_.-]{1,200}))"
)


@dataclass(frozen=True)
class Reference:
    """Neither a version nor an alias: the newest."""

    name: str
    version: str | None
    alias: str | None

    @property
    def quoted(self) -> str:
        """For a filter of the registry's search."""
        return self.name.replace("\\", "\\\\").replace("'", "\\'")


def read_reference(text: str) -> Reference:
    found = PATTERN.fullmatch(text)
    if found is None:
        how = "name a registered model like models:/name/3, models:/name@alias or models:/name/latest"
        raise TrackerRefused(how, final=True)
    version = None if found["version"] == "latest" else found["version"]
    return Reference(found["name"], version, found["alias"])
