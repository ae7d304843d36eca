"""What a source does at the edges is on its replica too, or the dump or load says what is not.

Each case was once a replica that differed from its source without a word (I11).
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.errors import EventGapError, ReplError
from hms_bridge.model.catalog import (
    ORC_INPUT_FORMAT,
    ORC_OUTPUT_FORMAT,
    ORC_SERDE,
    SerDe,
    Storage,
    Table,
    TableType,
)
from hms_bridge.model.compaction import CompactionType
from hms_bridge.model.event import NotificationEvent, WriteNotification
from hms_bridge.model.ids import EventId
from hms_bridge.repl.dump.event_source import concerns
from hms_bridge.repl.dump.events import EventWriter
from hms_bridge.repl.dump.plan import IncrementalRules
from hms_bridge.repl.format.emptied import oldest_row
from hms_bridge.repl.format.layout import EventPaths
from hms_bridge.repl.load.plan import LoadKind
from hms_bridge.wire.object_json import table_to_json
from tests.support.faults import CrashError, Dying
from tests.support.passing import Passing
from tests.support.world import COLUMNS


@pytest.fixture
def world(empty_world):
    empty_world.create_table("t")
    empty_world.insert("t", (1, "a"), (2, "b"))
    return empty_world


def read(world, database: str = "dst", table: str = "t") -> list[int]:
    side = world.replica if database == "dst" else world
    return [row["id"] for row in side.rows(table)]


def external_table(world, name: str, place, table_type=TableType.EXTERNAL_TABLE) -> Table:
    world.source.create_table(
        Table(
            name=name,
            database_name="src",
            type=table_type.value,
            storage=Storage(
                columns=COLUMNS,
                location=f"file:{place}",
                input_format=ORC_INPUT_FORMAT,
                output_format=ORC_OUTPUT_FORMAT,
                serde=SerDe(library=ORC_SERDE),
            ),
            parameters={"EXTERNAL": "TRUE"},
        )
    )
    return world.source.get_table("src", name)


def load_external(world):
    request = replace(world.load_request, external_base=str(world.folder / "ext"))
    loader = world.loader()
    return loader.run(loader.plan(request))


# a second replica, a replica that was restored


def test_a_second_replica_loads_what_the_first_has_loaded(world):
    world.replicate()
    backup = world.replica.backup()
    world.insert("t", (3, "c"))
    world.replicate()
    assert read(world) == [1, 2, 3]
    world.replica.restore(backup)
    assert read(world) == [1, 2]
    report = world.load()
    assert report.kind is LoadKind.INCREMENTAL
    world.assert_same()
    assert world.load().kind is LoadKind.NOTHING


def test_a_replica_too_far_behind_a_loaded_dump_is_told(world):
    world.replicate()
    first = world.target.get_database("dst")
    for number in (3, 4):
        world.insert("t", (number, "x"))
        world.replicate()
    world.target.alter_database("dst", first)
    with pytest.raises(EventGapError, match="the events between are in no dump"):
        world.load()


# catalogs


def test_events_of_another_catalog_are_not_of_the_database():
    event = NotificationEvent(
        id=EventId(1), time_seconds=1, type="DROP_TABLE", database_name="src", message="{}"
    )
    assert concerns(event, "src")
    assert concerns(replace(event, catalog_name="HIVE"), "src")
    assert concerns(replace(event, catalog_name=None), "src")
    assert not concerns(replace(event, catalog_name="other"), "src")


def test_a_drop_in_another_catalog_does_not_drop_on_the_replica(world):
    world.replicate()
    source = world.source

    class TwoCatalogs(Passing):
        """The source's log, with the events of one table as of another catalog."""

        def get_next_notification(self, request):
            found = source.get_next_notification(request)
            return tuple(
                replace(one, catalog_name="spark", table_name="t", message=as_t(one.message))
                if one.table_name == "u"
                else one
                for one in found
            )

    def as_t(message: str) -> str:
        return message.replace('"u"', '"t"')

    world.create_table("u")
    world.source.drop_table("src", "u")
    world.dump(TwoCatalogs(source))
    world.load()
    world.assert_same()
    assert read(world) == [1, 2]


