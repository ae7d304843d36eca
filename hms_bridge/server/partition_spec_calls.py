"""get_partitions_with_specs: partitions that a filter of names, values or texts selects."""

from __future__ import annotations

from collections.abc import Sequence

from hms_bridge.errors import MetaError
from hms_bridge.metastore import CatalogStore
from hms_bridge.model.catalog import Partition
from hms_bridge.model.target import TableName
from hms_bridge.server.answers import Calls, answers
from hms_bridge.server.names import table_of
from hms_bridge.server.partition_projection import partition_specs, projection_of
from hms_bridge.wire.convert_catalog import partition_to_struct
from hms_bridge.wire.structs import Struct, hive

_BY_NAMES, _BY_VALUES, _BY_EXPRESSION = 0, 1, 2
"""Hive's PartitionFilterMode."""


class PartitionSpecCalls(Calls[CatalogStore]):
    """What MSCK and EXCHANGE PARTITION of Hive 4 read."""

    @answers("get_partitions_with_specs", of="request")
    def get_partitions_with_specs(self, request: Struct) -> Struct:
        """Those that the filter selects, all without one; with the fields asked for."""
        name = table_of(request)
        projection = projection_of(request.projectionSpec)
        partitions = self._find(name, request.filterSpec)
        if not partitions:
            return hive.GetPartitionsResponse(partitionSpec=[])
        table = self._store.get_table(name.database, name.table, name.catalog)
        structs = (projection.applied(partition_to_struct(p)) for p in partitions)
        return hive.GetPartitionsResponse(partitionSpec=partition_specs(table, structs))

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
