"""One load, or dump, of a database at a time; one that was killed does not stand in the way."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from hms_bridge.clock import SystemClock
from hms_bridge.connect import connected
from hms_bridge.errors import BusyError, ReplError
from hms_bridge.model.lock import (
    DataOperation,
    LockComponent,
    LockFilter,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
)
from hms_bridge.model.target import Scope
from hms_bridge.model.txn import OpenTxnsRequest
from hms_bridge.repl.lease import LeaseKind, LeaseRequest, LeaseRules, held_lease, lease_seen
from hms_bridge.repl.load.plan import LoadKind
from hms_bridge.repl.load.replica import Replica
from hms_bridge.session.holding_process import with_own_process
from tests.conformance import objects
from tests.support.served_metastore import served_metastore

_QUICK = LeaseRules(dead_after_seconds=0.6, heartbeat_seconds=0.2)


@pytest.fixture
def world(empty_world):
    empty_world.create_table("t")
    empty_world.insert("t", (1, "a"), (2, "b"))
    return empty_world


class Interrupted:
    """A metastore that does something of ours right before a call, once, and counts changes."""

    def __init__(self, store, name, action):
        self._store, self._name, self._action = store, name, action
        self.changes = []

    def __getattr__(self, name):
        method = getattr(self._store, name)

        def call(*args, **kwargs):
            if name == self._name and self._action is not None:
                action, self._action = self._action, None
                action()
            if not name.startswith(("get_", "show_", "unlock", "heartbeat")):
                self.changes.append(name)
            return method(*args, **kwargs)

        return call


def wanted(world, kind=LeaseKind.LOAD, told=None, rules=None):
    return LeaseRequest(
        kind=kind,
        database_name="dst" if kind is LeaseKind.LOAD else "src",
        user="ann",
        host="machine",
        rules=rules or world.load_request.lease,
        on_waiting=(told if told is not None else []).append,
    )


def leases(store, database="dst"):
    return [
        one
        for one in store.show_locks(LockFilter(scope=Scope(database)))
        if (one.scope.table or "").startswith("repl-")
    ]


def keep_alive(world, store, database="dst"):
    """While the other one waits, the holder's thread would beat."""

    def beat():
        world.clock.advance_ms(1)
        for one in leases(store, database)[:1]:
            store.heartbeat(0, one.lock_id)

    world.clock.on_sleep = beat


def test_two_loads_at_once_do_not_interleave(world):
    world.replicate()
    world.insert("t", (3, "c"))
    world.dump()
    second = world.loader()
    plan = second.plan(world.load_request)
    refused = []

    def load_too():
        keep_alive(world, world.target)
        with pytest.raises(ReplError, match="another repl load of database dst is at work") as told:
            second.run(plan)
        refused.append(str(told.value))

    target = Interrupted(world.target, "commit_txn", load_too)
    first = world.loader(target)
    report = first.run(first.plan(world.load_request))
    assert report.kind is LoadKind.INCREMENTAL
    assert "hive@localhost (hms-bridge repl load, process" in refused[0]
    assert " UTC" in refused[0]
    world.assert_same()
    assert not leases(world.target)
    assert world.load().kind is LoadKind.NOTHING


def test_a_policy_with_capitals_is_run_by_one_and_taken_over_from_a_dead_one(world):
    """Locks have their names in lower case: who looked for his own as it was given waited for
    ever."""
    run = replace(wanted(world, LeaseKind.RUN), database_name="Sales")
    held = held_lease(world.target, world.clock, run)
    held.__enter__()
    keep_alive(world, world.target, "sales")
    with (
        pytest.raises(BusyError, match="another repl run of policy Sales is at work"),
        held_lease(world.target, _ImpatientClock(world.clock), run),
    ):
        pass
    world.clock.on_sleep = lambda: None
    with held_lease(world.target, _ImpatientClock(world.clock), run):
        pass
    held.__exit__(None, None, None)


def test_who_is_alone_with_a_policy_is_called_by_its_own_verb(world):
    """A promotion and a cycle hold the same lease."""
    run = replace(wanted(world, LeaseKind.RUN), database_name="sales")
    with held_lease(world.target, world.clock, replace(run, doing="repl promote")):
        assert lease_seen(world.target, LeaseKind.RUN, "sales").doing == "repl promote"
        keep_alive(world, world.target, "sales")
        with (
            pytest.raises(BusyError, match="another repl promote of policy sales is at work"),
            held_lease(world.target, _ImpatientClock(world.clock), run),
        ):
            pass
    told = []
    world.clock.on_sleep = lambda: None
    own = with_own_process("hms-bridge repl policy remove")
    agent = re.sub(r":\d+\]", ":1]", own)
    component = LockComponent(
        type=LockType.EXCLUSIVE, level=LockLevel.TABLE, scope=Scope("sales", "repl-run"),
        operation=DataOperation.NO_TXN, is_transactional=False,
    )  # fmt: skip
    world.target.lock(LockRequest(components=(component,), user="ann", host="here", agent=agent))
    with held_lease(world.target, world.clock, replace(run, on_waiting=told.append)):
        pass
    assert told[0].startswith("another repl policy remove of policy sales was killed: ann@here")