# places


def test_a_managed_table_with_another_place_is_refused(world):
    world.replicate()
    table = world.source.get_table("src", "t")
    moved = replace(table, storage=replace(table.storage, location=f"file:{world.folder}/else"))
    world.source.alter_table("src", "t", moved)
    with pytest.raises(
        ReplError, match=r"ALTER_TABLE.*src\.t was given another place.*--table-anew t"
    ):
        world.dump()


def test_a_managed_partition_with_another_place_is_refused(world):
    world.create_table("part", is_partitioned=True)
    world.add_partition("part", "1")
    world.replicate()
    (part,) = world.source.get_partitions("src", "part")
    moved = replace(part, storage=replace(part.storage, location=f"file:{world.folder}/else"))
    world.source.alter_partitions("src", "part", [moved])
    with pytest.raises(ReplError, match=r"partition p=1 of src\.part at .*/else may have been"):
        world.dump()


def test_an_external_table_with_another_place_follows(world):
    old, new = world.folder / "old", world.folder / "new"
    for place in (old, new):
        place.mkdir()
        (place / "file").write_text(place.name)
    table = external_table(world, "e", old)
    world.dump(external_base=str(world.folder / "ext"))
    load_external(world)
    moved = replace(table, storage=replace(table.storage, location=f"file:{new}"))
    world.source.alter_table("src", "e", moved)
    world.dump(external_base=str(world.folder / "ext"))
    load_external(world)
    place = world.target.get_table("dst", "e").storage.location
    assert place == f"file:{world.folder}/ext{new}"
    assert (world.folder / f"ext{new}" / "file").read_text() == "new"


# external data


@pytest.mark.parametrize("table_type", [TableType.EXTERNAL_TABLE, TableType.MANAGED_TABLE])
def test_a_mirror_removes_what_the_source_removed(world, table_type):
    """The property EXTERNAL makes it external, whatever type it was created with."""
    place = world.folder / "data"
    (place / "p=1").mkdir(parents=True)
    (place / "p=1" / "one").write_text("1")
    (place / "two").write_text("2")
    external_table(world, "e", place, table_type)
    world.dump(external_base=str(world.folder / "ext"))
    load_external(world)
    copy = world.folder / f"ext{place}"
    assert (copy / "p=1" / "one").read_text() == "1"
    (place / "p=1" / "one").unlink()
    (place / "two").write_text("two")
    world.insert("t", (3, "c"))
    world.dump(external_base=str(world.folder / "ext"))
    load_external(world)
    assert not (copy / "p=1" / "one").exists()
    assert (copy / "two").read_text() == "two"


def test_external_data_is_copied_though_the_events_were_applied_before(world):
    """A load that was stopped between the last event and the data."""
    place = world.folder / "data"
    place.mkdir()
    (place / "one").write_text("1")
    external_table(world, "e", place)
    world.dump(external_base=str(world.folder / "ext"))
    load_external(world)
    (place / "one").write_text("2")
    world.insert("t", (3, "c"))
    report = world.dump(external_base=str(world.folder / "ext"))
    database = world.target.get_database("dst")
    before = world.target.get_database("dst")
    load_external(world)
    marks = world.folder / "repl" / "c3Jj" / report.directory.rpartition("/")[2] / "hive"
    (marks / "_finished_load").unlink()
    copied = world.folder / f"ext{place}" / "one"
    copied.write_text("1")
    assert database == before
    load_external(world)
    assert copied.read_text() == "2"


def test_external_data_that_is_gone_is_refused(world):
    place = world.folder / "data"
    place.mkdir()
    (place / "one").write_text("1")
    external_table(world, "e", place)
    world.dump(external_base=str(world.folder / "ext"))
    shutil.rmtree(place)
    with pytest.raises(ReplError, match=r"external table e is, is not there"):
        load_external(world)
    place.mkdir()
    load_external(world)
    world.dump(external_base=str(world.folder / "ext"))


# kinds of events


def event(kind: str, message: str = "{}") -> NotificationEvent:
    return NotificationEvent(
        id=EventId(7), time_seconds=1, type=kind, database_name="src", message=message
    )


