"""What schedules with promotions and failbacks found, reduced."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest

from hms_bridge.errors import BusyError, HmsBridgeError, MetaError, NoSuchTxnError, TxnAbortedError
from hms_bridge.model.ids import LockId, TxnId
from hms_bridge.model.lock import DataOperation, LockType
from hms_bridge.model.properties import LAST_EVENT
from hms_bridge.repl.handover import sides
from tests.simulation.cluster import Cluster, determined
from tests.simulation.foreign_worker import ForeignWorker
from tests.simulation.handovers import Handovers
from tests.simulation.readers import Readers
from tests.simulation.roles import Part
from tests.simulation.run import play, the_cluster
from tests.simulation.schedule import Kind, Step
from tests.simulation.scheduler import FOREVER, Actor
from tests.simulation.side import Side
from tests.simulation.statements import Statement

FENCED = "hms.bridge.repl.fenced"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with determined(0):
        yield begun(the_cluster())


def begun(cluster: Cluster) -> Cluster:
    """A source with rows that its replica has, too."""
    cluster.restart()
    cluster.roles.are_to_change = True
    clients = Readers(cluster)
    clients.insert_into("t", random.Random(1))
    clients.add_partitions("q", ["p=1"])
    clients.insert_into("q", random.Random(2))
    Handovers(cluster).run_policy(random.Random(1))
    return cluster


def spawn(cluster: Cluster, number: int, work: Callable[[], None]) -> Actor:
    return cluster.scheduler.spawn(number, f"actor {number}", work)


def points_until(actor: Actor, is_reached: Callable[[], bool]) -> int:
    """How many operations it takes."""
    count = 0
    while not is_reached():
        assert actor.is_alive, actor.error
        actor.resume(1)
        count += 1
    return count


def begin_write(cluster: Cluster, side: Side) -> Statement:
    """A client that has written at a side, and not committed."""
    found: list[Statement] = []

    def write() -> None:
        cluster.work_at(side)
        statement = Statement(cluster, random.Random(1), "t")
        statement.lock(LockType.SHARED_WRITE, DataOperation.INSERT, [""])
        statement.allocate()
        statement.insert(side.places("t")[""], "", [(77, "late")], 0)
        found.append(statement)

    actor = spawn(cluster, 90, write)
    actor.resume(FOREVER)
    assert actor.error is None, actor.error
    return found[0]


def commit_at(cluster: Cluster, side: Side, statement: Statement) -> BaseException | None:
    """What it is told."""

    def commit() -> None:
        cluster.work_at(side)
        statement.commit(DataOperation.INSERT)

    actor = spawn(cluster, 91, commit)
    actor.resume(FOREVER)
    return actor.error


@pytest.mark.parametrize("name", ["t", "q"])
def test_a_rename_on_a_replica_moves_nothing_before_it_is_refused(cluster, name):
    """I2: readers found an empty place until it was moved back, or for good after a kill."""
    side = cluster.second
    store, (place,) = side.metastore, side.places(name).values()

    def rename() -> None:
        if name == "t":
            store.alter_table("dst", "t", replace(store.get_table("dst", "t"), name="m"))
            return
        old = store.get_partition("dst", "q", ["1"])
        new = replace(old, values=("2",), storage=replace(old.storage, location=None))
        store.rename_partition("dst", "q", old.values, new)

    actor = spawn(cluster, 1, rename)
    while actor.is_alive:
        actor.resume(1)
        assert cluster.disk.find(place) is not None
    assert isinstance(actor.error, MetaError)
    assert "is a replica" in str(actor.error)


def test_who_begins_to_write_before_the_fence_is_aborted_by_a_promotion(cluster):
    """I1: the plan had seen nobody who writes, so nobody was aborted, and he committed to a source
    whose place was taken."""
    first = cluster.first

    def promote() -> Actor:
        return spawn(cluster, 1, Handovers(cluster)._promote)

    before = points_until(promote(), lambda: first.parameter(FENCED) is not None) - 1
    begun(cluster)
    actor = promote()
    actor.resume(before)
    assert first.parameter(FENCED) is None
    writer = begin_write(cluster, first)
    actor.resume(FOREVER)
    assert actor.error is None
    assert isinstance(commit_at(cluster, first, writer), TxnAbortedError | NoSuchTxnError)
    cluster.check()


def test_who_begins_to_write_before_the_fence_is_aborted_by_a_failback(cluster):
    """I11: he committed to a replica."""
    first = cluster.first

    def failback() -> Actor:
        handovers = Handovers(cluster)
        handovers._promote(is_source_lost=True)
        return spawn(cluster, 1, lambda: handovers._failback(is_discarded=True))

    before = points_until(failback(), lambda: first.parameter(FENCED) is not None) - 1
    begun(cluster)
    actor = failback()
    actor.resume(before)
    writer = begin_write(cluster, first)
    points_until(actor, lambda: first.parameter(LAST_EVENT) is not None)
    assert writer.id not in first.ledger.open, "it could commit to a replica"
    actor.resume(FOREVER)
    assert actor.error is None
    cluster.check()


def test_nobody_defines_anything_while_a_promotion_is_at_work(cluster):
    """The promotion's own lease, which keeps loads away, counted as that of a load."""
    handovers, side = Handovers(cluster), cluster.second
    actor = spawn(cluster, 1, lambda: handovers._promote(is_planned=True))
    points_until(actor, lambda: cluster.roles.part(side) is Part.LEAVING)
    with pytest.raises(MetaError, match="drop_table t: database dst"):
        side.metastore.drop_table("dst", "t")
    actor.resume(FOREVER)
    assert actor.error is None
    cluster.check()


