"""Records of permanent functions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from hms_bridge.model.catalog import DEFAULT_CATALOG, PrincipalType

JAVA = 1
"""The one type of functions that Hive has."""


class ResourceType(IntEnum):
    """What a function needs; the number is stored and stands on the wire."""

    JAR = 1
    FILE = 2
    ARCHIVE = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Resource:
    """A file that a function needs."""

    type: ResourceType
    uri: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Function:
    """A function of a database: a Java class, and what it needs. Times are seconds."""

    name: str
    database_name: str
    class_name: str
    catalog_name: str = DEFAULT_CATALOG
    owner_name: str | None = None
    owner_type: PrincipalType | None = None
    create_time: int = 0
    type: int = JAVA
    resources: tuple[Resource, ...] = ()
