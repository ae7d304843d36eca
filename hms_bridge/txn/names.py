"""Names as the transaction tables keep them: lower case, but partition values as they are."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, String

from hms_bridge.backend.schema.txn_tables import TXN_COMPONENTS
from hms_bridge.errors import MetaError
from hms_bridge.model.target import Scope, Target

_C = TXN_COMPONENTS.c


def lower_partition(name: str | None) -> str | None:
    """``DS=Ab/HR=1`` as ``ds=Ab/hr=1`` (docs/hive/metastore.md §23); None stays None, and ""
    becomes None."""
    if not name:
        return None
    parts = (part.partition("=") for part in name.split("/"))
    return "/".join(f"{key.lower()}{equals}{value}" for key, equals, value in parts)


def lower_target(target: Target) -> Target:
    """A table or partition as the transaction tables name it."""
    return Target(target.database.lower(), target.table.lower(), lower_partition(target.partition))


def require_fitting(given: Scope | Target) -> None:
    """Raises MetaError for a name that Hive's columns do not hold."""
    require_texts_fit(
        ("database name", given.database, _C.TC_DATABASE),
        ("table name", given.table, _C.TC_TABLE),
        ("partition name", given.partition, _C.TC_PARTITION),
    )


def require_texts_fit(*texts: tuple[str, str | None, Column[Any]]) -> None:
    """Raises MetaError for a text (what it is, the text, its column) that is longer than its
    column: SQLite would keep it, and others say so in words of their own."""
    for what, text, column in texts:
        assert isinstance(column.type, String)
        length_max = column.type.length
        if text is not None and length_max is not None and len(text) > length_max:
            raise MetaError(
                f"{what} '{text[:60]}…' has {len(text)} characters; at most {length_max} fit"
            )
