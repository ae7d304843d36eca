"""Which statistics can be believed: the property COLUMN_STATS_ACCURATE of tables and partitions.

Hive keeps there, as JSON, whether the row count is right and for which columns. Rules: Hive's
StatsSetupConst, and of transactional tables ObjectStore (verifyStatsChangeCtx,
isCurrentStatsValidForTheQuery; docs/hive/metastore.md §9). Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

from hms_bridge.model.catalog import Partition, Table
from hms_bridge.model.ids import WriteId
from hms_bridge.model.valid_ids import ValidWriteIdList

ACCURATE = "COLUMN_STATS_ACCURATE"
_BASIC, _COLUMNS = "BASIC_STATS", "COLUMN_STATS"

Parameters = Mapping[str, str]


def is_basic_accurate(parameters: Parameters) -> bool:
    """Whether the number of rows is right."""
    return _parsed(parameters)[0]


def accurate_columns(parameters: Parameters) -> tuple[str, ...]:
    """The columns whose statistics are right, sorted."""
    return tuple(sorted(_parsed(parameters)[1]))


def with_accurate_basic(parameters: Parameters) -> dict[str, str]:
    """Parameters that say that the number of rows is right, and of columns what they said."""
    return _with(parameters, is_basic=True, columns=_parsed(parameters)[1])


def with_accurate_columns(parameters: Parameters, columns: Iterable[str]) -> dict[str, str]:
    """Parameters that say that these columns' statistics are right too."""
    is_basic, known = _parsed(parameters)
    return _with(parameters, is_basic=is_basic, columns=known | frozenset(columns))


def without_columns(parameters: Parameters, columns: Iterable[str] | None) -> dict[str, str]:
    """Parameters that say nothing of these columns' statistics any more, or of no column's."""
    if ACCURATE not in parameters:
        return dict(parameters)
    is_basic, known = _parsed(parameters)
    left = known - frozenset(columns) if columns is not None else frozenset[str]()
    return _with(parameters, is_basic=is_basic, columns=left)


def without_trust(parameters: Parameters) -> dict[str, str]:
    """Parameters that say that nothing is right."""
    return {name: value for name, value in parameters.items() if name != ACCURATE}


def change_needs_write_id(
    old: Parameters,
    new: Parameters,
    write_id: WriteId,
    valid_write_ids: str | None,
    *,
    is_of_columns: bool,
) -> bool:
    """Whether a change of a transactional object would declare statistics right without naming
    under which snapshot: nobody could know for whom they are right."""
    if valid_write_ids is not None and write_id > 0:
        return False
    if not is_basic_accurate(new):
        return False
    is_same = (old.get(ACCURATE) or "").lower() == (new.get(ACCURATE) or "").lower()
    return is_of_columns or not is_same


def is_believable(
    parameters: Parameters,
    stored_write_id: WriteId | int,
    valid_write_ids: str | None,
    *,
    is_writer: bool = False,
) -> bool:
    """Whether a snapshot may believe what is stored. ``is_writer``: it may replace it, which it may
    also where an aborted transaction left it."""
    if stored_write_id < 1:
        return True
    if not is_writer and not is_basic_accurate(parameters):
        return False
    if valid_write_ids is None:
        return False
    seen = ValidWriteIdList.parse(valid_write_ids)
    write_id = WriteId(stored_write_id)
    return seen.is_valid(write_id) or (is_writer and seen.is_aborted(write_id))


def seen_table(table: Table, valid_write_ids: str | None) -> Table:
    """The table as a snapshot sees it: without trust in statistics that others wrote meanwhile.

    Partitioned tables keep their statistics with the partitions.
    """
    if valid_write_ids is None or not table.is_transactional or table.is_partitioned:
        return table
    if is_believable(table.parameters, table.write_id, valid_write_ids):
        return replace(table, is_statistics_compliant=True)
    parameters = without_trust(table.parameters)
    return replace(table, is_statistics_compliant=False, parameters=parameters)


def seen_partition(table: Table, partition: Partition, valid_write_ids: str | None) -> Partition:
    """As :func:`seen_table`."""
    if valid_write_ids is None or not table.is_transactional:
        return partition
    if is_believable(partition.parameters, partition.write_id, valid_write_ids):
        return replace(partition, is_statistics_compliant=True)
    parameters = without_trust(partition.parameters)
    return replace(partition, is_statistics_compliant=False, parameters=parameters)


def _parsed(parameters: Parameters) -> tuple[bool, frozenset[str]]:
    text = parameters.get(ACCURATE)
    try:
        known = json.loads(text or "{}")
    except (ValueError, RecursionError):  # also a number that is too long: clients write this
        known = {}
    if not isinstance(known, dict):
        # Old Hives wrote a bare true.
        return (text or "").lower() == "true", frozenset()
    columns = known.get(_COLUMNS)
    named = columns if isinstance(columns, dict) else {}
    accurate = (name for name, value in named.items() if _is_true(value))
    return _is_true(known.get(_BASIC)), frozenset(filter(_may_be_stored, accurate))


def _may_be_stored(name: str) -> bool:
    """Half of a pair of surrogates, which JSON may have, is no text to a database."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def _with(parameters: Parameters, *, is_basic: bool, columns: frozenset[str]) -> dict[str, str]:
    state: dict[str, object] = {_BASIC: "true"} if is_basic else {}
    if columns:
        state[_COLUMNS] = dict.fromkeys(sorted(columns), "true")
    text = json.dumps(state, ensure_ascii=False, separators=(",", ":"))
    return {**parameters, ACCURATE: text}


def _is_true(value: object) -> bool:
    return str(value).lower() == "true"
