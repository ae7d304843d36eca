"""Finds what a person named, or says what is there instead."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from hms_bridge.errors import NoSuchObjectError
from hms_bridge.metastore import CatalogStore
from hms_bridge.model.catalog import Database, Table


def find_database(catalog: CatalogStore, name: str) -> Database:
    """Raises NoSuchObjectError with the nearest name."""
    try:
        return catalog.get_database(name)
    except NoSuchObjectError as error:
        hint = _hint(name, catalog.get_databases(), "", "SHOW DATABASES")
        raise NoSuchObjectError(f"there is no database {name}; {hint}") from error


def find_table(catalog: CatalogStore, database: str, name: str) -> Table:
    """Raises NoSuchObjectError with the nearest name."""
    try:
        return catalog.get_table(database, name)
    except NoSuchObjectError as error:
        find_database(catalog, database)
        hint = _hint(
            name, catalog.get_tables(database), f"{database}.", f"SHOW TABLES IN {database}"
        )
        raise NoSuchObjectError(f"there is no table {database}.{name}; {hint}") from error


def _hint(name: str, known: Sequence[str], prefix: str, statement: str) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {prefix}{near[0]}?" if near else f"see hms-bridge sql -e '{statement}'"
