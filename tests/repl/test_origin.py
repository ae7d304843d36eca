"""An incremental dump follows on the log that the one before it was made of, or says it cannot; and
so does a load.

Numbers of events alone tell nothing: another metastore has the same ones, and so has one that was
restored from an older backup and went on since (I11).
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from hms_bridge.errors import AcidFormatError, EventGapError, ReplError
from hms_bridge.model.catalog import Database
from hms_bridge.model.compaction import CompactionType
from hms_bridge.model.ids import EventId
from hms_bridge.model.txn import CommitTxnRequest
from hms_bridge.repl.dump.discard import DiscardRequest, ReplDiscard
from hms_bridge.repl.dump.repl_dump import DumpKind
from hms_bridge.repl.handover.own_part import plan_end, run_end
from hms_bridge.rows.scan import plan_scan
from hms_bridge.session.transaction import current_snapshot
from tests.support.faults import CrashError
from tests.support.passing import Passing
from tests.support.repl_world import LEASE, ReplWorld
from tests.support.simulated_clock import DAY_MS, SimulatedClock


@pytest.mark.parametrize("written", [2, 5])
def test_a_source_that_was_restored_and_went_on_is_noticed(world, written):
    """As long as the log is shorter it is noticed by that; here it is as long again, and longer."""
    backup = world.backup()
    world.insert("t", (2, "b"))
    world.insert("t", (3, "c"))
    world.replicate()
    end = world.source.get_current_event_id()
    world.restore(backup)
    shutil.rmtree(world.root("t").path)
    while world.source.get_current_event_id() < end + written - 2:
        world.source.create_database(Database(name=f"other{world.source.get_current_event_id()}"))
    with pytest.raises(
        EventGapError, match="restored from a backup.*may be the only copy.*To begin anew"
    ):
        world.dump()


def test_another_metastore_is_noticed(world):
    world.replicate()
    folder = world.folder / "other"
    folder.mkdir()
    other = ReplWorld(folder, clock=SimulatedClock(world.clock.now_ms() + DAY_MS))
    other.create_table("t")
    for number in range(5):
        other.insert("t", (number, "z"))
    with pytest.raises(EventGapError, match="look at --metastore"):
        other.dump(root=str(world.repl_root))
    other.close()


def test_it_is_noticed_after_a_dump_was_discarded_too(world):
    world.replicate()
    backup = world.backup()
    world.insert("t", (2, "b"))
    world.replicate()
    world.insert("t", (3, "c"))
    world.dump()
    _discard(world)
    dumper = world.dumper()
    assert dumper.plan(world.dump_request()).kind is DumpKind.INCREMENTAL
    world.restore(backup)
    for number in range(9):
        world.source.create_database(Database(name=f"other{number}"))
    with pytest.raises(EventGapError, match="restored from a backup"):
        world.dump()


class Source:
    """A source and its backup: the metastore's database and the warehouse."""

    def __init__(self, world: ReplWorld) -> None:
        self._world = world
        self._files, self._kept = world.folder / "source", world.folder / "kept"
        self._backup = world.backup()
        shutil.copytree(self._files, self._kept)

    def restore(self) -> None:
        replica = self._world.replica.backup()
        self._world.restore(self._backup)
        self._world.replica.restore(replica)
        shutil.rmtree(self._files)
        shutil.copytree(self._kept, self._files)
        self._world.clock.advance_ms(5000)


def test_what_a_killed_load_brought_of_a_discarded_dump_is_not_taken_for_another_writes(busy_world):
    """The source gives the write id again; the partition that had it first would show its rows."""
    world = busy_world
    world.replicate()
    backed_up = Source(world)
    world.insert("parted", (3, "lost"), partition="p=x")
    world.dump()
    with pytest.raises(CrashError):
        _kill_load_before_its_commit(world)
    _discard(world)
    backed_up.restore()
    world.insert("parted", (4, "other"), partition="p=y")
    with pytest.raises(EventGapError, match="is another one in this metastore"):
        world.dump()


def test_a_source_without_the_events_of_a_discarded_dump_is_noticed(busy_world):
    world = busy_world
    world.replicate()
    backed_up = Source(world)
    world.insert("parted", (3, "lost"), partition="p=x")
    world.dump()
    _discard(world)
    backed_up.restore()
    with pytest.raises(EventGapError, match="the last dump ended at event"):
        world.dump()


def test_what_a_discarded_dump_has_seen_is_remembered_by_the_next_discarded_one(busy_world):
    """The first of them goes further than the second."""
    world = busy_world
    world.replicate()
    world.insert("parted", (3, "a"), partition="p=x")
    backed_up = Source(world)
    world.insert("parted", (4, "lost"), partition="p=x")
    world.dump()
    with pytest.raises(CrashError):
        _kill_load_before_its_commit(world)
    _discard(world)
    world.dump(event_limit=1)
    _discard(world)
    backed_up.restore()
    world.insert("parted", (5, "other"), partition="p=y")
    with pytest.raises(EventGapError, match="is another one in this metastore"):
        world.dump()


class WritingOnce(Passing):
    """A source that is backed up, and written to, between a bootstrap's event and its snapshot."""

    def __init__(self, world: ReplWorld) -> None:
        super().__init__(world.source)
        self._world = world
        self.backed_up: Source | None = None

    def get_current_event_id(self) -> EventId:
        event_id: EventId = self.inner.get_current_event_id()
        if self.backed_up is None:
            self.backed_up = Source(self._world)
            self._world.insert("parted", (3, "lost"), partition="p=x")
        return event_id


