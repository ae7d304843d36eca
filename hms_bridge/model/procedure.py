"""Stored procedures and packages of HPL/SQL: texts that only HiveServer2 reads."""

from __future__ import annotations

from dataclasses import dataclass

from hms_bridge.model.catalog import DEFAULT_CATALOG


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredProcedure:
    """A procedure of a database; its name keeps its case."""

    name: str
    database_name: str
    catalog_name: str = DEFAULT_CATALOG
    owner_name: str = ""
    source: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Package:
    """A package of a database; its name keeps its case."""

    name: str
    database_name: str
    catalog_name: str = DEFAULT_CATALOG
    owner_name: str = ""
    header: str = ""
    body: str = ""
