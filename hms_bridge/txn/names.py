"""Names as the transaction tables keep them: lower case, but partition values as they are."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, String

from hms_bridge.backend.schema.txn_tables import COMPACTION_QUEUE, HIVE_LOCKS, TXN_COMPONENTS
from hms_bridge.errors import MetaError
from hms_bridge.model.lock import LockRequest
from hms_bridge.model.partition_name import with_lower_keys
from hms_bridge.model.target import Scope, Target

_C, _L, _Q = TXN_COMPONENTS.c, HIVE_LOCKS.c, COMPACTION_QUEUE.c
# Looked up once: to ask a table for a column takes longer than to look at a text.
_DATABASE, _TABLE, _PARTITION = _C.TC_DATABASE, _C.TC_TABLE, _C.TC_PARTITION
_USER, _HOST, _AGENT = _L.HL_USER, _L.HL_HOST, _L.HL_AGENT_INFO


def lower_partition(name: str | None) -> str | None:
    """With its keys in lower case; None for None and for ""."""
    return with_lower_keys(name) if name else None


def lower_target(target: Target) -> Target:
    """A table or partition as the transaction tables name it."""
    return Target(target.database.lower(), target.table.lower(), lower_partition(target.partition))


def require_fitting(given: Scope | Target) -> None:
    """Raises MetaError for a name that Hive's columns do not hold."""
    require_texts_fit(
        ("database name", given.database, _DATABASE),
        ("table name", given.table, _TABLE),
        ("partition name", given.partition, _PARTITION),
    )


def require_lock_fits(request: LockRequest) -> None:
    """Raises MetaError for names and texts of a lock that Hive's columns do not hold."""
    for component in request.components:
        require_fitting(component.scope)
    require_texts_fit(
        ("user", request.user, _USER),
        ("hostname", request.host, _HOST),
        ("agentInfo", request.agent, _AGENT),
    )


def require_entry_fits(target: Target, run_as: str | None, properties: str | None = None) -> None:
    """Raises MetaError for names and texts of a compaction that Hive's columns do not hold."""
    require_fitting(target)
    require_texts_fit(
        ("user to run as", run_as, _Q.CQ_RUN_AS),
        ("text of all properties", properties, _Q.CQ_TBLPROPERTIES),
    )


def require_texts_fit(*texts: tuple[str, str | None, Column[Any]]) -> None:
    """Raises MetaError for a text (what it is, the text, its column) that is longer than its
    column: SQLite would keep it, and others say so in words of their own."""
    for what, text, column in texts:
        if text is None:
            continue
        assert isinstance(column.type, String)
        length_max = column.type.length
        if length_max is not None and len(text) > length_max:
            raise MetaError(
                f"{what} '{text[:60]}…' has {len(text)} characters; at most {length_max} fit"
            )