@pytest.mark.parametrize("kind", ["CREATE_DATACONNECTOR", "ALTER_CATALOG", "WHATEVER_COMES_NEXT"])
def test_a_kind_that_nothing_carries_over_stops_the_dump_by_name(kind):
    writer = EventWriter(database_name="src", cm_root=None)
    with pytest.raises(ReplError, match=rf"event 7 \({kind}\).*add {kind} to"):
        writer.write(event(kind), EventPaths("/x"))
    lenient = EventWriter(database_name="src", cm_root=None, passed_kinds=frozenset({kind}))
    assert lenient.write(event(kind), EventPaths("/x")) is None


@pytest.mark.parametrize(
    "kind",
    ["RELOAD", "UPDATE_PART_COL_STAT_EVENT_BATCH", "REQUEST_COMPACTION", "FAIL_COMPACTION"],
)
def test_kinds_without_effect_are_left_out(kind):
    assert (
        EventWriter(database_name="src", cm_root=None).write(event(kind), EventPaths("/x")) is None
    )


# partitions that go under an open writer, without its lock


@pytest.fixture
def partitioned(world):
    world.create_table("part", is_partitioned=True)
    world.add_partition("part", "1")
    world.add_partition("part", "2")
    world.insert("part", (1, "x"), partition="p=1")
    world.insert("part", (2, "y"), partition="p=2")
    world.replicate()
    return world


@pytest.mark.parametrize("is_spanning", [False, True])
def test_a_partition_dropped_under_a_writer_stays_gone(partitioned, is_spanning):
    writer = partitioned.begin()
    writer.insert("part", [(3, "z")], "p=1")
    writer.insert("part", [(4, "w")], "p=2", statement=1)
    partitioned.source.drop_partitions("src", "part", ["p=1"])
    if is_spanning:
        partitioned.replicate()
    writer.commit()
    partitioned.replicate()
    partitioned.assert_same()
    assert partitioned.target.get_partition_names("dst", "part") == ("p=2",)
    assert sorted(read(partitioned, table="part")) == [2, 4]


def test_a_partition_renamed_under_a_writer_stops_the_dump(partitioned):
    """Its rows went along on the source, under the new name."""
    writer = partitioned.begin()
    writer.insert("part", [(3, "z")], "p=1")
    part = partitioned.source.get_partition("src", "part", ["1"])
    partitioned.source.rename_partition("src", "part", ["1"], replace(part, values=("9",)))
    writer.commit()
    with pytest.raises(ReplError, match=r"src\.part/p=1 was renamed, or dropped and made again"):
        partitioned.dump()


def test_a_partition_dropped_and_made_again_under_a_writer_stops_the_dump(partitioned):
    writer = partitioned.begin()
    writer.insert("part", [(3, "z")], "p=1")
    partitioned.source.drop_partitions("src", "part", ["p=1"])
    partitioned.add_partition("part", "1")
    writer.commit()
    with pytest.raises(ReplError, match=r"src\.part/p=1 was renamed, or dropped and made again"):
        partitioned.dump()


def test_a_partition_dropped_after_the_commit_is_loaded_and_dropped(partitioned):
    partitioned.insert("part", (3, "z"), partition="p=1")
    partitioned.add_partition("part", "3")
    partitioned.insert("part", (5, "v"), partition="p=3")
    partitioned.source.drop_partitions("src", "part", ["p=1"])
    partitioned.replicate()
    partitioned.assert_same()
    assert sorted(read(partitioned, table="part")) == [2, 5]


# overwritten with nothing


def overwrite_with_nothing(world, table: str, partition: str = "", *, is_reporting: bool) -> None:
    """As Hive does: a base of the write id without a file."""
    with world.transaction() as txn:
        write_id = txn.write_id(table)
        base = world.root(table, partition).child(f"base_{write_id:07d}")
        base.volume.make_directory(base.path)
        if is_reporting:
            tell_of_no_files(world, txn, write_id, table, partition)


