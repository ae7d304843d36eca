"""REPL DUMP and REPL LOAD, one side real Hive 4.2, the other side ours."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pytest

from changemanager.location import FsspecResolver
from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.clock import SystemClock
from hms_bridge.model.compaction import CompactionType
from hms_bridge.repl.dump.plan import DumpReport, DumpRequest
from hms_bridge.repl.dump.repl_dump import ReplDump
from hms_bridge.repl.dump.snapshot_wait import WaitRules
from hms_bridge.repl.load.admission import SourcePlaces
from hms_bridge.repl.load.plan import LoadRequest
from hms_bridge.repl.load.repl_load import ReplLoad
from hms_bridge.service.open import open_local_metastore
from integration.referees.hive42 import Hive42
from integration.referees.java_metastore import JavaMetastore
from tests.support.repl_world import ReplWorld
from tests.support.table_rows import acid_rows

ACID = "stored as orc tblproperties('transactional'='true')"


@pytest.fixture
def source(tmp_path: Path):
    """A database in a metastore of ours, with the ChangeManager on."""
    world = ReplWorld(tmp_path)
    yield world
    world.close()


def _read(hive: Hive42, table: str, columns: str = "id, v") -> list[tuple[object, ...]]:
    rows = hive.main.sql(f"select row__id, {columns} from {table}")
    return sorted((*json.loads(row[0]).values(), *row[1:]) for row in rows)


def _ours(world: ReplWorld, table: str) -> list[tuple[object, ...]]:
    return sorted(
        (*row["row__id"], *(str(value) for name, value in row.items() if name != "row__id"))
        for row in world.rows(table)
    )


def _dump(world: ReplWorld) -> DumpReport:
    """For a Hive on a file system without checksums."""
    return world.dump(has_checksums=False)


def test_real_hive_loads_our_dumps(hive42: Hive42, source: ReplWorld) -> None:
    source.create_table("t")
    source.create_table("part", is_partitioned=True)
    source.create_table("dropped")
    source.add_partition("part", "1")
    source.insert("t", (1, "a"), (2, "b"))
    source.insert("part", (1, "x"), partition="p=1")
    lost = source.begin()
    lost.insert("t", [(9, "never")])
    lost.abort()
    _dump(source)
    hive = hive42.main
    load = f"repl load src into ours with('hive.repl.rootdir'='file://{source.repl_root}')"
    hive.sql(load)
    assert _read(hive42, "ours.t") == _ours(source, "t")
    assert _read(hive42, "ours.part", "id, v, p") == _ours(source, "part")

    source.update("t", (2, "B"))
    source.add_partition("part", "a b")
    with source.transaction() as txn:
        txn.insert("part", [(2, "y")], "p=a b")
        txn.insert("t", [(3, "c")], statement=1)
    source.source.drop_table("src", "dropped")
    source.create_table("made")
    source.insert("made", (5, "m"))
    report = _dump(source)
    hive.sql(load)
    assert hive.sql("repl status ours") == [(str(report.last_event_id),)]
    for table in ("t", "made"):
        assert _read(hive42, f"ours.{table}") == _ours(source, table)
    assert _read(hive42, "ours.part", "id, v, p") == _ours(source, "part")
    assert sorted(row[0] for row in hive.sql("show tables in ours")) == ["made", "part", "t"]

    hive.sql("insert into ours.t values (100, 'hive goes on')")
    assert len(hive.sql("select * from ours.t")) == 4


def test_real_hive_loads_what_we_compacted(hive42: Hive42, source: ReplWorld) -> None:
    source.create_table("t")
    source.insert("t", (1, "a"), (2, "b"))
    source.update("t", (2, "B"))
    source.compact("t", CompactionType.MAJOR)
    source.clean()
    source.insert("t", (3, "c"))
    _dump(source)
    root = f"file://{source.repl_root}"
    hive42.main.sql(f"repl load src into compacted with('hive.repl.rootdir'='{root}')")
    assert _read(hive42, "compacted.t") == _ours(source, "t")


def test_we_load_real_hives_dumps(hive42: Hive42, tmp_path: Path) -> None:
    """On a file system without checksums Hive's lines name neither checksum nor archive."""
    hive = hive42.main
    root = tmp_path / "repl"
    dump = f"repl dump origin with('hive.repl.rootdir'='file://{root}')"
    hive.sql("create database origin with dbproperties('repl.source.for'='policy')")
    hive.sql(f"create table origin.t (id int, v string) {ACID}")
    hive.sql(f"create table origin.part (id int) partitioned by (p string) {ACID}")
    hive.sql("insert into origin.t values (1, 'a'), (2, 'b')")
    hive.sql("insert into origin.part values (1, 'x'), (2, 'y z')")
    hive.sql(dump)
    target = open_local_metastore(
        f"sqlite:///{tmp_path}/target.db3", warehouse=str(tmp_path / "target")
    )
    resolve = FsspecResolver()
    loader = ReplLoad(target, resolve)
    request = LoadRequest(
        root=str(root), source_database="origin", target_database="replica",
        roots=(str(hive42.warehouse), str(hive42.change_manager_root)), is_from_hive=True,
    )  # fmt: skip
    loader.run(loader.plan(request))
    _same(hive42, target, resolve)

    hive.sql("update origin.t set v = 'B' where id = 2")
    hive.sql("merge into origin.t t using (select 1 as id) s on t.id = s.id "
             "when matched then delete")  # fmt: skip
    hive.sql("insert into origin.part values (3, 'x'), (4, 'new')")
    hive.sql("alter table origin.part drop partition (p = 'y z')")
    hive.sql(f"create table origin.ctas {ACID} as select * from origin.t")
    hive.sql("truncate table origin.t")
    hive.sql("insert into origin.t values (7, 'after')")
    hive.sql(dump)
    loader.run(loader.plan(request))
    _same(hive42, target, resolve)
    target.close()


