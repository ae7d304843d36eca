"""What a metastore over its own database does for initiator, cleaner and housekeeper."""

from __future__ import annotations

from dataclasses import replace

from hms_bridge.metastore import LocalMetastore
from hms_bridge.model.catalog import CreationMetadata, TableType
from hms_bridge.model.compaction import Compaction, CompactionState, CompactionType
from hms_bridge.model.ids import TxnId
from hms_bridge.model.txn import TxnType
from tests.conformance.compaction_behaviour import ask, shown
from tests.conformance.objects import (
    abort,
    acid_table,
    commit,
    new_database,
    new_table,
    open_txn,
    unique,
    write,
)


class LocalBehaviour:
    """Inherit, and give the fixture `metastore` with a LocalMetastore."""

    def _compacted(self, metastore: LocalMetastore) -> tuple[str, Compaction, TxnId]:
        name, pool = new_database(metastore), unique("pool")
        new_table(metastore, name)
        txn, given = write(metastore, name)
        commit(metastore, txn)
        ask(metastore, name, pool_name=pool)
        found = metastore.find_next_compaction("worker-1", "4.0", pool)
        assert found is not None
        own = open_txn(metastore, TxnType.COMPACTION)
        ready = replace(found, highest_write_id=given, txn_id=own)
        metastore.update_compactor_state(ready, own)
        metastore.mark_compacted(ready)
        return name, ready, own

    def test_only_views_that_queries_may_be_rewritten_to_are_listed(
        self, metastore: LocalMetastore
    ) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        for view, is_enabled in (("on", True), ("off", False)):
            creation = CreationMetadata(
                database_name=name, table_name=view, table_names=frozenset({f"{name}.t"})
            )
            metastore.create_table(
                acid_table(name, view, type=TableType.MATERIALIZED_VIEW.value, creation=creation,
                           is_rewrite_enabled=is_enabled, view_original_text="select 1",
                           view_expanded_text="select 1")
            )  # fmt: skip
        assert [view.name for view in metastore.get_materialized_views(name)] == ["on"]
        assert (name, "on") in {
            (view.database_name, view.name) for view in metastore.get_materialized_views()
        }

    def _to_clean(self, metastore: LocalMetastore, name: str) -> list[Compaction]:
        return [c for c in metastore.find_ready_to_clean() if c.target.database == name]

    def test_only_committed_compactions_are_cleaned(self, metastore: LocalMetastore) -> None:
        name, _, own = self._compacted(metastore)
        assert self._to_clean(metastore, name) == []
        abort(metastore, own)
        metastore.run_housekeeping()
        assert self._to_clean(metastore, name) == []
        assert shown(metastore, name)[0].state is CompactionState.FAILED

    def test_nothing_is_cleaned_under_an_open_reader(self, metastore: LocalMetastore) -> None:
        name, _, own = self._compacted(metastore)
        reader = open_txn(metastore, TxnType.READ_ONLY)
        commit(metastore, own)
        assert self._to_clean(metastore, name) == []
        assert metastore.min_open_txn_watermark() <= reader
        commit(metastore, reader)

    def test_a_postponed_cleaning_waits(self, metastore: LocalMetastore) -> None:
        name, _, own = self._compacted(metastore)
        commit(metastore, own)
        (found,) = shown(metastore, name)
        metastore.mark_cleaning_postponed(found, reason="busy", retry_retention_ms=3_600_000)
        assert self._to_clean(metastore, name) == []
        assert shown(metastore, name)[0].error_message == "busy"

    def test_written_tables_may_need_compaction(self, metastore: LocalMetastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        new_table(metastore, name, "untouched")
        txn, _ = write(metastore, name)
        commit(metastore, txn)
        found = metastore.find_potential_compactions(1000, -1)
        assert [one.target.table for one in found if one.target.database == name] == ["t"]

    def test_entries_of_lost_workers_come_back(self, metastore: LocalMetastore) -> None:
        name, pool = new_database(metastore), unique("pool")
        new_table(metastore, name)
        ask(metastore, name, pool_name=pool)
        assert metastore.find_next_compaction("w-1", "4.0", pool) is not None
        metastore.revoke_timed_out_workers(-1)
        assert shown(metastore, name)[0].state is CompactionState.INITIATED
        assert shown(metastore, name)[0].type is CompactionType.MAJOR

    def test_housekeeping_keeps_what_is_open(self, metastore: LocalMetastore) -> None:
        name = new_database(metastore)
        new_table(metastore, name)
        txn, given = write(metastore, name)
        metastore.run_housekeeping()
        (seen,) = metastore.get_valid_write_ids([f"{name}.t"])
        assert not seen.is_valid(given)
        commit(metastore, txn)
        metastore.run_housekeeping()
        (seen,) = metastore.get_valid_write_ids([f"{name}.t"])
        assert seen.is_valid(given)
