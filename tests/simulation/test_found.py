"""What schedules found once, reduced: each lost something on the code of its day."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.simulation.clients import Clients
from tests.simulation.cluster import Cluster, determined
from tests.simulation.run import the_cluster


@pytest.fixture
def cluster():
    with determined(0):
        found = the_cluster()
        found.restart()
        yield found


def insert(cluster: Cluster, table: str) -> None:
    """Rows that no power cut takes any more."""
    clients = Clients(cluster, has_empty_overwrites=False)
    while not any(cluster.model.tables[table].partitions.values()):
        clients.insert(random.Random(len(cluster.model.history)))
    cluster.disk.sync_all()


@pytest.mark.parametrize("seed", range(4))
def test_a_renamed_table_is_where_its_rows_say_after_a_power_loss(cluster, seed):
    """I1: the catalog named the new directory for good, the disk did not."""
    insert(cluster, "t")
    tables = cluster.model.tables
    tables["renamed"] = tables.pop("t")
    table = cluster.source.metastore.get_table("src", "t")
    cluster.source.metastore.alter_table("src", "t", replace(table, name="renamed"))
    cluster.source.ledger.write_ids["src", "renamed"] = {}
    cluster.disk.cut_power(random.Random(seed))
    cluster.check()