def test_a_cancel_that_stood_still_lifts_no_fence_of_a_promotion_that_came_later(cluster):
    """I1: there were two sources. Once it has asked, it reads the source and alters it; what was
    read before the promotion is refused."""
    first, lifted, at = cluster.first, [], 0
    while True:
        begun(cluster)
        handovers = Handovers(cluster)
        opened = handovers._open_sides()
        assert opened.source is not None
        sides.fence(opened, opened.source)
        actor = spawn(cluster, 1, partial(handovers.cancel, random.Random(1)))
        actor.resume(at)
        if first.parameter(FENCED) is None:
            break
        cluster.clock.advance_ms(400_000)
        Handovers(cluster)._promote()
        actor.resume(FOREVER)
        if first.parameter(FENCED) is None:
            lifted.append(at)
        at += 1
    assert at > 6
    assert lifted in ([], [at - 2]), (lifted, at)


@pytest.mark.parametrize("is_late", [False, True])
def test_a_rebalance_that_began_before_does_not_end_on_a_replica(cluster, is_late):
    """I11: rows had other ids there than those that the new source deletes by."""
    first = cluster.first
    cluster.disk.sync_all()
    worker = ForeignWorker(cluster)

    def rebalance() -> None:
        cluster.work_at(first)
        worker.rebalance_as_hive(random.Random(1))

    actor = spawn(cluster, 1, rebalance)
    state = "SELECT CQ_STATE FROM COMPACTION_QUEUE"
    wanted = ("r",) if is_late else ("i",)
    points_until(actor, lambda: first.raw.execute(state).fetchone() == wanted)
    handovers = Handovers(cluster)
    handovers._promote()
    handovers._failback()
    actor.resume(FOREVER)
    assert isinstance(actor.error, HmsBridgeError), actor.error
    cluster.check()


def test_a_replay_that_a_killed_load_opened_is_ended(cluster):
    """I13: it has no write id yet, and no dump tells of it; the cleaner waited for it for days."""
    Readers(cluster).insert_into("t", random.Random(3))
    handovers, target = Handovers(cluster), cluster.second
    handovers.dump(random.Random(1))
    load = spawn(cluster, 1, lambda: handovers.load(random.Random(1)))
    opened = "SELECT COUNT(*) FROM TXNS WHERE TXN_STATE = 'o' AND TXN_TYPE = 1"
    points_until(load, lambda: target.raw.execute(opened).fetchone() == (1,))
    cluster.scheduler.kill(load)
    cluster.clock.advance_ms(400_000)
    handovers._promote(is_dump_left=True)
    assert target.raw.execute(opened).fetchone() == (0,)
    cluster.check()


