"""The main job where users live: HDFS with permissions, PostgreSQL, real Hive 4.2 as another user.

What is compared is always rows with ROW__IDs, read by real Hive on both sides.
"""

from __future__ import annotations

from integration.referees.cluster import Cluster, OurSide
from integration.referees.hive42 import HiveSession
from integration.story.shop import ACID, first_day, open_shop, second_day, third_day
from integration.story.sides import compact, load_into, places, rows_of

SOURCE = "with dbproperties('repl.source.for'='policy')"


def _listed(cluster: Cluster, side: OurSide, below: str) -> list[str]:
    """Names of directories below one of a side's warehouse."""
    lines = cluster.hdfs.shell("-ls", f"{side.places.path}/warehouse/{below}").splitlines()
    return sorted(line.rpartition("/")[2] for line in lines if "/" in line)


def _dump(side: OurSide, database: str, *more: str) -> str:
    told = side.told("repl", "dump", database, *more)
    assert told["kind"] in {"bootstrap", "incremental"}, told
    return str(told["dump_dir"])


def test_real_hive_loads_our_dump_from_our_archive(cluster: Cluster) -> None:
    """Our dump, our compaction, our cleaner; then Hive's REPL LOAD, three times."""
    side, hive, replica = cluster.ours, cluster.hive_on_ours.main, cluster.hive.main
    open_shop(hive.sql, "a_shop")
    first_day(hive.sql, "a_shop")
    dump = _dump(side, "a_shop")
    north = "partition (day = '2026-03-01', shop = 'north')"
    compact(
        side, hive, "a_shop.orders compact 'major'", f"a_shop.visits {north} compact 'major'",
        "a_shop.stock compact 'minor'",
    )  # fmt: skip
    assert not [name for name in _listed(cluster, side, "a_shop.db/orders") if "delta" in name]
    found = places(side, dump)
    assert found["missing"] == 0
    assert found["in CM"] >= 6, found
    assert found["at source"] >= 2, found
    load_into(replica, "a_shop", "a_replica", side.places.dumps)
    assert rows_of(replica, "a_replica") == rows_of(hive, "a_shop")

    second_day(hive.sql, "a_shop")
    at_dump = rows_of(hive, "a_shop")
    dump = _dump(side, "a_shop")
    side.ok("sql", "-e", "INSERT INTO a_shop.visits VALUES (6, 'ours', DATE '2026-03-03', 'new')")
    hive.sql("delete from a_shop.orders where id = 9")
    compact(side, hive, "a_shop.orders compact 'major'", "a_shop.stock compact 'major'")
    assert places(side, dump)["in CM"] >= 4
    load_into(replica, "a_shop", "a_replica", side.places.dumps)
    assert rows_of(replica, "a_replica") == at_dump

    third_day(hive.sql, "a_shop")
    compact(side, hive, "a_shop.orders compact 'major'")
    _dump(side, "a_shop")
    load_into(replica, "a_shop", "a_replica", side.places.dumps)
    assert rows_of(replica, "a_replica") == rows_of(hive, "a_shop")
    status = side.told(
        "repl", "status", "a_shop", "--into", "a_replica", "--metastore", cluster.first.uri
    )
    assert (status["newest_dump_state"], status["missing_files"]) == ("loaded", 0)


def test_we_load_hives_dump_from_hives_archive(cluster: Cluster) -> None:
    """Hive's dump, worker, cleaner and archive; our load into our metastore."""
    side, hive, replica = cluster.ours, cluster.hive.main, cluster.hive_on_ours.main
    dumps = cluster.hive_places.dumps
    load = ("repl", "load", "b_shop", "--into", "b_replica", "--root", dumps, "--from-hive")
    open_shop(hive.sql, "b_shop", SOURCE)
    first_day(hive.sql, "b_shop")
    hive.sql("repl dump b_shop")
    hive.sql("alter table b_shop.orders compact 'major'")
    hive.sql("alter table b_shop.stock compact 'minor'")
    hive.run("Worker")
    hive.run("Cleaner")
    loaded = side.told(*load)
    assert loaded["files from the archive"] >= 4, loaded
    assert loaded["files from source"] >= 2, loaded
    assert rows_of(replica, "b_replica") == rows_of(hive, "b_shop")

    second_day(hive.sql, "b_shop")
    third_day(hive.sql, "b_shop")
    hive.sql("repl dump b_shop")
    expected = rows_of(hive, "b_shop")
    hive.sql("update b_shop.orders set item = 'after the dump' where id = 1")
    hive.sql("alter table b_shop.orders compact 'major'")
    hive.sql("alter table b_shop.precious compact 'major'")
    hive.run("Worker")
    hive.run("Cleaner")
    loaded = side.told(*load)
    assert loaded["files from the archive"] >= 4, loaded
    assert rows_of(replica, "b_replica") == expected
    assert side.told(*load)["kind"] == "nothing"


