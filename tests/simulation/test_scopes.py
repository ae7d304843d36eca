"""Schedules of scopes are judged by patterns that the product has no part in, and judge it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from hms_bridge.repl.dump import expiry
from hms_bridge.repl.format.directories import DumpState
from tests.simulation.clients import Clients
from tests.simulation.cluster import Cluster, determined
from tests.simulation.run import the_cluster
from tests.simulation.scope_admins import ScopeAdmins
from tests.simulation.scope_schedule import SCOPE_SCENES, SCOPE_WORKS
from tests.simulation.scopes import CHOICES, Patterns
from tests.simulation.side import DAY_MS
from tests.simulation.story import ViolationError


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """`t` and `q` have rows; `t` alone is replicated."""
    with determined(0):
        found = the_cluster()
        found.restart()
        found.wishes.is_used, found.wishes.patterns = True, Patterns("t|n")
        for table in ("t", "q"):
            Clients(found).add_partitions("q", ["p=1"])
            Clients(found).insert_into(table, random.Random(1))
        ScopeAdmins(found).replicate(random.Random(1))
        yield found


@pytest.mark.parametrize("patterns", CHOICES, ids=str)
def test_patterns_mean_to_python_what_they_mean_to_the_product(patterns: Patterns) -> None:
    scope = patterns.scope("src")
    assert (scope.included_pattern, scope.excluded_pattern) == (
        patterns.included,
        patterns.excluded,
    )
    for name in ("t", "q", "n", "m", "a", "b", "tt", "other"):
        assert scope.contains(name) == patterns.covers(name), name


def test_each_work_is_one_of_an_admin() -> None:
    for work in SCOPE_WORKS:
        assert callable(getattr(ScopeAdmins, work))
    assert {work for scene in SCOPE_SCENES.values() for work, _, _ in scene} >= {
        "change_scope",
        "set_limit",
        "expire",
        "drop_database",
        "load_drop",
    }


def test_a_table_outside_of_the_scope_is_seen(cluster: Cluster) -> None:
    assert cluster.second.table_ids().keys() == {"t"}
    assert cluster.is_replica_equal()
    assert cluster.loaded is not None
    cluster.loaded = replace(cluster.loaded, patterns=Patterns("t|q"))
    cluster.disk.version += 1
    with pytest.raises(ViolationError, match=r"the replica has \['t'\], not \['q', 't'\]"):
        cluster.check()


def test_the_replica_of_a_dropped_database_goes_if_it_is_said(cluster: Cluster) -> None:
    admins = ScopeAdmins(cluster)
    admins.drop_database(random.Random(1))
    cluster.check()
    admins.dump(random.Random(1))
    admins.load_drop(random.Random(1))
    assert not cluster.second.has_database()
    cluster.check()
    admins.create_database(random.Random(1))
    cluster.create_table("n", is_partitioned=False)
    Clients(cluster).insert_into("n", random.Random(2))
    admins.replicate(random.Random(1))
    cluster.check()
    assert cluster.second.table_ids().keys() == {"n"}
    assert cluster.is_replica_equal()


def test_a_limit_brings_the_replica_on_bit_by_bit(cluster: Cluster) -> None:
    admins, clients = ScopeAdmins(cluster), Clients(cluster)
    cluster.wishes.event_limit, cluster.wishes.is_limited = 2, True
    for seed in (3, 4, 5):
        clients.insert_into("t", random.Random(seed))
    rounds = 0
    while not cluster.is_replica_equal():
        admins.replicate(random.Random(1))
        cluster.check()
        rounds += 1
        assert rounds < 30
    assert rounds > 3


def test_a_dump_that_is_still_needed_and_expires_is_seen(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I5: the one that waits, and the last that was loaded, from which the next would go on."""
    admins, clients = ScopeAdmins(cluster), Clients(cluster)
    cluster.wishes.is_previous_kept = True
    clients.insert_into("t", random.Random(3))
    admins.dump(random.Random(1))
    first, second = cluster.dumps()
    assert [cluster.is_loaded(dump) for dump in (first, second)] == [True, False]
    cluster.clock.advance_ms(3 * DAY_MS)
    admins.expire(random.Random(1))
    assert cluster.dumps() == [first, second]
    for state in (DumpState.LOADED, DumpState.FINISHED):
        with monkeypatch.context() as patch:
            patch.setattr(
                expiry,
                "_kept_because",
                lambda dump, *_, wrong=state: "" if dump.state is wrong else "kept",
            )
            with pytest.raises(ViolationError, match="is expired, and may still be needed"):
                admins.expire(random.Random(1))