def test_we_load_tables_that_real_hive_brings_whole(hive42: Hive42, tmp_path: Path) -> None:
    """`_bootstrap/` within an incremental dump: in the place of what the replica has."""
    hive = hive42.main
    root = tmp_path / "repl"
    dump = f"repl dump whole_origin with('hive.repl.rootdir'='file://{root}'"
    hive.sql("create database whole_origin with dbproperties('repl.source.for'='policy')")
    hive.sql(f"create table whole_origin.t (id int, v string) {ACID}")
    hive.sql(f"create table whole_origin.part (id int) partitioned by (p string) {ACID}")
    hive.sql("insert into whole_origin.t values (1, 'a'), (2, 'b')")
    hive.sql("insert into whole_origin.part values (1, 'x')")
    hive.sql(f"{dump})")
    target = open_local_metastore(
        f"sqlite:///{tmp_path}/target.db3", warehouse=str(tmp_path / "target")
    )
    resolve = FsspecResolver()
    loader = ReplLoad(target, resolve)
    request = LoadRequest(
        root=str(root), source_database="whole_origin", target_database="replica",
        roots=(str(hive42.warehouse), str(hive42.change_manager_root)), is_from_hive=True,
    )  # fmt: skip
    loader.run(loader.plan(request))

    hive.sql("insert into whole_origin.t values (3, 'c')")
    hive.sql("insert into whole_origin.part values (2, 'y')")
    for file in (tmp_path / "target").rglob("bucket_*"):
        file.unlink()
    hive.sql(f"{dump}, 'hive.repl.bootstrap.acid.tables'='true')")
    report = loader.run(loader.plan(request))
    assert set(report.tables) == {"t", "part"}
    _same(hive42, target, resolve, "whole_origin")

    hive.sql("delete from whole_origin.t where id = 1")
    hive.sql("insert into whole_origin.part values (3, 'x')")
    hive.sql(f"{dump})")
    loader.run(loader.plan(request))
    _same(hive42, target, resolve, "whole_origin")
    target.close()


