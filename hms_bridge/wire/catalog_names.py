"""Catalogs in the names of old calls.

Methods without a request struct have no field for the catalog, so Java clients since Hive 3 put
it before the database: ``@hive#db``. ``@hive#`` means no database given (a pattern for all), and
``@hive#!`` an empty name (Hive: MetaStoreUtils.prependCatalogToDbName; docs/hive/metastore.md §5).
"""

from __future__ import annotations

from hms_bridge.model.catalog import DEFAULT_CATALOG

_MARK = "@"
_SEPARATOR = "#"
_EMPTY = "!"


def split_catalog(name: str | None) -> tuple[str, str | None]:
    """``@cat#db`` or ``db`` to (catalog, database), in lower case; None where none is given."""
    if name is None:
        return DEFAULT_CATALOG, None
    if not name.startswith(_MARK) or _SEPARATOR not in name:
        return DEFAULT_CATALOG, name.lower()
    catalog, _, database = name[1:].lower().partition(_SEPARATOR)
    if database == _EMPTY:
        return catalog, ""
    return catalog, database or None


def join_catalog(catalog: str, database: str | None) -> str:
    """The name to send for a database; plain for the default catalog, as old clients do."""
    if catalog == DEFAULT_CATALOG and database is not None:
        return database
    text = _EMPTY if database == "" else database or ""
    return f"{_MARK}{catalog}{_SEPARATOR}{text}"
