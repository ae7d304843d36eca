"""What the server asks of a metastore beyond the port, and what it asks altogether.

Only a metastore over its own database has these: no other room asks for them, so our client does
not either. Such a verb's docstring stands here, as that of others does in the port.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from hms_bridge.metadata_store import NotificationStore
from hms_bridge.metastore import (
    CatalogStore,
    CompactionStore,
    LockStore,
    Metastore,
    TransactionStore,
)
from hms_bridge.model.catalog import (
    DEFAULT_CATALOG,
    DEFAULT_PARTITION_VALUE,
    Catalog,
    Partition,
    Table,
)
from hms_bridge.model.compaction import CompactionRequest, DeltaCount
from hms_bridge.model.constraint import ColumnConstraint
from hms_bridge.model.event import EventRow, NotificationRequest
from hms_bridge.model.expression import Condition, ConditionToDrop
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.lock import LockFilter, LockRow
from hms_bridge.model.privilege import Grant
from hms_bridge.model.target import TableName, Target
from hms_bridge.model.txn import OpenTxnRows, TxnType
from hms_bridge.server.served_objects import ServedConnectors, ServedProcedures
from hms_bridge.server.served_plans import ServedResourcePlans
from hms_bridge.server.served_reports import ServedReports, ServedSchedules
from hms_bridge.server.served_rights import ServedPrivileges, ServedRoles, ServedTokens


class ServedCatalogs(Protocol):
    """Catalogs, each a set of databases."""

    def get_catalogs(self) -> tuple[str, ...]:
        """Their names, sorted."""

    def get_catalog(self, name: str) -> Catalog:
        """One. Raises NoSuchObjectError."""

    def create_catalog(self, catalog: Catalog) -> None:
        """With its database ``default``, which lies in its directory. Raises AlreadyExistsError,
        InvalidObjectError."""

    def alter_catalog(self, name: str, catalog: Catalog) -> None:
        """Replace what is given of place and description; databases that are there stay where they
        are. Raises NoSuchObjectError, InvalidOperationError for another name."""

    def drop_catalog(self, name: str) -> None:
        """With its ``default``, if nothing is in that. Raises NoSuchObjectError,
        InvalidOperationError if there is anything else, MetaError for ``hive``."""


class ServedTables(Protocol):
    """Tables that are made with what others add afterwards."""

    def create_constrained_table(
        self,
        table: Table,
        constraints: Sequence[ColumnConstraint],
        *,
        trusted_columns: Sequence[str] = (),
        grants: Sequence[Grant] = (),
    ) -> None:
        """Create a table with its constraints and privileges, or nothing; events of constraints
        come after its own, kind by kind. Raises what ``create_table``, ``add_constraints`` and
        ``grant_privileges`` raise."""


class ServedPartitions(CatalogStore, Protocol):
    """The catalog, with partitions by condition, their values, renamed and exchanged."""

    def get_partitions_by_condition(
        self,
        name: TableName,
        condition: Condition,
        *,
        max_parts: int = -1,
        default_value: str = DEFAULT_PARTITION_VALUE,
    ) -> tuple[Sequence[Partition], bool]:
        """Those that it selects, sorted by name, and whether some of them only perhaps."""

    def get_partition_names_by_condition(
        self,
        name: TableName,
        condition: Condition,
        *,
        max_parts: int = -1,
        order: str = "",
        default_value: str = DEFAULT_PARTITION_VALUE,
    ) -> tuple[str, ...]:
        """The names only. Raises MetaError where the condition cannot be decided."""

    def count_partitions_by_filter(self, name: TableName, filter_text: str) -> int:
        """How many a filter selects; none is loaded."""

    def get_partition_values(
        self,
        name: TableName,
        keys: Sequence[str],
        *,
        filter_text: str = "",
        is_distinct: bool = True,
        is_ascending: bool = True,
        max_parts: int = -1,
    ) -> tuple[tuple[str, ...], ...]:
        """Rows of values, in the order of the partitions' names (docs/hive/metastore.md §24).

        Without a filter: of ``keys``, escaped as in names, always ascending; ``max_parts`` 0 means
        all. With one: of all partition columns, unescaped, whatever keys are given; 0 means none.
        Raises MetaError without keys; without a filter also for one that is no partition column,
        or for more than there are.
        """

    def drop_partitions_by_conditions(
        self,
        name: TableName,
        conditions: Sequence[ConditionToDrop],
        *,
        is_data_deleted: bool = True,
        is_purge: bool = False,
        is_if_exists: bool = False,
    ) -> tuple[Partition, ...]:
        """Remove what each selects, all or none; returns those partitions. Raises NoSuchObjectError
        if one selects nothing, MetaError if one cannot be decided."""

    def rename_partition(
        self,
        database: str,
        table: str,
        values: Sequence[str],
        partition: Partition,
        *,
        catalog: str = DEFAULT_CATALOG,
    ) -> None:
        """Replace the partition with these values by one with others. Raises
        InvalidOperationError if it is not there, or the new values are taken."""

    def exchange_partitions(
        self, values: Mapping[str, str], source: TableName, target: TableName
    ) -> tuple[Partition, ...]:
        """Move the partitions with these values from one table to another."""


class ServedTransactions(TransactionStore, Protocol):
    """Transactions, with a list that may be long."""

    def get_open_txn_rows(
        self, excluded_types: frozenset[TxnType] = frozenset({TxnType.READ_ONLY})
    ) -> OpenTxnRows:
        """What ``get_open_txns`` makes records of."""


class ServedLocks(LockStore, Protocol):
    """Locks, with a list that may be long."""

    def show_lock_rows(self, lock_filter: LockFilter | None = None) -> Sequence[LockRow]:
        """What ``show_locks`` makes records of."""


class ServedNotifications(NotificationStore, Protocol):
    """Events, with a list that may be long."""

    def get_next_notification_rows(self, request: NotificationRequest) -> Sequence[EventRow]:
        """What ``get_next_notification`` makes records of."""


class ServedCompactions(CompactionStore, Protocol):
    """The queue, with what Hive's workers count of the tables that they compacted."""

    def submit_for_cleanup(
        self, request: CompactionRequest, write_id: WriteId, txn_id: TxnId
    ) -> bool:
        """Queue the directory of a table that was never made, which the request's property
        ``location`` names: what a transaction that is aborted, or will be, wrote there by that
        write id. True if it is queued, before or now. Raises NoSuchTxnError, MetaError."""

    def put_delta_count(self, target: Target, count: DeltaCount, value: int) -> None:
        """Replace what is known of a table or partition. Raises NoSuchObjectError: what is kept
        goes when its table does, and would stay for ever without one."""

    def remove_delta_count(self, target: Target, count: DeltaCount) -> None:
        """Forget it, of a table with those of all its partitions; nothing may be known."""


