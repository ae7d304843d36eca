"""A CREATE TABLE AS SELECT that failed: what it had written goes, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import delete

from cleaner.plan import CleaningOutcome, CleaningState
from hms_bridge.backend.schema.txn_tables import TXN_COMPONENTS, TXNS
from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.errors import MetaError, NoSuchTxnError
from hms_bridge.model.catalog import Storage, Table
from hms_bridge.model.compaction import CompactionRequest, CompactionState, CompactionType
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.lock import DataOperation, LockType
from hms_bridge.model.target import Target
from hms_bridge.server.serve import MetastoreServer
from hms_bridge.wire import convert_compaction
from tests.conformance import objects
from tests.support.cleaning_world import CleaningWorld, delta

TARGET = Target("db", "made")


@pytest.fixture
def world(tmp_path: Path) -> CleaningWorld:
    """One that remembers aborts, as any does."""
    return CleaningWorld(tmp_path, abort_retention_ms=3_600_000)


@pytest.fixture
def folder(world: CleaningWorld) -> Path:
    return world.table.parent / "made"


def request(folder: Path, **properties: str) -> CompactionRequest:
    given = {"location": f"file:{folder}", "ifPurge": "true"} | properties
    return CompactionRequest(target=TARGET, type=CompactionType.MAJOR, properties=given)


def start(world: CleaningWorld, folder: Path) -> tuple[TxnId, WriteId]:
    """As Hive begins the statement: a lock on a table that is not there, a write id, a delta."""
    txn_id = world.open()
    wanted = objects.component("db", "made", LockType.EXCL_WRITE, DataOperation.INSERT)
    world.metastore.lock(objects.request(wanted, txn=txn_id))
    write_id = objects.write_id(world.metastore, txn_id, "db", "made")
    (folder / delta(write_id)).mkdir(parents=True)
    (folder / delta(write_id) / "bucket_00000").write_bytes(b"half a table")
    return txn_id, write_id


def fail(world: CleaningWorld, folder: Path) -> tuple[TxnId, WriteId]:
    txn_id, write_id = start(world, folder)
    assert world.store.metastore.submit_for_cleanup(request(folder), write_id, txn_id)
    world.abort(txn_id)
    return txn_id, write_id


def clean(world: CleaningWorld) -> CleaningOutcome:
    """One pass; what became of the entry."""
    (outcome,) = (outcome for outcome in world.cleaner().run_once() if outcome.entry.id)
    return outcome


def states(world: CleaningWorld) -> list[CompactionState]:
    return [entry.state for entry in world.metastore.show_compactions()]


def test_what_it_wrote_goes_with_the_directory(world: CleaningWorld, folder: Path) -> None:
    txn_id, _ = fail(world, folder)
    world.metastore.run_housekeeping()
    world.clock.advance_ms(60_000)
    outcome = clean(world)
    assert (outcome.state, outcome.victim_count) == (CleaningState.CLEANED, 1)
    assert not folder.exists()
    assert "half a table" in world.archived_contents()
    assert states(world) == [CompactionState.SUCCEEDED]
    # Its abort is still known: else its write would count as committed in a table of that name.
    world.commit(world.open())
    world.clock.advance_ms(60_000)
    world.metastore.run_housekeeping()
    assert world.metastore.get_open_txns(excluded_types=frozenset()).snapshot().is_aborted(txn_id)


def test_nothing_goes_while_it_may_still_be_committed(world: CleaningWorld, folder: Path) -> None:
    txn_id, write_id = start(world, folder)
    world.store.metastore.submit_for_cleanup(request(folder), write_id, txn_id)
    world.metastore.run_housekeeping()
    assert not any(outcome.entry.id for outcome in world.cleaner().run_once())
    assert (folder / delta(write_id)).is_dir()
    assert states(world) == [CompactionState.READY_FOR_CLEANING]


def test_the_next_try_keeps_what_it_writes_there(world: CleaningWorld, folder: Path) -> None:
    """Hive's cleaner deletes it, and the statement succeeds without its rows."""
    _, first = fail(world, folder)
    _, second = start(world, folder)
    outcome = clean(world)
    assert "what else is in it stays" in outcome.message
    assert [path.name for path in folder.iterdir()] == [delta(second)]
    assert first != second


