"""What schedules found once, reduced: each lost something on the code of its day."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from hms_bridge.model.compaction import CompactionRequest, CompactionType
from tests.simulation.clients import Clients
from tests.simulation.cluster import Cluster, determined
from tests.simulation.daemons import Daemons
from tests.simulation.run import the_cluster


@pytest.fixture
def cluster():
    with determined(0):
        found = the_cluster()
        found.restart()
        yield found


@pytest.mark.parametrize("seed", range(4))
def test_a_renamed_table_is_where_its_rows_say_after_a_power_loss(cluster, seed):
    """I1: the catalog named the new directory for good, the disk did not."""
    Clients(cluster).insert_into("t", random.Random(1))
    assert cluster.model.tables["t"].partitions[""]
    cluster.disk.sync_all()
    tables = cluster.model.tables
    tables["renamed"] = tables.pop("t")
    table = cluster.source.metastore.get_table("src", "t")
    cluster.source.metastore.alter_table("src", "t", replace(table, name="renamed"))
    cluster.source.ledger.write_ids["src", "renamed"] = {}
    cluster.disk.cut_power(random.Random(seed))
    cluster.check()


def insert(cluster: Cluster, count: int) -> None:
    for seed in range(count):
        Clients(cluster).insert_into("t", random.Random(seed))


def compact(cluster: Cluster) -> None:
    """And so long ago that the cleaner may come."""
    cluster.source.metastore.compact(
        CompactionRequest(database_name="src", table_name="t", type=CompactionType.MAJOR)
    )
    Daemons(cluster).work(random.Random(1))
    cluster.clock.advance_ms(100_000)


def test_a_purge_keeps_what_an_unloaded_dump_names(cluster):
    """I5: however long the load is in coming."""
    daemons = Daemons(cluster)
    daemons.dump(random.Random(1))
    daemons.load(random.Random(1))
    insert(cluster, 3)
    compact(cluster)
    daemons.clean(random.Random(1))
    cluster.clock.advance_ms(100_000)
    daemons.dump(random.Random(1))
    archived = {path for path, file in cluster.disk.files("/cmroot") if file.data}
    assert len(archived) >= 3
    cluster.clock.advance_ms(400 * 86_400_000)
    daemons.purge(random.Random(1))
    cluster.check()
    daemons.load(random.Random(1))
    cluster.check()
    assert cluster.loaded is not None


def test_archived_files_survive_a_power_loss(cluster):
    """I4: the cleaner deletes for good, so what it archived is there for good."""
    daemons = Daemons(cluster)
    for seed in range(3):
        Clients(cluster).insert_into("t", random.Random(seed))
    store = cluster.source.metastore
    store.compact(CompactionRequest(database_name="src", table_name="t", type=CompactionType.MAJOR))
    daemons.work(random.Random(1))
    cluster.disk.sync_all()
    cluster.clock.advance_ms(100_000)
    daemons.clean(random.Random(1))
    before = {path for path, file in cluster.disk.files("/cmroot") if file.data}
    assert len(before) >= 3
    cluster.disk.cut_power(random.Random(4))
    assert {path for path, file in cluster.disk.files("/cmroot") if file.data} == before


def test_a_partition_that_comes_again_meets_no_rows_of_the_old_one(cluster):
    """I1: a drop that was killed after its commit, and the partition made again."""
    clients = Clients(cluster)
    clients.add_partitions("q", ["p=1"])
    clients.insert_into("q", random.Random(1))
    assert cluster.model.tables["q"].partitions["p=1"]
    actor = cluster.scheduler.spawn(1, "drop", lambda: clients.drop_partition(random.Random(1)))
    while "p=1" in cluster.model.tables["q"].partitions:
        actor.resume(1)
    cluster.scheduler.kill(actor)
    clients.add_partitions("q", ["p=1"])
    cluster.check()
