"""Verbs of materialized views that tables do not have."""

from __future__ import annotations

from hms_bridge.backend.connection import Connection
from hms_bridge.catalog import tables, view_creation
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.errors import InvalidOperationError
from hms_bridge.model.catalog import DEFAULT_CATALOG, CreationMetadata, Table
from hms_bridge.model.ids import TxnId
from hms_bridge.model.materialization import MaterializationChanges
from hms_bridge.model.valid_ids import ValidTxnList
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.unit_of_work import UnitOfWork
from hms_bridge.txn import materialization


class MaterializedViewVerbs(VerbFamily):
    """The MaterializedViewStore."""

    def update_creation_metadata(
        self, database: str, view: str, creation: CreationMetadata, catalog: str = DEFAULT_CATALOG
    ) -> None:
        """Say of which state of its tables a view is now. Raises NoSuchObjectError,
        InvalidOperationError for what is no materialized view."""
        key = (database.lower(), view.lower(), catalog.lower())

        def work(unit: UnitOfWork) -> None:
            table = tables.require_table(unit.connection, *key, RowLock.EXCLUSIVE).table
            if not table.is_materialized_view:
                raise InvalidOperationError(f"{table.full_name} is no materialized view")
            view_creation.put_creation(unit.connection, table, creation, self._clock.now_ms())

        self._transactions.write(work)

    def get_materialized_views(
        self, database: str | None = None, catalog: str = DEFAULT_CATALOG
    ) -> tuple[Table, ...]:
        """Those that queries may be rewritten to, with what they were made of; sorted."""
        lowered = None if database is None else database.lower()

        def work(connection: Connection) -> tuple[Table, ...]:
            named = view_creation.names_for_rewriting(connection, lowered, catalog.lower())
            found = (
                tables.find_table(connection, owner, name, catalog.lower()) for owner, name in named
            )
            return tuple(
                view_creation.with_creation(connection, stored).table
                for stored in found
                if stored is not None
            )

        return self._transactions.read(work)

    def get_materialization_changes(
        self, creation: CreationMetadata, valid_txns: ValidTxnList
    ) -> MaterializationChanges | None:
        """What became of a view's tables since; None where only a whole rebuild is right."""
        return self._transactions.read(
            lambda c: materialization.changes_since(
                c, creation, valid_txns, self._settings.txn, self._clock
            )
        )

    def lock_materialization_rebuild(self, database: str, view: str, txn_id: TxnId) -> bool:
        """Whether this transaction may rebuild the view; false while another one does."""
        return self._transactions.write(
            lambda unit: materialization.lock_rebuild(
                unit.connection, database.lower(), view.lower(), txn_id, self._clock
            )
        )

    def heartbeat_materialization_rebuild(self, database: str, view: str, txn_id: TxnId) -> bool:
        """Keep that right alive; false if the transaction does not have it."""
        return self._transactions.write(
            lambda unit: materialization.heartbeat_rebuild(
                unit.connection, database.lower(), view.lower(), txn_id, self._clock
            )
        )