def test_a_source_that_was_restored_to_before_a_bootstraps_snapshot_is_noticed(busy_world):
    world = busy_world
    source = WritingOnce(world)
    report = world.dump(source)
    assert report.to_event_id > report.last_event_id
    world.load()
    assert source.backed_up is not None
    source.backed_up.restore()
    world.insert("parted", (4, "other"), partition="p=y")
    with pytest.raises(EventGapError, match="is another one in this metastore"):
        world.dump()


def _kill_load_before_its_commit(world: ReplWorld) -> None:
    loader = world.loader(DyingAtCommit(world.target))
    loader.run(loader.plan(world.load_request))


class DyingAtCommit(Passing):
    def commit_txn(self, request: CommitTxnRequest) -> None:
        raise CrashError

    def commit_replays(self, requests: Sequence[CommitTxnRequest]) -> None:
        raise CrashError


def _discard(world: ReplWorld) -> None:
    world.clock.advance_ms(60_000)
    discard = ReplDiscard(
        world.source, world.resolve, world.clock, world.token, world.source.manifest
    )
    request = DiscardRequest(root=str(world.repl_root), database_name="src", lease=LEASE)
    discard.run(discard.plan(request))


def test_a_log_whose_last_dumped_event_was_purged_is_followed(world):
    """As in a database without a change for longer than events are kept."""
    world.replicate()
    with sqlite3.connect(world.folder / "source.db3") as connection:
        connection.execute("DELETE FROM NOTIFICATION_LOG")
    world.insert("t", (2, "b"))
    world.replicate()
    world.assert_same()


@pytest.mark.parametrize("is_cleaned", [False, True])
def test_tables_that_are_newer_than_their_metastore_are_not_dumped_as_empty(world, is_cleaned):
    """Neither a SELECT nor a compaction takes them so: what replaced the rows is not seen."""
    backup = world.backup()
    for number in (2, 3, 4):
        world.insert("t", (number, "later"))
    if is_cleaned:
        world.compact("t", CompactionType.MAJOR)
        world.clean()
    world.restore(backup)
    with pytest.raises(AcidFormatError, match="which this metastore never gave"):
        world.dump()
    world.request_compaction()
    outcome = world.worker().run_once()
    assert outcome is not None
    assert outcome.state == "failed"
    txns = current_snapshot(world.source)
    table = world.source.get_table("src", "t")
    (write_ids,) = world.source.get_valid_write_ids(["src.t"], txns)
    with pytest.raises(AcidFormatError, match="which this metastore never gave"):
        plan_scan(world.source, world.resolve, table, txns=txns, write_ids=write_ids)


def test_a_write_that_comes_during_a_look_is_no_sign_of_an_older_metastore(world):
    """The reader's lists end before it; the metastore, asked again, knows it."""
    txns = current_snapshot(world.source)
    table = world.source.get_table("src", "t")
    (write_ids,) = world.source.get_valid_write_ids(["src.t"], txns)
    world.insert("t", (2, "b"))
    world.compact("t", CompactionType.MAJOR)
    splits = plan_scan(world.source, world.resolve, table, txns=txns, write_ids=write_ids)
    assert len(splits) == 1


@pytest.fixture
def other(world: ReplWorld) -> Iterator[ReplWorld]:
    """Another source, with a replica of its own; its events have the same numbers."""
    folder = world.folder / "other"
    folder.mkdir()
    world.clock.advance_ms(5000)
    other = ReplWorld(folder, clock=world.clock)
    other.create_table("t")
    other.insert("t", (1, "z"))
    other.replicate()
    yield other
    other.close()


@pytest.mark.parametrize(("own", "others"), [(0, 1), (0, 4), (1, 1), (1, 3), (3, 1)])
def test_a_dump_of_another_source_is_not_loaded(world, other, own, others):
    """As with the root of another replication: its events fit by their numbers."""
    world.replicate()
    for number in range(own):
        world.insert("t", (10 + number, "a"))
        world.replicate()
    for number in range(others):
        other.insert("t", (10 + number, "z"))
    other.dump()
    before = world.replica.rows("t")
    with pytest.raises(ReplError, match="dump of another source.*--root"):
        _load_from(world, other)
    assert world.replica.rows("t") == before
    world.insert("t", (20, "a"))
    world.replicate()
    world.assert_same()
    other.load()  # nobody marked it as loaded
    other.assert_same()


def test_nor_is_a_loaded_one_taken_for_the_newest(world, other):
    world.replicate()
    world.insert("t", (2, "a"))
    world.clock.advance_ms(5000)
    other.insert("t", (2, "z"))
    other.replicate()
    world.replicate()
    with pytest.raises(ReplError, match="dump of another source"):
        _load_from(world, other)


def test_a_stopped_load_of_another_source_leaves_no_doubt(world, other):
    """The note is of the last whole load: until then the next dump begins there, too."""
    world.replicate()
    world.insert("t", (2, "a"))
    world.insert("t", (3, "a"))
    world.dump()
    world.kill_load("after commit_replays")
    other.insert("t", (2, "z"))
    other.insert("t", (3, "z"))
    other.insert("t", (4, "z"))
    other.dump()
    with pytest.raises(ReplError, match="dump of another source"):
        _load_from(world, other)
    world.load()
    world.assert_same()


def test_a_database_of_its_own_remembers_no_source(world):
    world.replicate()
    run_end(world.target, plan_end(world.target, "dst"))
    assert "hms.bridge.repl.origin" not in world.target.get_database("dst").parameters


def _load_from(world: ReplWorld, other: ReplWorld) -> None:
    loader = world.loader()
    loader.run(loader.plan(replace(world.load_request, root=str(other.repl_root))))