def test_files_of_nobody_stay(world: CleaningWorld, folder: Path) -> None:
    fail(world, folder)
    (folder / "notes.txt").write_text("mine")
    (folder / "_tmp.1").mkdir()
    (folder / "_tmp.1" / "part").write_text("not known")
    world.cleaner().run_once()
    assert sorted(path.name for path in folder.rglob("*")) == ["_tmp.1", "notes.txt", "part"]


def test_directories_of_partitions_go_when_they_are_empty(
    world: CleaningWorld, folder: Path
) -> None:
    _, write_id = fail(world, folder / "p=1")
    (folder / "p=2" / delta(write_id)).mkdir(parents=True)
    entry = world.metastore.show_compactions()[0]
    world.cleaner()._first.never_created.clean(
        replace(entry, properties={"location": f"file:{folder}", "ifPurge": "true"})
    )
    assert not folder.exists()


def test_a_table_that_came_by_another_way_is_left_alone(world: CleaningWorld, folder: Path) -> None:
    _, write_id = fail(world, folder)
    world.create_table("made")
    outcome = clean(world)
    assert "is there by now" in outcome.message
    assert states(world) == [CompactionState.SUCCEEDED]


def test_a_table_of_another_name_in_it_stops_the_cleaning(
    world: CleaningWorld, folder: Path
) -> None:
    txn_id, write_id = start(world, world.table)
    world.store.metastore.submit_for_cleanup(request(world.table), write_id, txn_id)
    world.abort(txn_id)
    outcome = clean(world)
    assert outcome.state is CleaningState.POSTPONED
    assert "table t lies in it too; nothing was deleted" in outcome.message
    assert (world.table / delta(write_id)).is_dir()


def test_a_directory_outside_of_the_warehouse_stays(world: CleaningWorld) -> None:
    elsewhere = world.folder / "home"
    _, write_id = fail(world, elsewhere)
    outcome = clean(world)
    assert "stays: it is outside of the warehouse" in outcome.message
    assert (elsewhere / delta(write_id)).is_dir()


def test_what_nobody_knows_the_end_of_stays(world: CleaningWorld, folder: Path) -> None:
    """A Hive beside us forgets transactions by rules of its own."""
    txn_id, write_id = fail(world, folder)
    with world.engine.transaction(write=True) as connection:
        connection.execute(delete(TXN_COMPONENTS))
        connection.execute(delete(TXNS).where(txn_id == TXNS.c.TXN_ID))
    world.metastore.run_housekeeping()
    outcome = clean(world)
    assert "nobody knows that its write was aborted" in outcome.message
    assert (folder / delta(write_id)).is_dir()


def test_write_ids_that_begin_anew_are_not_those_of_the_failed_statement(
    world: CleaningWorld, folder: Path
) -> None:
    """Since the pass began the table was made, dropped, and is being made once more. After a drop
    of ours the next write ids would be above."""
    _, first = fail(world, folder)
    entries = world.metastore.find_ready_to_clean()
    world.create_table("made")
    world.drop_as_hive("made")
    _, again = start(world, folder)
    assert first == again
    (outcome,) = (world.cleaner()._first._handler(entry)(entry) for entry in entries)
    assert "nobody knows that its write was aborted" in outcome.message
    assert (folder / delta(again)).is_dir()


def test_a_transaction_that_was_committed_after_all_keeps_its_rows(
    world: CleaningWorld, folder: Path
) -> None:
    txn_id, write_id = start(world, folder)
    world.store.metastore.submit_for_cleanup(request(folder), write_id, txn_id)
    world.commit(txn_id)
    assert not any(outcome.entry.id for outcome in world.cleaner().run_once())
    assert (folder / delta(write_id)).is_dir()