def held_by_a_dead_one(world, agent=None):
    """What a load that was killed leaves."""
    killed = world.target.lock(
        LockRequest(
            components=(
                LockComponent(
                    type=LockType.EXCLUSIVE,
                    level=LockLevel.TABLE,
                    scope=Scope("dst", "repl-load"),
                    operation=DataOperation.NO_TXN,
                    is_transactional=False,
                ),
            ),
            user="ann",
            host="machine",
            **({} if agent is None else {"agent": agent}),
        )
    )
    assert killed.state is LockState.ACQUIRED


def held_by_another(world):
    """A load at work whose heartbeats the test gives, and its lock."""
    held = held_lease(world.target, world.clock, wanted(world))
    held.__enter__()
    (lock,) = leases(world.target)
    return held, lock.lock_id


@pytest.mark.parametrize("minutes", [5, -5, 60 * 24])
def test_a_step_of_the_time_takes_no_lease_from_a_living_holder(world, minutes):
    """Somebody sets the time, of this machine and of the metastore, between two looks."""
    held, lock_id = held_by_another(world)
    steps = iter([minutes * 60_000])
    began_ms = world.clock.steady_ms()

    def step_and_beat():
        world.clock.set_back_ms(-next(steps, 0))
        if world.clock.steady_ms() - began_ms > 10_000:
            world.target.heartbeat(0, lock_id)

    world.clock.on_sleep = step_and_beat
    with (
        pytest.raises(BusyError, match="is at work"),
        held_lease(world.target, _ImpatientClock(world.clock), wanted(world)),
    ):
        pass
    held.__exit__(None, None, None)


def test_a_step_of_the_metastores_clock_before_the_first_look_takes_no_lease(world):
    """The holder's heartbeat then looks old, and it is given time for the next one."""
    held, lock_id = held_by_another(world)
    world.clock.set_back_ms(-3_600_000)
    began_ms = world.clock.steady_ms()

    def beat_after_two_intervals():
        if world.clock.steady_ms() - began_ms > 20_000:
            world.target.heartbeat(0, lock_id)

    world.clock.on_sleep = beat_after_two_intervals
    with (
        pytest.raises(BusyError, match="is at work"),
        held_lease(world.target, _ImpatientClock(world.clock), wanted(world)),
    ):
        pass
    held.__exit__(None, None, None)


def test_an_outage_is_no_time_of_watching(world):
    """While the metastore does not answer, or this process stands still, the holder may not have
    come to beat either."""
    held, lock_id = held_by_another(world)
    events = iter([lambda: world.clock.advance_ms(600_000)])

    def outage_then_beat():
        next(events, lambda: world.target.heartbeat(0, lock_id))()

    world.clock.on_sleep = outage_then_beat
    with (
        pytest.raises(BusyError, match="is at work"),
        held_lease(world.target, _ImpatientClock(world.clock), wanted(world)),
    ):
        pass
    held.__exit__(None, None, None)


def test_one_that_is_dead_for_long_costs_a_short_wait_only(world):
    held_by_a_dead_one(world)
    world.clock.on_sleep = lambda: None
    patient = replace(wanted(world), rules=LeaseRules(dead_after_seconds=300))
    world.clock.advance_ms(3_600_000)
    began_ms = world.clock.steady_ms()
    with held_lease(world.target, world.clock, patient):
        assert world.clock.steady_ms() - began_ms < 70_000


def test_on_the_machine_of_a_killed_one_nobody_waits_for_its_silence(world):
    """Its process is gone: it waits for beats of work that may go on, and says so at once."""
    held_by_a_dead_one(world, agent=re.sub(r":\d+\]", ":1]", with_own_process("repl load")))
    told = []
    patient = wanted(world, told=told, rules=LeaseRules(dead_after_seconds=300))
    began_ms = world.clock.steady_ms()
    with held_lease(world.target, world.clock, patient):
        assert world.clock.steady_ms() - began_ms < 30_000
    (text,) = told
    assert re.search(r"ann@machine \(repl load, process \d+\) holds", text)
    assert "that process is gone. This one goes on in 20.0 s" in text


