"""The port, continued: what is kept of tables beside the catalog itself.

Five more protocols of :class:`hms_bridge.metastore.Metastore`: events, column statistics,
functions, constraints, materialized views. What is said there of names and errors holds here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hms_bridge.model.catalog import DEFAULT_CATALOG, CreationMetadata, Table
from hms_bridge.model.constraint import ColumnConstraint
from hms_bridge.model.event import (
    InsertNotification,
    NotificationEvent,
    NotificationRequest,
    WriteNotification,
)
from hms_bridge.model.function import Function
from hms_bridge.model.ids import EventId, TxnId
from hms_bridge.model.materialization import MaterializationChanges
from hms_bridge.model.statistics import (
    AggregatedStatistics,
    ChangedRows,
    ObjectStatistics,
    StatisticsQuery,
    StatisticsUpdate,
)
from hms_bridge.model.txn import WriteEvent
from hms_bridge.model.valid_ids import ValidTxnList


class NotificationStore(Protocol):
    """Notification events."""

    def get_next_notification(self, request: NotificationRequest) -> tuple[NotificationEvent, ...]:
        """Ascending, gap-free."""

    def get_current_event_id(self) -> EventId:
        """The newest id; 0 before the first event."""

    def get_notification_events_count(
        self,
        from_event_id: EventId,
        database: str,
        catalog: str = DEFAULT_CATALOG,
        *,
        tables: Sequence[str] = (),
    ) -> int:
        """How many events of one database, or of some of its tables, came after an id."""

    def add_write_notifications(self, notifications: Sequence[WriteNotification]) -> None:
        """Remember which files a transaction wrote; a repeated call adds nothing twice."""

    def fire_inserts(self, notifications: Sequence[InsertNotification]) -> tuple[EventId, ...]:
        """Log that files came into tables that are not transactional, one event for each. Raises
        NoSuchObjectError, InvalidObjectError."""

    def get_write_events(
        self, txn_id: TxnId, database: str | None = None, table: str | None = None
    ) -> tuple[WriteEvent, ...]:
        """What add_write_notifications recorded for a transaction."""


class StatisticsStore(Protocol):
    """Column statistics of tables and partitions, kept for each engine apart."""

    def set_column_statistics(self, update: StatisticsUpdate) -> bool:
        """Replace statistics, or merge them with what can be believed of the old ones; false if
        nothing could be merged, and the old ones are not to be believed any more. Raises
        NoSuchObjectError; MetaError for unknown columns, and for a transactional table whose row
        count is right without a write id."""

    def get_column_statistics(self, query: StatisticsQuery) -> tuple[ObjectStatistics, ...]:
        """Of the table, or of those partitions, that have any. Raises NoSuchObjectError for an
        unknown table."""

    def get_aggregated_statistics(self, query: StatisticsQuery) -> AggregatedStatistics:
        """Of partitions together; nothing if a snapshot is given that may not believe one. Raises
        NoSuchObjectError for an unknown table."""

    def delete_column_statistics(
        self,
        database: str,
        table: str,
        *,
        columns: Sequence[str] = (),
        partition_names: Sequence[str] | None = None,
        engine: str | None = None,
        catalog: str = DEFAULT_CATALOG,
    ) -> bool:
        """Remove those of some columns, or of all for none given; of the table, or of partitions
        (all for an empty list). Raises NoSuchObjectError, MetaError for a transactional table."""

    def get_columns_with_statistics(
        self,
        database: str,
        table: str,
        partition_name: str | None = None,
        catalog: str = DEFAULT_CATALOG,
    ) -> tuple[str, ...]:
        """Names, sorted. Raises NoSuchObjectError for an unknown table."""

    def count_changed_rows(self, changed: ChangedRows) -> None:
        """Add to what the materialized views that read a table know of its changes."""


class FunctionStore(Protocol):
    """Permanent functions. Creating and dropping one writes its notification event."""

    def create_function(self, function: Function) -> None:
        """Raises AlreadyExistsError, InvalidObjectError, NoSuchObjectError (its database)."""

    def alter_function(
        self, database: str, name: str, function: Function, catalog: str = DEFAULT_CATALOG
    ) -> None:
        """Replace it, and its name and database too. Raises MetaError for an unknown one,
        AlreadyExistsError, InvalidObjectError, NoSuchObjectError (its new database)."""

    def drop_function(self, database: str, name: str, catalog: str = DEFAULT_CATALOG) -> None:
        """Raises NoSuchObjectError."""

    def get_function(self, database: str, name: str, catalog: str = DEFAULT_CATALOG) -> Function:
        """Raises NoSuchObjectError."""

    def get_functions(
        self,
        database: str | None = None,
        pattern: str | None = None,
        catalog: str = DEFAULT_CATALOG,
    ) -> tuple[Function, ...]:
        """Of one database or of all, sorted; none for an unknown database."""


class ConstraintStore(Protocol):
    """Constraints of tables. Nobody looks at the rows that are there; writers keep NOT NULL,
    DEFAULT and CHECK (dml/constraints.py). Adding and dropping writes notification events."""

    def get_constraints(
        self, database: str, table: str, catalog: str = DEFAULT_CATALOG
    ) -> tuple[ColumnConstraint, ...]:
        """All of a table, those too that are not enabled, by name and position; none for an
        unknown table."""

    def add_constraints(
        self,
        database: str,
        table: str,
        wanted: Sequence[ColumnConstraint],
        catalog: str = DEFAULT_CATALOG,
    ) -> None:
        """Add constraints of one kind.

        Raises NoSuchObjectError (the table, or one that a foreign key refers to), MetaError for a
        second primary key and a foreign key to what is no key, InvalidObjectError for a name that
        the table has and a column that it has not.
        """

    def drop_constraint(
        self, database: str, table: str, name: str, catalog: str = DEFAULT_CATALOG
    ) -> None:
        """Raises NoSuchObjectError for an unknown table, InvalidObjectError for an unknown name;
        over thrift, which has no class for it, MetaError."""


class PlaceStore(Protocol):
    """Who lies where."""

    def find_holder(self, location: str, database: str) -> str | None:
        """The table or partition in whose directory a place lies, or whose directory it is, as a
        text for people; None if there is none.

        Over its own database: of any database and catalog, links followed. Over thrift no call
        names: of the tables of ``database``, as their locations are written.
        """


class MaterializedViewStore(Protocol):
    """Of which tables, and of which state of them, materialized views are."""

    def update_creation_metadata(
        self, database: str, view: str, creation: CreationMetadata, catalog: str = DEFAULT_CATALOG
    ) -> None:
        """Say of which state of its tables a view is now. Raises NoSuchObjectError,
        InvalidOperationError for what is no materialized view."""

    def get_materialized_views(
        self, database: str | None = None, catalog: str = DEFAULT_CATALOG
    ) -> tuple[Table, ...]:
        """Those that queries may be rewritten to, with what they were made of; sorted."""

    def get_materialization_changes(
        self, creation: CreationMetadata, valid_txns: ValidTxnList
    ) -> MaterializationChanges | None:
        """What became of a view's tables since; None where only a whole rebuild is right."""

    def lock_materialization_rebuild(self, database: str, view: str, txn_id: TxnId) -> bool:
        """Whether this transaction may rebuild the view; false while another one does."""

    def heartbeat_materialization_rebuild(self, database: str, view: str, txn_id: TxnId) -> bool:
        """Keep that right alive; false if the transaction does not have it."""