def tell_of_no_files(world, txn, write_id, table: str, partition: str = "") -> None:
    world.source.add_write_notifications(
        [
            WriteNotification(
                txn_id=txn.id,
                write_id=write_id,
                database_name="src",
                table_name=table,
                partition_values=(partition.removeprefix("p="),) if partition else (),
                files=(),
                checksums=(),
                subdirectories=(),
            )
        ]
    )


@pytest.mark.parametrize("is_reporting", [False, True])
def test_a_table_that_was_overwritten_with_nothing_is_empty(world, is_reporting):
    world.replicate()
    overwrite_with_nothing(world, "t", is_reporting=is_reporting)
    assert read(world, "src") == []
    world.replicate()
    assert read(world) == []
    world.insert("t", (3, "c"))
    world.replicate()
    world.assert_same()
    assert read(world) == [3]


@pytest.mark.parametrize("is_reporting", [False, True])
def test_a_partition_that_was_overwritten_with_nothing_is_empty(partitioned, is_reporting):
    overwrite_with_nothing(partitioned, "part", "p=1", is_reporting=is_reporting)
    partitioned.replicate()
    partitioned.assert_same()
    assert read(partitioned, table="part") == [2]


@pytest.mark.parametrize("is_reporting", [False, True])
@pytest.mark.parametrize("is_followed", [False, True])
def test_an_overwrite_with_nothing_that_was_compacted_and_cleaned_is_seen(
    world, is_reporting, is_followed
):
    world.replicate()
    overwrite_with_nothing(world, "t", is_reporting=is_reporting)
    world.insert("t", (3, "c"))
    if not is_followed:
        with world.transaction() as txn:
            txn.delete("t", [3])
    world.compact("t", CompactionType.MAJOR)
    assert world.clean() >= 1
    assert not list(world.path("t").glob("base_0000002"))
    world.replicate()
    world.assert_same()
    assert read(world) == ([3] if is_followed else [])


@pytest.mark.parametrize("is_reporting", [False, True])
def test_a_partition_overwritten_with_nothing_compacted_and_cleaned_is_seen(
    partitioned, is_reporting
):
    overwrite_with_nothing(partitioned, "part", "p=1", is_reporting=is_reporting)
    partitioned.insert("part", (3, "z"), partition="p=1")
    partitioned.insert("part", (4, "w"), partition="p=2")
    for name in ("p=1", "p=2"):
        partitioned.compact("part", CompactionType.MAJOR, name)
    assert partitioned.clean() >= 2
    partitioned.replicate()
    partitioned.assert_same()
    assert sorted(read(partitioned, table="part")) == [2, 3, 4]


def rename_partition(world, old: str, new: str) -> None:
    """Without a lock: over thrift, as Spark and Trino do it."""
    part = world.source.get_partition("src", "part", [old])
    world.source.rename_partition("src", "part", [old], replace(part, values=(new,)))


@pytest.mark.parametrize("is_reporting", [False, True])
@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("is_made_again", [False, True])
def test_a_partition_that_was_overwritten_with_nothing_and_renamed_is_empty(
    partitioned, is_reporting, is_compacted, is_made_again
):
    """Seed 6212: under its old name there was nothing to be seen, and the replica kept the rows."""
    overwrite_with_nothing(partitioned, "part", "p=1", is_reporting=is_reporting)
    if is_compacted:
        partitioned.insert("part", (3, "z"), partition="p=1")
        partitioned.compact("part", CompactionType.MAJOR, "p=1")
        assert partitioned.clean() >= 1
    rename_partition(partitioned, "1", "7")
    rename_partition(partitioned, "7", "9")
    if is_made_again:
        partitioned.add_partition("part", "1")
        partitioned.insert("part", (5, "v"), partition="p=1")
    if is_compacted and not is_reporting:
        # The archive has what was cleaned under the old name.
        with pytest.raises(ReplError, match=r"write id 3 of src\.part .*--table-anew part"):
            partitioned.dump()
        return
    partitioned.replicate()
    partitioned.assert_same()
    assert sorted(read(partitioned, table="part")) == [
        2,
        *([3] if is_compacted else []),
        *([5] if is_made_again else []),
    ]


