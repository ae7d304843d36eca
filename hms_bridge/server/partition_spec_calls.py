"""get_partitions_with_specs: partitions that a filter of names, values or texts selects."""

from __future__ import annotations

from collections.abc import Sequence

from hms_bridge.errors import MetaError
from hms_bridge.metastore import CatalogStore
from hms_bridge.model.catalog import Partition
from hms_bridge.model.target import TableName
from hms_bridge.server.answers import Calls, answers
from hms_bridge.server.names import table_of
from hms_bridge.server.partition_calls import partitions_to_spec
from hms_bridge.wire.structs import Struct, hive

_BY_NAMES, _BY_VALUES, _BY_EXPRESSION = 0, 1, 2
"""Hive's PartitionFilterMode."""


class PartitionSpecCalls(Calls[CatalogStore]):
    """What MSCK and EXCHANGE PARTITION of Hive 4 read.

    A projection is not applied: every partition comes whole, which has the fields asked for too.
    """

    @answers("get_partitions_with_specs", of="request")
    def get_partitions_with_specs(self, request: Struct) -> Struct:
        """Those that the filter selects; all without one."""
        name = table_of(request)
        _check_projection(request.projectionSpec)
        partitions = self._find(name, request.filterSpec)
        if not partitions:
            return hive.GetPartitionsResponse(partitionSpec=[])
        table = self._store.get_table(name.database, name.table, name.catalog)
        return hive.GetPartitionsResponse(partitionSpec=[partitions_to_spec(table, partitions)])

    def _find(self, name: TableName, chosen: Struct | None) -> Sequence[Partition]:
        mode = None if chosen is None else chosen.filterMode
        texts = () if chosen is None else tuple(chosen.filters or ())
        if mode is None or not texts:
            return self._store.get_partitions(name.database, name.table, -1, name.catalog)
        if mode == _BY_NAMES:
            return self._store.get_partitions_by_names(
                name.database, name.table, texts, name.catalog
            )
        if mode == _BY_VALUES:
            return self._store.get_partitions_by_values(
                name.database, name.table, texts, -1, name.catalog
            )
        if mode == _BY_EXPRESSION:
            return self._store.get_partitions_by_filter(
                name.database, name.table, " and ".join(f"({t})" for t in texts), -1, name.catalog
            )
        raise MetaError(f"filter mode {mode}; names (0), values (1) and texts (2) are known")


def _check_projection(projection: Struct | None) -> None:
    """Raises MetaError for a field that a partition does not have."""
    wanted = [] if projection is None else projection.fieldList or []
    known = {entry[2] for entry in hive.Partition.thrift_spec if entry}
    unknown = [field for field in wanted if field.partition(".")[0] not in known]
    if unknown:
        raise MetaError(f"Invalid partition fields in the projection spec[{', '.join(unknown)}]")