def test_where_the_metastores_clock_was_set_back_a_dead_one_gives_way_all_the_same(world):
    held_by_a_dead_one(world)
    world.clock.set_back_ms(3_600_000)
    with held_lease(world.target, _ImpatientClock(world.clock), wanted(world)):
        pass


def test_one_that_waits_and_is_taken_for_dead_itself_is_told_so(world):
    """The metastore's clock went forward: the holder beats, the request in line is gone."""
    world.replicate()
    with held_lease(world.target, world.clock, wanted(world)):

        def forgotten():
            for lock in leases(world.target)[1:]:
                world.target.unlock(lock.lock_id)

        world.clock.on_sleep = forgotten
        with (
            pytest.raises(ReplError, match=r"waited in vain.*Nothing was changed; repl load again"),
            held_lease(world.target, world.clock, wanted(world)),
        ):
            pytest.fail("two at once")


def test_a_time_that_is_set_back_during_the_watch_does_not_prolong_it(world):
    held_by_a_dead_one(world)
    steps = iter([3_600_000])
    world.clock.on_sleep = lambda: world.clock.set_back_ms(next(steps, 0))
    began_ms = world.clock.steady_ms()
    with held_lease(world.target, _ImpatientClock(world.clock), wanted(world)):
        assert world.clock.steady_ms() - began_ms < 70_000


@pytest.mark.parametrize("is_set_back", [True, False])
def test_a_holder_asks_after_its_lease_by_whichever_clock_went_on(world, is_set_back):
    """The time may be set back, and a steady clock stands still while a machine sleeps."""
    with held_lease(world.target, world.clock, wanted(world)) as lease:
        for lock in leases(world.target):
            world.target.unlock(lock.lock_id)
        lease.check()
        if is_set_back:
            world.clock.advance_ms(11_000)
            world.clock.set_back_ms(10_000)
        else:
            world.clock.set_back_ms(-11_000)
        with pytest.raises(ReplError, match="counts as dead"):
            lease.check()


class _ImpatientClock:
    """Gives up where somebody waits without end."""

    def __init__(self, clock):
        self._clock = clock
        self._end_ms = clock.steady_ms() + 3_600_000

    def now_ms(self):
        return self._clock.now_ms()

    def steady_ms(self):
        return self._clock.steady_ms()

    def sleep_seconds(self, seconds):
        assert self._clock.steady_ms() < self._end_ms
        self._clock.sleep_seconds(seconds)


def test_a_plan_from_before_another_load_is_refused(world):
    world.dump()
    late = world.loader()
    plan = late.plan(world.load_request)
    world.load()
    before = world.last_event()
    with pytest.raises(ReplError, match="plan the load again"):
        late.run(plan)
    assert world.last_event() == before
    assert not leases(world.target)


def test_a_plan_is_checked_again_once_the_lease_is_held(world):
    """The other load ends while this one waits for it."""
    world.replicate()
    world.insert("t", (3, "c"))
    world.dump()
    held = held_lease(world.target, world.clock, wanted(world))
    held.__enter__()
    late, other = world.loader(), world.loader()
    plan = late.plan(world.load_request)
    other_plan = other.plan(world.load_request)

    def other_ends():
        world.clock.on_sleep = lambda: None
        other._run(other_plan, lambda: None)
        held.__exit__(None, None, None)

    world.clock.on_sleep = other_ends
    with pytest.raises(ReplError, match="plan the load again"):
        late.run(plan)
    world.assert_same()


def test_after_a_kill_the_next_load_waits_and_goes_on_by_itself(world):
    world.dump()
    held_by_a_dead_one(world)
    world.clock.advance_ms(12_000)
    told = []
    load = world.loader(on_waiting=told.append)
    report = load.run(load.plan(world.load_request))
    assert report.kind is LoadKind.BOOTSTRAP
    (text,) = told
    assert "ann@machine" in text
    assert "no sign of life for 12.0 s" in text
    assert "goes on in 1 min 0 s at the latest" in text
    assert "typed on machine, this needs no waiting" in text
    world.assert_same()
    assert not leases(world.target)