@pytest.mark.parametrize("is_reporting", [False, True])
def test_rows_of_a_partition_that_was_renamed_since_come_along(partitioned, is_reporting):
    writer = partitioned.begin()
    writer.is_reporting = is_reporting
    writer.insert("part", [(3, "z")], "p=1")
    writer.commit()
    rename_partition(partitioned, "1", "9")
    partitioned.add_partition("part", "1")
    partitioned.insert("part", (5, "v"), partition="p=1")
    partitioned.replicate()
    partitioned.assert_same()
    assert sorted(read(partitioned, table="part")) == [1, 2, 3, 5]


def test_an_overwrite_with_nothing_in_a_directory_that_is_not_there_stops_the_dump(partitioned):
    """A rename without a lock moves it first, and tells of it then."""
    overwrite_with_nothing(partitioned, "part", "p=1", is_reporting=True)
    partitioned.path("part", "p=1").rename(partitioned.path("part", "p=1").with_name("moved"))
    with pytest.raises(ReplError, match="renamed, or its directory is not there"):
        partitioned.dump()
    partitioned.path("part", "moved").rename(partitioned.path("part", "p=1"))
    partitioned.replicate()
    partitioned.assert_same()


def test_a_base_that_is_taken_away_while_it_is_read_is_not_taken_for_empty(world, monkeypatch):
    world.replicate()
    with world.transaction() as txn:
        tell_of_no_files(world, txn, txn.write_id("t"), "t")
    world.insert("t", (3, "c"))
    world.compact("t", CompactionType.MAJOR)
    world.clean()

    def cleaned_meanwhile(base):
        world.insert("t", (4, "d"))
        world.compact("t", CompactionType.MAJOR)
        assert world.clean() >= 1
        return oldest_row(base)

    with monkeypatch.context() as patched:
        patched.setattr("hms_bridge.repl.dump.table_writes.oldest_row", cleaned_meanwhile)
        with pytest.raises(ReplError, match=r"write id 2 of src\.t .*may have taken up"):
            world.dump()
    world.replicate()
    world.assert_same()
    assert sorted(read(world)) == [1, 2, 3, 4]


@pytest.mark.parametrize("is_reporting", [False, True])
def test_rows_of_before_say_that_a_write_without_files_overwrote_nothing(world, is_reporting):
    world.replicate()
    with world.transaction() as txn:
        write_id = txn.write_id("t")
        if is_reporting:
            tell_of_no_files(world, txn, write_id, "t")
    world.insert("t", (3, "c"))
    world.compact("t", CompactionType.MAJOR)
    assert world.clean() >= 1
    report = world.dump()
    assert not list(Path(report.directory.removeprefix("file:")).rglob("_hms_bridge_emptied"))
    world.load()
    world.assert_same()
    assert sorted(read(world)) == [1, 2, 3]


def as_of_hive(world, directory: str) -> None:
    """A dump without what only ours have: its manifest and the bases without a file."""
    hive = Path(directory.removeprefix("file:")) / "hive"
    for path in [*hive.rglob("_hms_bridge_*"), hive / "_finished_dump"]:
        path.unlink()
    (hive / "_finished_dump").touch()
    world.is_from_hive = True


@pytest.mark.parametrize("when", ["it stands", "rows of before", "nothing tells"])
def test_a_dump_of_a_hive_that_names_no_files_is_judged_by_the_sources_directory(world, when):
    world.replicate()
    if when == "rows of before":
        with world.transaction() as txn:
            tell_of_no_files(world, txn, txn.write_id("t"), "t")
    else:
        overwrite_with_nothing(world, "t", is_reporting=True)
    world.insert("t", (3, "c"))
    as_of_hive(world, str(world.dump().directory))
    if when != "it stands":
        world.compact("t", CompactionType.MAJOR)
        world.clean()
    if when == "nothing tells":
        with pytest.raises(ReplError, match=r"write id 2 of src\.t has no files.*EMPTY_WRITES"):
            world.load()
        return
    world.load()
    world.assert_same()


# managed tables without transactions


