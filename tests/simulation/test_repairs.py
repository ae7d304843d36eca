"""A repair on the simulated cluster: killed at any operation, and asked for again."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.simulation.clients import Clients
from tests.simulation.cluster import Cluster, determined
from tests.simulation.foreign_worker import ForeignWorker
from tests.simulation.repairs import Repairs
from tests.simulation.run import the_cluster
from tests.simulation.scheduler import FOREVER


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """`t` has rows, is on the replica, and was rebalanced since by a Hive."""
    with determined(0):
        found = the_cluster()
        found.restart()
        for seed in (1, 2, 3):
            Clients(found).insert_into("t", random.Random(seed))
        Repairs(found).replicate(random.Random(1))
        ForeignWorker(found).rebalance_as_hive(random.Random(1))
        yield found


@pytest.mark.parametrize("points", range(20, 420, 40))
def test_a_repair_that_was_killed_is_ended_by_the_next(cluster: Cluster, points: int) -> None:
    """I11: each row has its id of the source afterwards, whatever the first one had done."""
    repairs = Repairs(cluster)
    actor = cluster.scheduler.spawn(1, "repair", lambda: repairs.repair(random.Random(1)))
    actor.resume(points)
    cluster.check()
    cluster.scheduler.kill(actor)
    cluster.clock.advance_ms(400_000)
    again = cluster.scheduler.spawn(2, "repair", lambda: repairs.repair(random.Random(2)))
    again.resume(FOREVER)
    assert again.error is None, again.error
    cluster.check()
    assert cluster.is_replica_equal()
