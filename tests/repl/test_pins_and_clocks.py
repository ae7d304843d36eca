"""A dump is made while some clock is wrong: what the next one needs is held all the same (I5)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from changemanager.manifest import PinKind
from hms_bridge.clock import Clock
from hms_bridge.repl.pins import DumpPins
from tests.support.archive_manifest import InMemoryManifest
from tests.support.repl_world import ReplWorld
from tests.support.simulated_clock import DAY_MS, START_MS, SimulatedClock

HOUR_MS = 3_600_000


def dumped_by_a_fast_clock(world: ReplWorld) -> None:
    """The clock is 40 days ahead for as long as the dump takes; then two rows are written,
    compacted, and their files archived."""
    world.clock.set_back_ms(-40 * DAY_MS)
    world.dump()
    world.clock.set_back_ms(40 * DAY_MS)
    world.load()
    world.insert("t", (2, "b"))
    world.insert("t", (3, "c"))
    world.compact()
    assert world.clean()


def test_the_purge_spares_what_was_archived_since_a_dump_by_a_fast_clock(world: ReplWorld) -> None:
    dumped_by_a_fast_clock(world)
    archived = world.archived()
    world.clock.advance_ms(11 * DAY_MS)  # longer than hive.repl.cm.retain
    assert world.purge() == 0
    assert world.archived() == archived
    world.clock.advance_ms(18 * DAY_MS)  # by now the time of the pin has come, and gone by
    world.source.run_housekeeping()
    assert world.purge() == 0
    world.replicate()
    world.assert_same()


def test_the_log_keeps_what_happened_since_a_dump_by_a_fast_clock(world: ReplWorld) -> None:
    dumped_by_a_fast_clock(world)
    world.clock.advance_ms(11 * DAY_MS)  # longer than the events' time to live
    world.source.run_housekeeping()
    world.replicate()
    world.assert_same()


def test_the_plan_of_a_purge_knows_it_before_anybody_has_noted_the_time(world: ReplWorld) -> None:
    dumped_by_a_fast_clock(world)
    world.clock.watch_no_more()
    world.clock.advance_ms(11 * DAY_MS)
    (pin,) = (pin for pin in world.source.manifest.pins() if pin.kind is PinKind.POLICY)
    future_ms = world.clock.now_ms() + DAY_MS
    world.source.manifest.put_pin(replace(pin, archived_since_ms=future_ms))
    assert world.purging.plan(is_clock_trusted=True).removals == ()


@pytest.mark.parametrize("ahead_ms", [HOUR_MS, -HOUR_MS])
def test_a_pin_goes_by_the_clock_that_stamps_the_archive(ahead_ms: int) -> None:
    """The host of the dump is an hour ahead of the database, or behind it."""
    manifest = InMemoryManifest()
    manifest.store_ms = START_MS
    clock: Clock = SimulatedClock(START_MS + ahead_ms)
    pins = DumpPins(manifest=manifest, clock=clock, database="sales", root="/one")
    pins.begin()
    pins.finish(pins.now_ms())
    pins.hold("/one/a", [])
    dump, policy = sorted(manifest.pins(), key=lambda pin: pin.kind is PinKind.POLICY)
    assert dump.created_at_ms == START_MS
    assert (policy.created_at_ms, policy.archived_since_ms) == (START_MS, START_MS)