class ServedMarks(Protocol):
    """Marks on partitions; these need not be there."""

    def mark_partition(self, name: TableName, values: Mapping[str, str], kind: int) -> None:
        """Say that something is done with it. Raises NoSuchObjectError, MetaError for values that
        are not those of the table's partition columns."""

    def is_partition_marked(self, name: TableName, values: Mapping[str, str], kind: int) -> bool:
        """Whether somebody said so. Raises as ``mark_partition`` does."""


class ServedRecycling(Protocol):
    """The archive, for clients that remove files by themselves."""

    def recycle_directory(self, location: str) -> None:
        """Archive what is there, by copying: its client removes it next. Without an archive nothing
        happens, but for InvalidOperationError if a dump may need it. Raises MetaError if it lies in
        no table's directory or cannot be archived: then it must stay."""


class ServedMetastore(
    Metastore,
    ServedCatalogs,
    ServedPartitions,
    ServedTables,
    ServedTransactions,
    ServedLocks,
    ServedNotifications,
    ServedCompactions,
    ServedRoles,
    ServedPrivileges,
    ServedTokens,
    ServedSchedules,
    ServedReports,
    ServedRecycling,
    ServedConnectors,
    ServedProcedures,
    ServedResourcePlans,
    ServedMarks,
    Protocol,
):
    """Everything that the server answers from."""