def test_we_dump_from_and_load_into_a_real_metastore(
    hive42: Hive42, hive42_metastore: JavaMetastore, tmp_path: Path
) -> None:
    """Both sides are real Hive's metastore, over thrift; only dump and load are ours."""
    hive = hive42.main
    hive.sql("create database remote")
    hive.sql(f"create table remote.t (id int, v string) {ACID}")
    hive.sql(f"create table remote.part (id int, v string) partitioned by (p string) {ACID}")
    hive.sql("insert into remote.t values (1, 'a'), (2, 'b')")
    hive.sql("insert into remote.part values (1, 'x', 'one')")
    metastore = ThriftMetastoreClient(hive42_metastore.uri)
    resolve = FsspecResolver()
    dumper = ReplDump(metastore, resolve, SystemClock(), lambda: uuid4().hex)
    dump = DumpRequest(
        root=str(tmp_path / "repl"),
        database="remote",
        cm_root=f"file:{hive42.change_manager_root}",
        wait=WaitRules(timeout_seconds=30),
    )
    load = LoadRequest(root=dump.root, source_database="remote", target_database="far")
    places = SourcePlaces(metastore=metastore, cm_root=dump.cm_root)
    loader = ReplLoad(metastore, resolve, source=places)
    dumper.run(dumper.plan(dump))
    loader.run(loader.plan(load))
    for table, columns in (("t", "id, v"), ("part", "id, v, p")):
        assert _read(hive42, f"far.{table}", columns) == _read(hive42, f"remote.{table}", columns)

    hive.sql("update remote.t set v = 'B' where id = 2")
    hive.sql("insert into remote.part values (2, 'y', 'two'), (3, 'z', 'one')")
    hive.sql("alter table remote.t compact 'major'")
    hive.run("Worker")
    hive.sql(f"create table remote.later {ACID} as select * from remote.t")
    dumper.run(dumper.plan(dump))
    loader.run(loader.plan(load))
    for table, columns in (("t", "id, v"), ("part", "id, v, p"), ("later", "id, v")):
        assert _read(hive42, f"far.{table}", columns) == _read(hive42, f"remote.{table}", columns)
    metastore.close()


def test_real_hive_follows_our_dumps_over_its_renames_and_drops(
    hive42: Hive42, hive42_metastore: JavaMetastore, tmp_path: Path
) -> None:
    """ALTER TABLE … RENAME and DROP TABLE take a write id in a transaction of their own.

    Hive archives what it renames, and stops at a name that its archive has already where the file
    system has no checksums: so one delta, renamed once, into an empty archive.
    """
    hive = hive42.main
    hive.sql("create database renaming")
    hive.sql(f"create table renaming.t (id int, v string) {ACID}")
    hive.sql(f"create table renaming.gone (id int, v string) {ACID}")
    hive.sql("insert into renaming.t values (1, 'a'), (2, 'b')")
    metastore = ThriftMetastoreClient(hive42_metastore.uri)
    dumper = ReplDump(metastore, FsspecResolver(), SystemClock(), lambda: uuid4().hex)
    request = DumpRequest(
        root=str(tmp_path / "repl"),
        database="renaming",
        has_checksums=False,
        wait=WaitRules(timeout_seconds=30),
    )
    load = f"repl load renaming into renamed with('hive.repl.rootdir'='file://{request.root}')"
    dumper.run(dumper.plan(request))
    hive.sql(load)
    archive = Path(hive42.change_manager_root)
    if archive.exists():
        archive.rename(tmp_path / "older archive")
    archive.mkdir(parents=True)
    hive.sql("alter table renaming.t rename to renaming.t2")
    hive.sql("insert into renaming.t2 values (3, 'c')")
    hive.sql("drop table renaming.gone")
    dumper.run(dumper.plan(request))
    hive.sql(load)
    assert _read(hive42, "renamed.t2") == _read(hive42, "renaming.t2")
    hive.sql("update renaming.t2 set v = 'B' where id = 2")
    report = dumper.run(dumper.plan(request))
    hive.sql(load)
    assert hive.sql("repl status renamed") == [(str(report.last_event_id),)]
    assert _read(hive42, "renamed.t2") == _read(hive42, "renaming.t2")
    assert [row[0] for row in hive.sql("show tables in renamed")] == ["t2"]
    metastore.close()


def _same(hive42: Hive42, target, resolve, source: str = "origin") -> None:
    tables = sorted(row[0] for row in hive42.main.sql(f"show tables in {source}"))
    assert list(target.get_tables("replica")) == tables
    for table in tables:
        columns = "id, p" if table == "part" else "id, v"
        ours = sorted(
            (*row["row__id"], *(str(value) for name, value in row.items() if name != "row__id"))
            for row in acid_rows(target, resolve, "replica", table)
        )
        assert ours == _read(hive42, f"{source}.{table}", columns), table
