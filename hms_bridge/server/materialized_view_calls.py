"""Materialized views: what they were made of, and rebuilding them."""

from __future__ import annotations

from hms_bridge.metadata_store import MaterializedViewStore
from hms_bridge.model.ids import TxnId
from hms_bridge.model.lock import LockState
from hms_bridge.model.valid_ids import ValidTxnList
from hms_bridge.server.answers import Calls, answers
from hms_bridge.server.names import table_of
from hms_bridge.wire.catalog_names import split_catalog
from hms_bridge.wire.convert_catalog import creation_from_struct, table_to_struct
from hms_bridge.wire.required import given
from hms_bridge.wire.structs import Struct, hive


class MaterializedViewCalls(Calls[MaterializedViewStore]):
    """Materialized views."""

    @answers("update_creation_metadata")
    def update_creation_metadata(self, args: Struct) -> None:
        name = table_of(args)
        creation = creation_from_struct(given(args.creation_metadata, "creation_metadata"))
        self._store.update_creation_metadata(name.database, name.table, creation, name.catalog)

    @answers("get_materialized_views_for_rewriting", of="db_name")
    def names_for_rewriting(self, full_name: str) -> list[str]:
        catalog, database = split_catalog(full_name)
        return [view.name for view in self._store.get_materialized_views(database, catalog)]

    @answers("get_all_materialized_view_objects_for_rewriting")
    def views_for_rewriting(self, _: Struct) -> list[Struct]:
        return [table_to_struct(view) for view in self._store.get_materialized_views()]

    @answers("get_materialization_invalidation_info")
    def changes(self, args: Struct) -> Struct | None:
        """What became of a view's tables; no answer, as from Hive, where that is not known."""
        creation = creation_from_struct(given(args.creation_metadata, "creation_metadata"))
        seen = ValidTxnList.parse(given(args.validTxnList, "validTxnList"))
        changes = self._store.get_materialization_changes(creation, seen)
        if changes is None:
            return None
        return hive.Materialization(
            sourceTablesUpdateDeleteModified=changes.has_updates_or_deletes,
            sourceTablesCompacted=changes.has_compactions,
        )

    @answers("get_lock_materialization_rebuild")
    def lock_rebuild(self, args: Struct) -> Struct:
        """The right to rebuild a view; the lock's id is the transaction's."""
        name = table_of(args)
        txn = TxnId(given(args.txnId, "txnId"))
        is_free = self._store.lock_materialization_rebuild(name.database, name.table, txn)
        state = LockState.ACQUIRED if is_free else LockState.NOT_ACQUIRED
        return hive.LockResponse(lockid=txn, state=state.number)

    @answers("heartbeat_lock_materialization_rebuild")
    def heartbeat_rebuild(self, args: Struct) -> bool:
        name = table_of(args)
        txn = TxnId(given(args.txnId, "txnId"))
        return self._store.heartbeat_materialization_rebuild(name.database, name.table, txn)