def test_a_clock_that_is_set_back_keeps_no_promotion_waiting() -> None:
    """It waited for a writer of before a loss of power for two hours more (seed 433)."""
    steps = [
        Step(Kind.START, 2, "replicate", 24839805),
        Step(Kind.RUN, 2),
        Step(Kind.START, 4, "insert", 474745467),
        Step(Kind.RUN, 4, amount=3),
        Step(Kind.CUT, amount=83088283),
        Step(Kind.START, 7, "switch_over", 183919861),
        Step(Kind.RUN, 7, amount=97),
        Step(Kind.WAIT, amount=-7_200_000),
    ]
    assert play(433, steps) is None


def test_a_failback_that_has_yet_to_bring_a_table_is_not_promoted() -> None:
    """It was not there at all, so it did not count as half brought (seed 1229): the other side was
    closed, and nobody saw its rows any more."""
    steps = [
        Step(Kind.START, 2, "insert", 1042609881),
        Step(Kind.RUN, 2),
        Step(Kind.START, 3, "replicate", 1022050006),
        Step(Kind.RUN, 3),
        Step(Kind.START, 5, "promote_without", 151307841),
        Step(Kind.RUN, 5),
        Step(Kind.START, 7, "insert", 190006213),
        Step(Kind.RUN, 7),
        Step(Kind.START, 8, "work_there", 608176047),
        Step(Kind.RUN, 8, amount=18),
        Step(Kind.START, 9, "promote", 825011117),
        Step(Kind.RUN, 9),
        Step(Kind.START, 10, "failback", 36587426),
        Step(Kind.RUN, 10),
        Step(Kind.START, 11, "failback", 543569219),
        Step(Kind.RUN, 11),
        Step(Kind.START, 16, "promote", 222303739),
        Step(Kind.RUN, 16),
        Step(Kind.START, 17, "insert", 251560105),
    ]
    assert play(1229, steps) is None


@pytest.mark.parametrize("points", [1, 30, 70, 110, 150])
def test_no_promotion_overtakes_a_repair_that_lives(cluster: Cluster, points: int) -> None:
    """It would drop and load what has taken its source's place, or call it damaged (seed 448, where
    the model's repairs did not take the policy's lease)."""
    Readers(cluster).insert_into("t", random.Random(3))
    handovers = Handovers(cluster)
    repair = spawn(cluster, 1, lambda: handovers.repair(random.Random(1)))
    points_until(repair, lambda: _has_run_lease(cluster))
    repair.resume(points)
    is_at_work = repair.is_alive and _has_run_lease(cluster)
    cluster.clock.on_sleep = lambda: _beat(cluster, repair)
    promotion = spawn(cluster, 2, handovers._promote)
    promotion.resume(FOREVER)
    assert isinstance(promotion.error, BusyError) == is_at_work, promotion.error
    repair.resume(FOREVER)
    assert repair.error is None or not is_at_work, repair.error
    cluster.check()


def _beat(cluster: Cluster, actor: Actor) -> None:
    """It lives, and gives signs of it while another one waits."""
    with cluster.scheduler.atomic():
        for claim in list(cluster.owned.get(actor.name, ())):
            store = cluster.side(claim.side).metastore
            with suppress(HmsBridgeError):
                store.heartbeat(TxnId(claim.txn_id), LockId(claim.lock_id))


def _has_run_lease(cluster: Cluster) -> bool:
    query = "SELECT COUNT(*) FROM HIVE_LOCKS WHERE HL_TABLE = 'repl-run'"
    return bool(cluster.second.raw.execute(query).fetchone()[0])


def test_a_repair_that_counts_as_dead_finds_another_at_work(cluster: Cluster) -> None:
    """I11: it changes nothing any more, and is promised nothing."""
    Readers(cluster).insert_into("t", random.Random(3))
    handovers = Handovers(cluster)
    repair = spawn(cluster, 1, lambda: handovers.repair(random.Random(1)))
    points_until(repair, lambda: _has_run_lease(cluster))
    repair.resume(30)
    cluster.clock.advance_ms(400_000)
    promotion = spawn(cluster, 2, handovers._promote)
    promotion.resume(FOREVER)
    assert promotion.error is None, promotion.error
    repair.resume(FOREVER)
    assert repair.error is None or isinstance(repair.error, HmsBridgeError), repair.error
    cluster.check()