@pytest.mark.parametrize("call", ["allocate_table_write_ids", "commit_txn", "alter_database"])
def test_a_load_that_lost_its_lease_writes_nothing_more(world, call):
    world.replicate()
    world.insert("t", (3, "c"))
    world.create_table("u")
    world.insert("u", (4, "d"))
    world.dump()
    stopped_at = []

    def lose():
        for one in leases(world.target):
            world.target.unlock(one.lock_id)
        world.clock.advance_ms(11_000)
        stopped_at.append(len(target.changes))

    target = Interrupted(world.target, call, lose)
    load = world.loader(target)
    with pytest.raises(ReplError, match="counts as dead"):
        load.run(load.plan(world.load_request))
    assert target.changes[stopped_at[0] :] == [call]
    world.load()
    world.assert_same()


def test_no_call_of_a_load_without_its_lease_reaches_the_replica(world):
    """Not even the first after it was lost, whatever the load looks at between its steps."""
    world.replicate()
    before = world.last_event()

    def lost():
        raise ReplError("counts as dead")

    target = Interrupted(world.target, "", None)
    replica = Replica(target, world.resolve, world.load_request.names, check_lease=lost)
    with pytest.raises(ReplError, match="counts as dead"):
        replica.set_parameters({"repl.last.id": str(int(before) + 1)})
    assert target.changes == []
    assert world.last_event() == before


def test_readers_and_writers_of_the_replica_do_not_wait_for_a_load(world):
    world.replicate()
    txn = world.replica.open()
    with held_lease(world.target, world.clock, wanted(world)):
        for table, kind, operation in (
            (None, LockType.SHARED_READ, DataOperation.SELECT),
            ("t", LockType.SHARED_WRITE, DataOperation.INSERT),
            ("t2", LockType.EXCLUSIVE, DataOperation.NO_TXN),
        ):
            wanted_lock = objects.component("dst", table, kind, operation)
            answer = world.target.lock(objects.request(wanted_lock, txn=txn))
            assert answer.state is LockState.ACQUIRED
    with held_lease(world.target, world.clock, wanted(world)):
        assert len(leases(world.target)) == 1


def test_a_database_that_is_locked_as_a_whole_is_left_alone(world):
    world.replicate()
    (txn,) = world.target.open_txns(OpenTxnsRequest(user="bob", host="h"))
    component = LockComponent(
        type=LockType.EXCLUSIVE,
        level=LockLevel.DB,
        scope=Scope("dst"),
        operation=DataOperation.NO_TXN,
    )
    world.target.lock(LockRequest(components=(component,), txn_id=txn, user="bob", host="h"))
    world.insert("t", (3, "c"))
    world.dump()
    with pytest.raises(ReplError, match="database dst is locked as a whole: bob@h"):
        world.load()
    assert not leases(world.target)


def test_the_last_event_is_never_set_back(world):
    world.replicate()
    last = int(world.last_event())
    replica = Replica(world.target, world.resolve, world.load_request.names)
    with pytest.raises(ReplError, match=f"stands at source event {last}, beyond {last - 1}"):
        replica.set_parameters({"repl.last.id": str(last - 1)})
    assert world.last_event() == str(last)


def test_two_dumps_at_once_do_not_interleave(world):
    """The second one would remove what the first has written so far."""
    second = world.dumper()
    plan = second.plan(world.dump_request())
    refused = []

    def dump_too():
        keep_alive(world, world.source, "src")
        with pytest.raises(ReplError, match="another repl dump of database src is at work") as told:
            second.run(plan)
        refused.append(told)

    world.dump(Interrupted(world.source, "commit_txn", dump_too))
    assert refused
    assert not leases(world.source, "src")
    world.load()
    world.assert_same()


def test_over_thrift_a_living_holder_refuses_and_a_dead_one_gives_way(tmp_path):
    told = []
    with served_metastore(tmp_path) as server, connected(server.uri) as store:
        request = LeaseRequest(
            kind=LeaseKind.LOAD,
            database_name="not_there_yet",
            user="ann",
            host="machine",
            rules=_QUICK,
            on_waiting=told.append,
        )
        with held_lease(store, SystemClock(), request) as lease:
            lease.check()
            with (
                pytest.raises(ReplError, match="is at work: ann@machine"),
                held_lease(store, SystemClock(), request),
            ):
                pass
        assert store.show_locks(LockFilter()) == ()
        component = LockComponent(
            type=LockType.EXCLUSIVE,
            level=LockLevel.TABLE,
            scope=Scope("not_there_yet", "repl-load"),
            operation=DataOperation.NO_TXN,
            is_transactional=False,
        )
        store.lock(LockRequest(components=(component,), user="killed", host="machine"))
        with held_lease(store, SystemClock(), request):
            (own,) = store.show_locks(LockFilter())
            assert own.user == "ann"
    assert "killed@machine" in told[-1]
