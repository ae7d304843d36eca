"""A writer that outlives its table (a DROP without a lock) shows nothing in the next one there, and
its commit is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Barrier

import pytest

from hms_bridge.backend.schema.txn_tables import HMSB_LATE_WRITER, TXN_COMPONENTS
from hms_bridge.clock import SystemClock
from hms_bridge.config.settings import CompactorSettings
from hms_bridge.errors import MetaError, TxnAbortedError
from hms_bridge.model.catalog import Database
from hms_bridge.model.event import EventType
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.txn import late_writers
from tests.conformance import objects
from tests.support.world import World

RETENTION_MS = CompactorSettings().abort_retention_ms
REFUSED = r"txnid:\d+ already aborted: db\.t, of which it has write id 4, was dropped or renamed"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """The cleaner comes for the first aborted write."""
    world = World(tmp_path, compactor=CompactorSettings(aborted_txn_threshold=0))
    yield world
    world.close()


@dataclass(frozen=True)
class LateWriter:
    """Its files are elsewhere until it brings them."""

    txn_id: TxnId
    write_id: WriteId
    place: Path
    files: Path

    def bring(self) -> None:
        self.place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(self.files, self.place)


def late_writer(world: World, table: str = "t", partition: str = "") -> LateWriter:
    """After three writes: the fourth, of the row with id 4."""
    for number in range(3):
        world.insert(table, (number, "old"), partition=partition)
    txn = world.begin()
    txn.lock(table)
    txn.insert(table, [(4, "late")], partition)
    write_id = txn.write_id(table)
    assert write_id == 4
    place = world.path(table, partition) / "delta_0000004_0000004_0000"
    files = world.folder / "of the late writer"
    shutil.move(place, files)
    return LateWriter(txn.id, write_id, place, files)


def write_six(world: World, table: str = "t", partition: str = "") -> None:
    for number in range(10, 16):
        world.insert(table, (number, "new"), partition=partition)


def ids(world: World, table: str = "t") -> list[int]:
    return [row["id"] for row in world.rows(table)]


NEW = [10, 11, 12, 13, 14, 15]


def drop_and_create(world: World) -> str:
    world.metastore.drop_table("db", "t")
    world.create_table()
    return "t"


def create_under_another_name(world: World) -> str:
    made = world.describe()
    world.metastore.drop_table("db", "t")
    world.metastore.create_table(replace(made, name="u"))
    return "u"


def drop_and_create_database(world: World) -> str:
    world.metastore.drop_database("db", is_cascade=True)
    world.metastore.create_database(Database(name="db"))
    world.create_table()
    return "t"


def rename_and_create(world: World) -> str:
    world.metastore.alter_table("db", "t", replace(world.describe(), name="v"))
    world.create_table()
    return "t"


def drop_and_create_twice(world: World) -> str:
    drop_and_create(world)
    return drop_and_create(world)


SUCCESSORS = pytest.mark.parametrize(
    "make_successor",
    (drop_and_create, create_under_another_name, drop_and_create_database, drop_and_create_twice),
)


@SUCCESSORS
def test_it_shows_nothing_in_the_next_table(
    world: World, make_successor: Callable[[World], str]
) -> None:
    """I7: also once the next table has as many writes, and before its files are cleaned."""
    world.create_table()
    late = late_writer(world)
    table = make_successor(world)
    late.bring()
    with pytest.raises(TxnAbortedError, match=REFUSED):
        world.commit(late.txn_id)
    assert ids(world, table) == []
    write_six(world, table)
    assert ids(world, table) == NEW
    assert {row["row__id"][0] for row in world.rows(table)} == set(range(5, 11))
    world.clock.advance_ms(RETENTION_MS)
    world.clean()
    assert not late.place.exists()
    assert ids(world, table) == NEW


def test_it_shows_nothing_under_the_old_name_of_a_renamed_table(world: World) -> None:
    """Its commit counts for the table of the new name, where its files are not: docs/safety.md."""
    world.create_table()
    late = late_writer(world)
    table = rename_and_create(world)
    late.bring()
    world.commit(late.txn_id)
    write_six(world, table)
    assert ids(world, table) == NEW
    assert ids(world, "v") == [0, 1, 2]


def test_a_writer_that_was_aborted_before_shows_nothing_either(world: World) -> None:
    world.create_table()
    late = late_writer(world)
    world.abort(late.txn_id)
    table = drop_and_create(world)
    late.bring()
    with pytest.raises(TxnAbortedError, match=REFUSED):
        world.commit(late.txn_id)
    write_six(world, table)
    assert ids(world, table) == NEW


def test_it_shows_nothing_in_a_partition(world: World) -> None:
    world.create_table(is_partitioned=True)
    world.add_partition("t", "1")
    late = late_writer(world, partition="p=1")
    world.metastore.drop_table("db", "t")
    world.create_table(is_partitioned=True)
    world.add_partition("t", "1")
    late.bring()
    write_six(world, partition="p=1")
    assert ids(world) == NEW
    world.clock.advance_ms(RETENTION_MS)
    world.clean()
    assert ids(world) == NEW


def test_what_it_wrote_elsewhere_is_aborted_with_it(world: World) -> None:
    """I7: a refused commit leaves nothing visible."""
    world.create_table()
    world.create_table("other")
    txn = world.begin()
    for table in ("t", "other"):
        txn.lock(table)
        txn.insert(table, [(1, "late")])
    last = world.metastore.get_current_event_id()
    world.metastore.drop_table("db", "t")
    events = objects.events_after(world.metastore, last)
    assert [event.type for event in events] == [EventType.ABORT_TXN, EventType.DROP_TABLE]
    with pytest.raises(TxnAbortedError):
        txn.commit()
    assert ids(world, "other") == []


def test_who_has_no_write_id_of_the_table_goes_on(world: World) -> None:
    world.create_table()
    world.create_table("other")
    txn = world.begin()
    txn.lock("other")
    txn.insert("other", [(1, "a")])
    world.metastore.drop_table("db", "t")
    txn.commit()
    assert ids(world, "other") == [1]


def test_a_write_id_asked_for_before_the_next_table_is_made_is_a_higher_one(world: World) -> None:
    """As CREATE TABLE AS SELECT does."""
    world.create_table()
    late = late_writer(world)
    world.metastore.drop_table("db", "t")
    early = world.txns.open_one()
    assert world.txns.allocate(early) == [5]
    world.create_table()
    late.bring()
    world.commit(early)
    write_six(world)
    assert ids(world) == NEW


def test_write_ids_of_another_name_that_are_the_late_writers_are_refused(world: World) -> None:
    made = (world.create_table(), world.describe())[1]
    late_writer(world)
    world.metastore.drop_table("db", "t")
    for _ in range(4):
        world.txns.allocate(world.txns.open_one(), table="u")
    with pytest.raises(MetaError, match=r"db\.u cannot be made at .* its write ids 4 were given"):
        world.metastore.create_table(replace(made, name="u"))
    world.create_table("u")


def test_after_the_retention_nothing_is_remembered(world: World) -> None:
    world.create_table()
    late_writer(world)
    world.metastore.drop_table("db", "t")
    world.metastore.run_housekeeping()
    assert len(world.records(HMSB_LATE_WRITER)) == 1
    world.clock.advance_ms(RETENTION_MS + 1000)
    world.metastore.run_housekeeping()
    assert world.records(HMSB_LATE_WRITER) == []
    world.create_table()
    assert world.txns.allocate(world.txns.open_one()) == [1]


def test_a_table_without_late_writers_leaves_nothing(world: World) -> None:
    """Aborts that are older than the retention are of writers that are no more."""
    world.create_table()
    world.abort(late_writer(world).txn_id)
    world.clock.advance_ms(RETENTION_MS + 1000)
    world.insert("t", (9, "x"))
    drop_and_create(world)
    assert world.records(HMSB_LATE_WRITER) == []
    assert world.records(TXN_COMPONENTS) == []
    assert world.txns.allocate(world.txns.open_one()) == [1]


@pytest.mark.parametrize("verb", ("commit", "allocate"))
def test_a_drop_at_the_same_moment(tmp_path: Path, verb: str) -> None:
    """Who is first wins: a commit that is answered was before the drop, and a write id that is
    given while the table goes is none of the next table's."""
    world = World(tmp_path, clock=SystemClock())
    try:
        for _ in range(8):
            _race(world, verb)
    finally:
        world.close()