def test_only_who_wrote_it_may_ask(world: CleaningWorld, folder: Path) -> None:
    txn_id, write_id = start(world, folder)
    stranger = world.open()
    committed = world.open()
    world.commit(committed)
    with MetastoreServer(0, world.metastore) as server:
        client = ThriftMetastoreClient(f"thrift://127.0.0.1:{server.port}")

        def ask(asked: CompactionRequest, write_id: WriteId, txn_id: TxnId) -> bool:
            struct = convert_compaction.compaction_request_to_struct(asked)
            answer = client._caller.call("submit_for_cleanup", o1=struct, o2=write_id, o3=txn_id)
            return bool(answer)

        with pytest.raises(MetaError, match="has no write id 1 of db.made"):
            ask(request(folder), write_id, stranger)
        with pytest.raises(NoSuchTxnError, match="txnid:3 is already committed"):
            ask(request(folder), write_id, committed)
        with pytest.raises(MetaError, match="give the directory to clean"):
            ask(request(folder, other="x"), write_id, txn_id)
        with pytest.raises(MetaError, match="give the directory to clean"):
            ask(CompactionRequest(target=TARGET, type=CompactionType.MAJOR), write_id, txn_id)
        assert states(world) == []
        assert ask(request(folder), write_id, txn_id)
        assert ask(request(folder), write_id, txn_id)  # told again, as after a lost answer
        client.close()
    (entry,) = world.metastore.show_compactions()
    assert (entry.state, entry.txn_id, entry.highest_write_id) == (
        CompactionState.READY_FOR_CLEANING, txn_id, write_id,
    )  # fmt: skip


def test_what_the_cleaner_would_do_is_told(world: CleaningWorld, folder: Path) -> None:
    fail(world, folder)
    (told,) = (e for e in world.cleaner().explain() if e.entry.id)
    assert told.readiness.is_ready
    assert told.reason == f"its table was never made: file:{folder}"


def test_a_statement_that_was_killed_shows_nothing_in_a_later_table(
    world: CleaningWorld, folder: Path
) -> None:
    """Nobody asked for a clean-up. A real Hive forgets the abort and leaves the files, which a
    table of that name shows as its rows."""
    txn_id, _ = start(world, folder)
    world.abort(txn_id)
    (folder / "notes.txt").write_text("mine")
    world.clock.advance_ms(2 * 3_600_000)
    (outcome,) = world.cleaner().run_once()
    assert outcome.state is CleaningState.GONE
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
    assert "half a table" in world.archived_contents()


def test_a_killed_statement_whose_files_cannot_be_removed_is_remembered(
    world: CleaningWorld, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    txn_id, write_id = start(world, folder)
    world.abort(txn_id)
    world.clock.advance_ms(2 * 3_600_000)
    cleaner = world.cleaner()
    with monkeypatch.context() as patch:
        patch.setattr("changemanager.delete_protocol.DeleteProtocol.remove", _refuse)
        (outcome,) = cleaner.run_once()
    assert outcome.state is CleaningState.POSTPONED
    assert (folder / delta(write_id)).is_dir()
    (write_ids,) = world.metastore.get_valid_write_ids(["db.made"])
    assert write_ids.is_aborted(write_id)


def _refuse(*_: object, **__: object) -> None:
    raise PermissionError("the directory is not writable")


def test_files_of_a_table_that_moved_there_are_not_those_of_a_killed_statement(
    world: CleaningWorld, folder: Path
) -> None:
    txn_id, write_id = start(world, folder)
    world.abort(txn_id)
    world.store.metastore.create_table(
        Table(
            name="inside", database_name="db", type="EXTERNAL_TABLE",
            parameters={"EXTERNAL": "TRUE"}, storage=Storage(location=f"file:{folder}"),
        )
    )  # fmt: skip
    world.clock.advance_ms(2 * 3_600_000)
    world.cleaner().run_once()
    assert (folder / delta(write_id)).is_dir()