def plain_table(world, name: str, *, is_partitioned: bool = False):
    world.create_table(name, is_partitioned=is_partitioned, transactional="false")
    place = world.path(name)
    place.mkdir(parents=True, exist_ok=True)
    return place


def test_a_write_that_no_event_tells_stops_the_dump(world):
    place = plain_table(world, "plain")
    (place / "one").write_text("1")
    world.replicate()
    world.insert("t", (3, "c"))
    world.replicate()
    (place / "two").write_text("2")
    world.insert("t", (4, "d"))
    with pytest.raises(ReplError, match=r"a write to plain, .*add PLAIN_TABLES to"):
        world.dump()
    (place / "two").unlink()
    world.replicate()
    (place / "one").write_text("11")
    world.insert("t", (5, "e"))
    with pytest.raises(ReplError, match="a write to plain, "):
        world.dump()
    world.dump(events=IncrementalRules(passed_kinds=frozenset({"PLAIN_TABLES"})))


def test_a_write_after_a_table_or_partition_was_made_stops_the_dump(world):
    world.replicate()
    place = plain_table(world, "plain")
    world.insert("t", (3, "c"))
    world.replicate()
    plain_table(world, "more", is_partitioned=True)
    world.add_partition("more", "1")
    world.replicate()
    other = plain_table(world, "other")
    (other / "one").write_text("1")
    with pytest.raises(ReplError, match="a write to other, "):
        world.dump()
    (other / "one").unlink()
    (world.path("more", "p=1") / "one").write_text("1")
    with pytest.raises(ReplError, match="a write to more/p=1, "):
        world.dump()
    (world.path("more", "p=1") / "one").unlink()
    assert place.exists()
    world.replicate()
    assert world.target.get_tables("dst") == world.source.get_tables("src")


# refusals of the dump, and the order in which a load records


def plain_text(world, table: str) -> str:
    return table_to_json(replace(world.source.get_table("src", table), parameters={}))


def test_an_insert_into_a_managed_table_without_transactions_stops_the_dump(world):
    insert = json.dumps({"tableObjJson": plain_text(world, "t")})
    writer = EventWriter(database_name="src", cm_root=None)
    with pytest.raises(ReplError, match=r"src\.t.*managed but not transactional"):
        writer.write(event("INSERT", insert), EventPaths("/x"))


def test_a_table_that_is_converted_stops_the_dump(world):
    table = world.source.get_table("src", "t")
    external = replace(table, type=TableType.EXTERNAL_TABLE.value)
    by_property = replace(table, parameters={**table.parameters, "EXTERNAL": "TRUE"})
    writer = EventWriter(database_name="src", cm_root=None)
    for after in (plain_text(world, "t"), table_to_json(external), table_to_json(by_property)):
        message = {"tableObjBeforeJson": table_to_json(table), "tableObjAfterJson": after}
        with pytest.raises(ReplError, match=r"src\.t was converted"):
            writer.write(event("ALTER_TABLE", json.dumps(message)), EventPaths("/x"))


@pytest.mark.parametrize("name", ["rename", "drop and make again", "drop partition"])
def test_a_load_that_stops_at_a_change_of_names_goes_on(world, name):
    """What came before it may not be repeated: the names mean other objects then."""
    world.create_table("part", is_partitioned=True)
    world.add_partition("part", "1")
    world.replicate()
    world.insert("t", (3, "c"))
    if name == "rename":
        table = world.source.get_table("src", "t")
        world.source.alter_table("src", "t", replace(table, name="u"))
        world.create_table("t")
    elif name == "drop and make again":
        world.source.drop_table("src", "t")
        world.create_table("t")
    else:
        world.source.drop_partitions("src", "part", ["p=1"])
        world.add_partition("part", "1")
    world.insert("t", (4, "d"))
    world.dump()
    changes = ("alter_table", "drop_table", "drop_partitions", "create_table")
    for calls in (1, 2):
        loader = world.loader(Dying(world.target, calls, *changes))
        with pytest.raises(CrashError) if calls == 1 else suppress(CrashError):
            loader.run(loader.plan(world.load_request))
        world.clock.advance_ms(400_000)
    world.load()
    world.assert_same()