def _race(world: World, verb: str) -> None:
    world.create_table()
    txns, (first, second) = world.txns, world.txns.open(2)
    assert txns.allocate(first)
    together = Barrier(2)

    def drop() -> None:
        together.wait()
        world.metastore.drop_table("db", "t")

    def go_on() -> bool:
        together.wait()
        try:
            if verb == "commit":
                world.commit(first)
            else:
                txns.allocate(first, second)
        except (MetaError, TxnAbortedError):
            return False
        return True

    with ThreadPoolExecutor(2) as threads:
        went_on, dropped = threads.submit(go_on), threads.submit(drop)
        dropped.result(60)
        has_gone_on = went_on.result(60)
    world.create_table()
    (seen,) = world.metastore.get_valid_write_ids(["db.t"])
    if verb == "commit" and has_gone_on:
        world.metastore.drop_table("db", "t")
        return
    given = txns.allocate(txns.open_one())[0]
    visible = set(range(1, given)) - set(seen.aborted_ids) - set(seen.open_ids)
    late = {row["LW_WRITE_ID"] for row in world.records(HMSB_LATE_WRITER)}
    assert not visible & late
    world.metastore.drop_table("db", "t")


@pytest.mark.parametrize(
    ("place", "other"), [("hdfs://nn/w/t", "hdfs://nn:8020/w/t"), ("s3://b/w/t", "s3a://b/w/t")]
)
def test_a_place_is_the_same_however_it_is_spelled(world: World, place: str, other: str) -> None:
    """No file system is asked: the verb would want to make a directory there."""
    world.create_table()
    made = world.describe()
    world.txns.allocate(world.txns.open_one())
    dropped, next_one = (
        replace(made, name=name, storage=replace(made.storage, location=location))
        for name, location in (("t", place), ("u", other))
    )
    world.do(lambda work: late_writers.end_writers(work, dropped))
    late = world.do(lambda work: late_writers.take_over(work, next_one, is_of_load=False))
    assert late == 1
    assert world.txns.allocate(world.txns.open_one(), table="u") == [2]