def test_between_two_real_metastores_and_hive_goes_on(cluster: Cluster) -> None:
    """Only dump and load are ours, over thrift; then Hive's REPL LOAD continues our replica."""
    side, hive, replica = cluster.ours, cluster.hive.main, cluster.hive_at_second
    root = f"{cluster.hive_places.dumps}-ours"
    cluster.hdfs.make_directory("/hive/dumps-ours", owner="hive", group="hadoop", mode="775")
    dump = (
        "repl", "dump", "c_shop", "--root", root, "--metastore", cluster.first.uri,
        "--set", f"hive.repl.cmrootdir={cluster.hive_places.cmroot}",
    )  # fmt: skip
    load = ("repl", "load", "c_shop", "--into", "c_replica", "--root", root,
            "--metastore", cluster.second.uri)  # fmt: skip
    open_shop(hive.sql, "c_shop", SOURCE)
    first_day(hive.sql, "c_shop")
    side.ok(*dump)
    hive.sql("alter table c_shop.orders compact 'major'")
    hive.run("Worker")
    hive.run("Cleaner")
    loaded = side.told(*load)
    assert loaded["files from the archive"] >= 3, loaded
    assert rows_of(replica, "c_replica") == rows_of(hive, "c_shop")

    second_day(hive.sql, "c_shop")
    side.ok(*dump)
    expected = rows_of(hive, "c_shop")
    hive.sql("alter table c_shop.stock compact 'major'")
    hive.run("Worker")
    hive.run("Cleaner")
    side.ok(*load)
    assert rows_of(replica, "c_replica") == expected

    third_day(hive.sql, "c_shop")
    side.ok(*dump)
    load_into(replica, "c_shop", "c_replica", root)
    assert rows_of(replica, "c_replica") == rows_of(hive, "c_shop")


class TestSeed:
    """The three intervals between dump and load that operators are told about."""

    def test_compaction_after_the_dump(self, cluster: Cluster) -> None:
        hive = _small(cluster, "seed_a")
        dump = _dump(cluster.ours, "seed_a")
        compact(cluster.ours, hive, "seed_a.t compact 'major'")
        assert places(cluster.ours, dump) == {"in CM": 3, "at source": 1}
        _loaded_is(cluster, "seed_a", _rows(cluster, "seed_a"))

    def test_writes_and_compaction_after_the_dump(self, cluster: Cluster) -> None:
        """The deltas of the dump are loaded from the archive, not the new base."""
        hive = _small(cluster, "seed_b")
        _dump(cluster.ours, "seed_b")
        _loaded_is(cluster, "seed_b", _rows(cluster, "seed_b"))
        hive.sql("insert into seed_b.t values (4, 'd')")
        hive.sql("update seed_b.t set v = 'B' where id = 2")
        expected = _rows(cluster, "seed_b")
        dump = _dump(cluster.ours, "seed_b")
        hive.sql("delete from seed_b.t where id = 1")
        hive.sql("update seed_b.t set v = 'late' where id = 4")
        compact(cluster.ours, hive, "seed_b.t compact 'major'")
        assert places(cluster.ours, dump) == {"in CM": 3}
        _loaded_is(cluster, "seed_b", expected)
        _dump(cluster.ours, "seed_b")
        _loaded_is(cluster, "seed_b", _rows(cluster, "seed_b"))

    def test_compaction_before_an_incremental_dump(self, cluster: Cluster) -> None:
        """Its events name deltas that are only in the archive from the first."""
        hive = _small(cluster, "seed_bb")
        _dump(cluster.ours, "seed_bb")
        _loaded_is(cluster, "seed_bb", _rows(cluster, "seed_bb"))
        hive.sql("update seed_bb.t set v = 'B' where id = 2")
        compact(cluster.ours, hive, "seed_bb.t compact 'major'")
        dump = _dump(cluster.ours, "seed_bb")
        assert places(cluster.ours, dump) == {"in CM": 2}
        _loaded_is(cluster, "seed_bb", _rows(cluster, "seed_bb"))

    def test_compaction_that_moves_no_file_of_the_dump(self, cluster: Cluster) -> None:
        """A base is made of another table and of another partition; the archive is not read."""
        hive = _small(cluster, "seed_c")
        compact(cluster.ours, hive, "seed_c.t compact 'major'")
        dump = _dump(cluster.ours, "seed_c")
        expected = _rows(cluster, "seed_c")
        hive.sql(f"create table seed_c.later (id int) {ACID}")
        hive.sql("insert into seed_c.later values (1)")
        hive.sql("insert into seed_c.later values (2)")
        compact(cluster.ours, hive, "seed_c.later compact 'major'")
        assert any(n.startswith("base_") for n in _listed(cluster, cluster.ours, "seed_c.db/later"))
        assert places(cluster.ours, dump) == {"at source": 2}
        _loaded_is(cluster, "seed_c", expected)


def _small(cluster: Cluster, database: str) -> HiveSession:
    """A table with three deltas and a delete delta, another with one, on our metastore."""
    hive = cluster.hive_on_ours.main
    hive.sql(f"create database {database}")
    hive.sql(f"create table {database}.t (id int, v string) {ACID}")
    hive.sql(f"create table {database}.still (id int) {ACID}")
    hive.sql(f"insert into {database}.t values (1, 'a'), (2, 'b')")
    hive.sql(f"insert into {database}.t values (3, 'c')")
    hive.sql(f"delete from {database}.t where id = 3")
    hive.sql(f"insert into {database}.still values (1)")
    return hive


def _rows(cluster: Cluster, database: str) -> object:
    return rows_of(cluster.hive_on_ours.main, database)


def _loaded_is(cluster: Cluster, database: str, expected: object) -> None:
    """Real Hive loads, and finds there what the source had."""
    replica = cluster.hive.main
    load_into(replica, database, f"{database}_replica", cluster.ours.places.dumps)
    assert rows_of(replica, f"{database}_replica") == expected
