"""Partitions with what a user may do with each. Nothing here enforces it: clients do.

Hive: ObjectStore.getPartitionWithAuth, listPartitionsPsWithAuth (docs/hive/metastore.md §32).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hms_bridge.model.catalog import Partition
from hms_bridge.model.privilege import ObjectKind, Securable
from hms_bridge.model.properties import is_true
from hms_bridge.model.target import TableName
from hms_bridge.server.answers import answers
from hms_bridge.server.names import table_of
from hms_bridge.server.partition_projection import narrowed
from hms_bridge.server.partition_reads import PartitionReads
from hms_bridge.server.privilege_calls import require_few_groups
from hms_bridge.wire.convert_catalog import partition_to_struct
from hms_bridge.wire.convert_privilege import set_to_struct
from hms_bridge.wire.partition_bytes import partitions_to_bytes
from hms_bridge.wire.required import given
from hms_bridge.wire.structs import Struct, hive

_OF_PARTITIONS = "PARTITION_LEVEL_PRIVILEGE"
"""A table's property: its partitions have privileges of their own."""


class PartitionRightsCalls(PartitionReads):
    """Partitions, read, with privileges where a table's partitions have any."""

    @answers("get_partition_with_auth")
    def get_partition(self, args: Struct) -> Struct:
        name = table_of(args)
        values = given(args.part_vals, "the partition's values")
        partition = self._store.get_partition(name.database, name.table, values, name.catalog)
        return self._with_rights(name, [partition], args.user_name, args.group_names)[0]

    @answers("get_partitions_with_auth")
    def get_partitions(self, args: Struct) -> Any:
        name = table_of(args)
        partitions = self._all(name, args.max_parts)
        return self._answer(name, partitions, args.user_name, args.group_names)

    @answers("get_partitions_ps_with_auth")
    def get_partitions_by_values(self, args: Struct) -> Any:
        """Those with the given values; "" for any."""
        name = table_of(args)
        partitions = self._by_values(name, args.part_vals, args.max_parts)
        return self._answer(name, partitions, args.user_name, args.group_names)

    @answers("get_partitions_ps_with_auth_req", of="req")
    def get_partitions_by_values_req(self, request: Struct) -> Struct:
        """Those with the given values, or names."""
        name = table_of(request)
        if request.partNames is not None:
            partitions = self._by_names(name, request.partNames)
        else:
            partitions = self._by_values(name, request.partVals, request.maxParts)
        answer = self._answer(
            name, narrowed(request, partitions), request.userName, request.groupNames
        )
        return hive.GetPartitionsPsWithAuthResponse(partitions=answer)

    def _answer(
        self,
        name: TableName,
        partitions: Iterable[Partition],
        user: str | None,
        groups: Sequence[str] | None,
    ) -> Any:
        """Structs, or their bytes where no rights go with them."""
        if user is None or not self._has_rights(name):
            return partitions_to_bytes(partitions)
        return self._with_rights(name, partitions, user, groups)

    def _with_rights(
        self,
        name: TableName,
        partitions: Iterable[Partition],
        user: str | None,
        groups: Sequence[str] | None,
    ) -> list[Struct]:
        require_few_groups(groups or ())
        structs: list[Any] = [partition_to_struct(partition) for partition in partitions]
        for struct in structs if self._has_rights(name) else ():
            wanted = Securable(
                kind=ObjectKind.PARTITION,
                catalog=name.catalog,
                database=name.database,
                name=name.table,
                values=tuple(struct.values),
            )
            rights = self._store.get_privilege_set(wanted, user, groups or ())
            struct.privileges = set_to_struct(rights)
        return structs

    def _has_rights(self, name: TableName) -> bool:
        return is_true(self._table(name).parameters, _OF_PARTITIONS)
