"""Retention on the cluster: what a dump needs outlives it; what is lost by force is told by all."""

from __future__ import annotations

import time

import pytest

from integration.referees.cluster import Cluster, OurSide
from integration.referees.errors import StatementError
from integration.referees.hive42 import HiveSession
from integration.story.shop import ACID
from integration.story.sides import compact, load_into, places, rows_of

EXPIRED = ("--set", "hive.repl.cm.retain=1s")


def test_pins_keep_files_and_forced_loss_is_told(cluster: Cluster) -> None:
    side, hive, replica = cluster.ours, cluster.hive_on_ours.main, cluster.hive.main
    hive.sql("create database g_shop")
    hive.sql(f"create table g_shop.t (id int, v string) {ACID}")
    hive.sql("insert into g_shop.t values (1, 'a'), (2, 'b')")
    hive.sql("update g_shop.t set v = 'B' where id = 2")
    dump = side.told("repl", "dump", "g_shop")["dump_dir"]
    compact(side, hive, "g_shop.t compact 'major'")
    time.sleep(1.5)
    side.ok("cm", "purge", *EXPIRED)
    assert places(side, dump) == {"in CM": 3}
    load_into(replica, "g_shop", "g_replica", side.places.dumps)
    before = rows_of(replica, "g_replica")
    assert before == rows_of(hive, "g_shop")

    _lose_a_dump(side, hive)
    status = side.run("repl", "status", "g_shop", "--into", "g_replica",
                      "--metastore", cluster.first.uri)  # fmt: skip
    assert (status.exit_code, "lost 1 file" in status.err) == (1, True), status
    stands_at = replica.sql("repl status g_replica")
    load = side.run("repl", "load", "g_shop", "--into", "g_replica",
                    "--metastore", cluster.first.uri)  # fmt: skip
    assert load.exit_code == 1, load
    assert "Traceback" not in load.err
    assert replica.sql("repl status g_replica") == stands_at
    assert rows_of(replica, "g_replica") == before
    with pytest.raises(StatementError, match="missing from both source and cm path"):
        load_into(replica, "g_shop", "g_replica", side.places.dumps)

    _end_what_hive_left(replica)
    side.ok("repl", "dump", "g_shop", "--discard")
    replica.sql("drop database g_replica cascade")
    side.ok("repl", "dump", "g_shop", "--bootstrap")
    load_into(replica, "g_shop", "g_replica", side.places.dumps)
    assert rows_of(replica, "g_replica") == rows_of(hive, "g_shop")


def _lose_a_dump(side: OurSide, hive: HiveSession) -> None:
    """A dump whose one file is neither at its source nor, by force, in the archive."""
    hive.sql("insert into g_shop.t values (3, 'c')")
    dump = side.told("repl", "dump", "g_shop")["dump_dir"]
    compact(side, hive, "g_shop.t compact 'major'")
    pins = side.ok("cm", "pins", "--format", "jsonl").json_lines
    holders = [pin["holder"] for pin in pins if pin["database"] == "g_shop"]
    assert {holder.partition(":")[0] for holder in holders} == {"dump", "policy"}, pins
    side.ok("cm", "release", *holders)
    time.sleep(1.5)
    side.ok("cm", "purge", *EXPIRED)
    verify = side.run("repl", "verify", dump)
    assert (verify.exit_code, "1 missing" in verify.err) == (1, True), verify


def _end_what_hive_left(hive: HiveSession) -> None:
    """Hive's load that failed leaves its transaction open, which would stop Hive's cleaner."""
    header, *rows = hive.sql("show transactions")
    number, state = header.index("Transaction ID"), header.index("Transaction State")
    for row in rows:
        if row[state] == "OPEN":
            hive.sql(f"abort transactions {row[number]}")
