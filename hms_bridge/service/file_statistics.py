"""The statistics that a metastore counts itself: files and bytes of tables and partitions.

Hive counts them when a table or partition is made over files that exist, and whenever one is
changed (MetaStoreServerUtils.updateTableStatsSlow, updatePartitionStatsFast). Then it notes whether
they can be trusted: only where the statement says that it computed statistics itself. Pure; the
listing is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hms_bridge.model.catalog import Partition, Table
from hms_bridge.model.properties import (
    DO_NOT_UPDATE,
    ERASURE_CODED_COUNT,
    FILE_BYTES,
    FILE_COUNT,
    ROW_BYTES,
    ROW_COUNT,
    STATISTICS_BY,
)
from hms_bridge.model.statistics_state import (
    Parameters,
    with_accurate_basic,
    with_accurate_columns,
    without_trust,
)

COUNTED = (FILE_COUNT, FILE_BYTES, ERASURE_CODED_COUNT)
_ROWS = (ROW_COUNT, ROW_BYTES)
_HOW_CREATED = ("created_with_ctas", "created_with_ctlt")
"""What a client says of its statement; not kept."""
_DO_NOT_COUNT = "DO_NOT_POPULATE_QUICK_STATS"


@dataclass(frozen=True, kw_only=True, slots=True)
class FileCount:
    """The files below a place that are not hidden."""

    file_count: int
    size_bytes: int


NO_FILES = FileCount(file_count=0, size_bytes=0)


def is_due_for_altered(table: Table, environment: Parameters) -> bool:
    """Whether the files of a table that is being changed are counted."""
    return _is_wanted(table) and _may_update(table, environment) and not table.is_partitioned


def of_created(
    table: Table, counted: FileCount | None, trusted_columns: Sequence[str]
) -> dict[str, str]:
    """A new table's parameters (MetaStoreServerUtils.updateTableStatsForCreateTable): what was
    counted, and that the statistics of columns are right if there are no rows to know of."""
    parameters = {k: v for k, v in table.parameters.items() if k not in _HOW_CREATED}
    if counted == NO_FILES and trusted_columns:
        parameters |= dict.fromkeys((*COUNTED, *_ROWS), "0")
        parameters = with_accurate_basic(with_accurate_columns(parameters, trusted_columns))
    if not _is_wanted(table) or _has_all(parameters) or table.is_view or table.is_partitioned:
        return parameters
    return of_table(parameters, counted, {})


def is_due_for_added(table: Table, partition: Partition) -> bool:
    """Whether the files of a new partition are counted, if its directory was there before."""
    return _is_wanted(table) and not table.is_view and not _has_all(partition.parameters)


def is_due_for_partition(
    table: Table, old: Partition, new: Partition, environment: Parameters
) -> bool:
    """Whether the files of a partition that is being changed are counted. Those of transactional
    tables never are."""
    return (
        not table.is_transactional
        and _is_stale(table, old, new, environment)
        and not _is_same(old.parameters, new.parameters)
    )


def without_count_request(parameters: Parameters) -> dict[str, str]:
    """Without the parameter that only asks not to count."""
    return {name: value for name, value in parameters.items() if name != DO_NOT_UPDATE}


def of_table(
    parameters: Parameters, counted: FileCount | None, environment: Parameters
) -> dict[str, str]:
    """A table's parameters with what was counted; if that is unknown, with what its client says,
    which is trusted as little."""
    kept = without_count_request(parameters)
    if counted is not None and environment.get(_DO_NOT_COUNT) != "true":
        kept = _with(kept, counted)
    return _with_trust(kept, environment)


def of_partition(
    table: Table,
    old: Partition,
    new: Partition,
    counted: FileCount | None,
    environment: Parameters,
) -> Parameters:
    """A changed partition's parameters, with what was counted if that was due."""
    if not _is_stale(table, old, new, environment):
        return new.parameters
    if _is_same(old.parameters, new.parameters):
        return _with_trust(dict(new.parameters), environment)
    if table.is_transactional:
        return new.parameters
    kept = dict(new.parameters)
    return _with_trust(kept if counted is None else _with(kept, counted), environment)


def of_added(parameters: Parameters, counted: FileCount | None) -> Parameters:
    """Parameters of a new partition whose directory was there before."""
    kept = dict(parameters)
    return _with_trust(kept if counted is None else _with(kept, counted), {})


def of_nothing(parameters: Parameters) -> dict[str, str]:
    """The parameters of what has just been emptied: no rows, and that can be trusted."""
    zeros = {name: "0" for name in (*COUNTED, *_ROWS) if name in parameters}
    return with_accurate_basic({**without_trust(parameters), **zeros})


def _is_wanted(table: Table) -> bool:
    """Whether the table's own parameters let its files be counted."""
    return (table.parameters.get(DO_NOT_UPDATE) or "").lower() != "true"


def _may_update(table: Table, environment: Parameters) -> bool:
    return environment.get(DO_NOT_UPDATE) != "true" and not table.is_view


def _is_stale(table: Table, old: Partition, new: Partition, environment: Parameters) -> bool:
    """Hive: MetaStoreServerUtils.requireCalStats."""
    if not _may_update(table, environment):
        return False
    is_computed = environment.get(STATISTICS_BY) in ("TASK", "USER")
    return (
        is_computed or not _has_all(new.parameters) or not _is_same(old.parameters, new.parameters)
    )


def _has_all(parameters: Parameters) -> bool:
    return all(name in parameters for name in COUNTED)


def _is_same(old: Parameters, new: Parameters) -> bool:
    return _has_all(old) and all(old[name] == new.get(name) for name in COUNTED)


def _with(parameters: dict[str, str], counted: FileCount) -> dict[str, str]:
    return parameters | {
        FILE_COUNT: str(counted.file_count),
        FILE_BYTES: str(counted.size_bytes),
        ERASURE_CODED_COUNT: "0",
    }


def _with_trust(parameters: dict[str, str], environment: Parameters) -> dict[str, str]:
    """Counted files say nothing about rows: trust goes unless the statement computed those."""
    if environment.get(STATISTICS_BY) != "TASK":
        return without_trust(parameters)
    return with_accurate_basic(parameters)
