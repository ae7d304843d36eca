"""Cycles of a policy: what they bring, and what becomes of them when something fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from changemanager.manifest import PinKind
from hms_bridge.errors import BusyError, MetastoreUnavailableError, ReplError
from hms_bridge.model.lock import (
    DataOperation,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
)
from hms_bridge.model.replication import CycleOutcome, PolicySide, ReplicationPolicy
from hms_bridge.model.target import Scope
from hms_bridge.repl.cycles.cycle import OpenCycle
from hms_bridge.repl.cycles.runner import Runner
from hms_bridge.repl.lease import LeaseKind, LeaseRequest, held_lease
from hms_bridge.repl.pinned_dumps import release_loaded_dumps
from tests.support.passing import Interrupted
from tests.support.repl_world import LEASE, ReplWorld

POLICY = ReplicationPolicy(
    name="sales",
    root="dumps",
    source=PolicySide(metastore="source", database="src"),
    target=PolicySide(database="dst"),
)


class Cycles:
    """A runner over both sides of a world, which counts how often they were opened.

    ``before`` is called before each attempt with its number."""

    def __init__(self, world: ReplWorld) -> None:
        self.world = world
        self.opened = 0
        self.policy = POLICY
        self.told: list[str] = []
        self.before = lambda attempt: None
        self.target: Any = world.target
        world.target.policies.add_policies([POLICY])
        self.runner = Runner(
            metastore=world.target,
            store=world.target.policies,
            open_cycle=self._open,
            clock=world.clock,
            user="ann",
            host="here",
            lease=LEASE,
            say=self.told.append,
        )

    @contextmanager
    def _open(self, policy: ReplicationPolicy) -> Iterator[OpenCycle]:
        assert policy == self.policy
        self.opened += 1
        self.before(self.opened)
        world = self.world
        yield OpenCycle(
            dumper=world.dumper(),
            loader=world.loader(self.target),
            dump=world.dump_request(),
            load=world.load_request,
            release=lambda: release_loaded_dumps(world.resolve, world.source.manifest),
        )

    def run(self) -> Any:
        self.world.clock.advance_ms(1000)
        return self.runner.run(POLICY)

    @property
    def outcomes(self) -> list[str]:
        """Oldest first."""
        found = self.world.target.policies.get_cycles("sales")
        return [cycle.result.outcome.value for cycle in reversed(found)]


@pytest.fixture
def cycles(world: ReplWorld) -> Cycles:
    return Cycles(world)


def dump_pins(world: ReplWorld) -> list[str]:
    return [pin.holder for pin in world.source.manifest.pins() if pin.kind is PinKind.DUMP]


def test_the_first_cycle_brings_all_and_the_next_what_is_new(
    cycles: Cycles, world: ReplWorld
) -> None:
    first = cycles.run()
    assert (first.outcome, first.dump_kind) == (CycleOutcome.REPLICATED, "bootstrap")
    assert (first.file_count, first.attempt_count) == (1, 1)
    assert first.byte_count > 0
    world.insert("t", (2, "b"))
    second = cycles.run()
    assert (second.outcome, second.dump_kind) == (CycleOutcome.REPLICATED, "incremental")
    assert second.event_count > 0
    world.assert_same()
    assert str(second.until_event_id) == world.last_event()
    third = cycles.run()
    assert (third.outcome, third.event_count, third.byte_count) == (CycleOutcome.NOTHING_NEW, 0, 0)
    assert cycles.outcomes == ["replicated", "replicated", "nothing new"]


def test_what_a_loaded_dump_held_may_go_at_once(cycles: Cycles, world: ReplWorld) -> None:
    world.dump()
    assert dump_pins(world)
    cycles.run()
    assert dump_pins(world) == []


def test_a_dump_that_nobody_loaded_is_loaded_first(cycles: Cycles, world: ReplWorld) -> None:
    """A cycle that was killed between dump and load."""
    world.dump()
    world.insert("t", (2, "b"))
    result = cycles.run()
    assert (result.outcome, result.file_count) == (CycleOutcome.REPLICATED, 2)
    world.assert_same()


def test_events_of_others_are_nothing_new(cycles: Cycles, world: ReplWorld) -> None:
    cycles.run()
    world.commit(world.open())
    assert cycles.run().outcome is CycleOutcome.NOTHING_NEW


def test_a_failure_is_a_result_that_says_why(cycles: Cycles, world: ReplWorld) -> None:
    cycles.run()
    world.target.drop_database("dst", is_cascade=True)
    result = cycles.run()
    assert result.outcome is CycleOutcome.FAILED
    assert "dst" in (result.message or "")
    assert (cycles.opened, cycles.outcomes) == (2, ["replicated", "failed"])


def test_what_passes_by_itself_is_tried_again(cycles: Cycles, world: ReplWorld) -> None:
    def before(attempt: int) -> None:
        if attempt < 3:
            raise MetastoreUnavailableError("thrift://source:9083 does not answer")

    cycles.before = before
    began_ms = world.clock.now_ms()
    result = cycles.run()
    assert (result.outcome, result.attempt_count) == (CycleOutcome.REPLICATED, 3)
    assert "does not answer; attempt 2 of 5 follows" in cycles.told[0]
    assert world.clock.now_ms() - began_ms >= 10_000  # five seconds at least, then more
    world.assert_same()


def test_what_does_not_pass_ends_as_a_failure(cycles: Cycles) -> None:
    def before(attempt: int) -> None:
        raise MetastoreUnavailableError("thrift://source:9083 does not answer")

    cycles.before = before
    result = cycles.run()
    assert (result.outcome, result.attempt_count) == (CycleOutcome.FAILED, 5)
    assert cycles.outcomes == ["failed"]


def test_a_storage_that_fails_is_tried_again_and_a_bad_state_is_not(cycles: Cycles) -> None:
    def before(attempt: int) -> None:
        if attempt == 1:
            raise ReplError("the replica cannot be reached") from OSError("timed out")
        raise ReplError("the replica is not compatible")

    cycles.before = before
    result = cycles.run()
    assert (result.outcome, result.attempt_count) == (CycleOutcome.FAILED, 2)
    assert result.message == "the replica is not compatible"


@pytest.mark.parametrize("is_below", [False, True])
def test_a_root_that_is_a_file_or_below_one_is_tried_once(
    cycles: Cycles, world: ReplWorld, is_below: bool
) -> None:
    """It stays one, however often it is tried."""
    world.repl_root.write_text("a file")
    if is_below:
        world.repl_root /= "below"
    result = cycles.run()
    assert (result.outcome, result.attempt_count) == (CycleOutcome.FAILED, 1)
    assert "Not a directory" in (result.message or "")


def test_a_stop_is_written_down_and_gone_on_with(cycles: Cycles, world: ReplWorld) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    cycles.target = Interrupted(world.target, stop, before="create_table")
    with pytest.raises(KeyboardInterrupt):
        cycles.run()
    assert cycles.outcomes == ["interrupted"]
    cycles.target = world.target
    assert cycles.run().outcome is CycleOutcome.REPLICATED
    world.assert_same()


def test_while_another_one_lives_nothing_is_done(cycles: Cycles, world: ReplWorld) -> None:
    wanted = LeaseRequest(
        kind=LeaseKind.RUN,
        database_name="sales",
        user="bob",
        host="there",
        rules=LEASE,
        on_waiting=lambda _: None,
    )
    sleep, lock_ids = world.clock.sleep_seconds, []

    def beats(seconds: float) -> None:
        """The other one gives signs of life."""
        sleep(seconds)
        for lock in world.target.show_locks():
            if lock.user == "bob":
                world.target.heartbeat(0, lock.lock_id)  # type: ignore[arg-type]
                lock_ids.append(lock.lock_id)

    with held_lease(world.target, world.clock, wanted):
        world.clock.sleep_seconds = beats  # type: ignore[method-assign]
        with pytest.raises(BusyError, match="another repl run of policy sales is at work: bob"):
            cycles.run()
    world.clock.sleep_seconds = sleep  # type: ignore[method-assign]
    assert lock_ids
    assert cycles.outcomes == []
    assert cycles.run().outcome is CycleOutcome.REPLICATED


@pytest.mark.parametrize("is_paused", [True, False], ids=["paused", "changed"])
def test_a_policy_counts_as_it_is_when_its_turn_has_come(
    cycles: Cycles, world: ReplWorld, *, is_paused: bool
) -> None:
    """While it waits for one that was killed, somebody changes it, as a promotion does."""
    store = world.target.policies
    killed = LockComponent(
        type=LockType.EXCLUSIVE,
        level=LockLevel.TABLE,
        scope=Scope("sales", LeaseKind.RUN.value),
        operation=DataOperation.NO_TXN,
        is_transactional=False,
    )
    world.target.lock(LockRequest(components=(killed,), user="bob", host="elsewhere"))
    changed = replace(POLICY, target=PolicySide(database="other"), is_paused=is_paused)

    def meanwhile(text: str) -> None:
        assert "no sign of life" in text
        store.add_policies([changed], is_replacing=True)

    cycles.policy = changed
    cycles.runner = replace(cycles.runner, say=meanwhile)
    if is_paused:
        with pytest.raises(BusyError, match="policy sales was paused while this run waited"):
            cycles.run()
        assert (cycles.opened, cycles.outcomes) == (0, [])
    else:
        cycles.run()
        assert cycles.opened == 1
