"""Looks tables up, and lists and plans what a snapshot reads of them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from changemanager.filesystem.volume import Volume
from changemanager.location import Resolver
from hms_bridge.errors import NoSuchObjectError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Table
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.plans.filters import PartitionFilter
from hms_bridge.plans.formats import require_alike
from hms_bridge.plans.partition_values import Value, typed_value
from hms_bridge.plans.requests import PlanError, PlanRequest, Refusal, TableRequest
from hms_bridge.plans.scan_plan import PlannedRoot
from hms_bridge.plans.tables import OTHER, column_type, definition, kind_of
from hms_bridge.rows.reader import logical_length
from hms_bridge.rows.roots import ListedRoot, Root, list_root, plan_root, table_roots
from hms_bridge.snapshot.plan import ReadPlan

_ROOTS_MANY, _LOOKS_AT_ONCE = 32, 8


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """What a reader may see of one table."""

    txns: ValidTxnList
    write_ids: ValidWriteIdList


class TableReader:
    """Asks metastore and file systems; keeps nothing."""

    def __init__(self, metastore: Metastore, resolver: Resolver) -> None:
        self._metastore = metastore
        self._resolver = resolver

    def table(self, namespace: str, name: str) -> Table:
        """Raises PlanError with Spark's kind if it, or its database, is not there."""
        try:
            return self._metastore.get_table(namespace, name)
        except NoSuchObjectError as error:
            self.require_namespace(namespace)
            missing = f"there is no table {namespace}.{name}"
            raise PlanError(Refusal.NO_SUCH_TABLE, missing) from error

    def require_namespace(self, namespace: str) -> None:
        """Raises PlanError if there is no such database."""
        try:
            self._metastore.get_database(namespace)
        except NoSuchObjectError as error:
            missing = f"there is no database {namespace}"
            raise PlanError(Refusal.NO_SUCH_NAMESPACE, missing) from error

    def table_of(self, request: TableRequest) -> Table:
        """The table that a statement has loaded. Raises PlanError if it is another one by now."""
        table = self.table(request.namespace, request.name)
        if kind_of(table) == OTHER or definition(table) != request.definition:
            raise PlanError(
                Refusal.TABLE_CHANGED,
                f"{table.full_name} was altered or replaced since Spark looked at its columns; "
                "make the frame again, or run the statement again",
            )
        return table

    def listed(
        self, request: PlanRequest, table: Table, view: View
    ) -> list[tuple[ListedRoot, tuple[Value, ...] | None]]:
        """The roots that the filter leaves, each with its partition's values.

        For a view that was taken before. Raises PlanError, AcidFormatError, OSError.
        """
        for column in (*table.storage.columns, *table.partition_columns):
            column_type(table, column)
        kept = PartitionFilter(request.filter, table.partition_columns)
        roots: list[Root] = []
        values: list[tuple[Value, ...] | None] = []
        for root in table_roots(self._metastore, table):
            own: tuple[Value, ...] | None = None
            if table.is_partitioned:
                pairs = zip(table.partition_columns, root.values, strict=True)
                own = tuple(typed_value(column, text) for column, text in pairs)
            if kept.keeps(own or ()):
                require_alike(table, root.storage)
                roots.append(root)
                values.append(own)
        return list(zip(self._listed(table, roots, view), values, strict=True))

    def _listed(self, table: Table, roots: Sequence[Root], view: View) -> list[ListedRoot]:
        """Many at once: each asks a remote file system several times."""

        def look(root: Root) -> ListedRoot:
            return list_root(
                self._metastore,
                self._resolver,
                table,
                root,
                txns=view.txns,
                write_ids=view.write_ids,
            )

        if len(roots) < _ROOTS_MANY:
            return [look(root) for root in roots]
        with ThreadPoolExecutor(_LOOKS_AT_ONCE, thread_name_prefix="plans-list") as pool:
            return list(pool.map(look, roots))

    def planned(
        self,
        table: Table,
        listed: Sequence[tuple[ListedRoot, tuple[Value, ...] | None]],
        view: View,
    ) -> list[PlannedRoot]:
        """What the view reads of these roots. Raises NotEnoughHistoryError, AcidFormatError."""
        roots = []
        for root, values in listed:
            plan = plan_root(table, root, txns=view.txns, write_ids=view.write_ids)
            roots.append(
                PlannedRoot(
                    uri=root.place.uri,
                    path=root.listing.root,
                    plan=plan,
                    values=values,
                    lengths=_lengths(root.place.volume, plan),
                )
            )
        return roots


def _lengths(volume: Volume, plan: ReadPlan) -> dict[str, int]:
    """Of files that a stream still writes. One whose side file went meanwhile is whole."""
    lengths = {}
    for file in plan.files:
        try:
            length = logical_length(volume, file)
        except FileNotFoundError:
            continue
        if length is not None:
            lengths[file.path] = length
    return lengths
