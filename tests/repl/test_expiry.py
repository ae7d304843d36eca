"""Loaded dumps that nobody needs go when they are old; all others stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.cli.serve_daemons import dump_cleaner
from hms_bridge.connect import LocalStore
from hms_bridge.errors import BusyError, ReplError
from hms_bridge.repl.dump.expiry import ExpiryPlan, ExpiryRequest, ReplExpiry, remove_expired
from hms_bridge.repl.dump.plan import DumpReport
from hms_bridge.repl.format.directories import list_dumps
from hms_bridge.repl.handover.own_part import plan_end, run_end
from hms_bridge.repl.lease import LeaseKind, LeaseRequest, held_lease
from hms_bridge.repl.pins import dump_holder
from tests.repl.test_lease import keep_alive
from tests.support.repl_world import LEASE, ReplWorld

DAY_MS = 86_400_000


def request(world: ReplWorld, name: str = "src") -> ExpiryRequest:
    return ExpiryRequest(
        root=str(world.repl_root), database_name=name, ttl_ms=7 * DAY_MS, lease=LEASE
    )


def expiry(world: ReplWorld) -> ReplExpiry:
    return ReplExpiry(world.source, world.resolve, world.clock, world.token, world.source.manifest)


def plan(world: ReplWorld) -> ExpiryPlan:
    return expiry(world).plan(request(world))


def step(world: ReplWorld, **changes: Any) -> DumpReport:
    """A dump that is kept, and loaded."""
    world.insert("t", (world.clock.now_ms() % 10**9, "x"))
    report = world.dump(is_previous_kept=True, **changes)
    world.load()
    return report


def anew(world: ReplWorld) -> DumpReport:
    """A bootstrap dump that begins a new chain, loaded."""
    report = world.dump(is_previous_kept=True, is_bootstrap_forced=True)
    world.target.drop_database("dst", is_cascade=True)
    world.load()
    return report


def left(world: ReplWorld) -> set[str]:
    return {dump.paths.root for dump in list_dumps(world.resolve, str(world.repl_root), "src")}


def two_chains(world: ReplWorld) -> tuple[set[str], set[str]]:
    """Directories of an old chain of two, and of a newer one of two, both loaded."""
    old = {str(step(world).directory), str(step(world).directory)}
    new = {str(anew(world).directory), str(step(world).directory)}
    return old, new


def test_an_older_chain_goes_and_the_newest_stays(busy_world: ReplWorld) -> None:
    world = busy_world
    old, new = two_chains(world)
    world.clock.advance_ms(8 * DAY_MS)
    assert set(expiry(world).run(plan(world))) == old
    assert left(world) == new
    assert not any(dump_holder("src", one) in holders(world) for one in old)
    step(world)
    world.assert_same()


def holders(world: ReplWorld) -> set[str]:
    return {pin.holder for pin in world.source.manifest.pins()}


def test_what_is_younger_stays(busy_world: ReplWorld) -> None:
    world = busy_world
    old, new = two_chains(world)
    world.clock.advance_ms(7 * DAY_MS - 600_000)
    assert plan(world).removed == ()
    world.clock.advance_ms(1_200_000)
    assert set(plan(world).removed) == old
    assert left(world) == old | new


def test_what_is_not_loaded_stays(busy_world: ReplWorld) -> None:
    """Also one that no newer dump follows on any more."""
    world = busy_world
    old, new = two_chains(world)
    waiting = sorted(old)[0]
    (Path(waiting.removeprefix("file:")) / "hive" / "_finished_load").unlink()
    world.clock.advance_ms(30 * DAY_MS)
    expiry(world).run(plan(world))
    assert left(world) == new | {waiting}


def test_the_newest_loaded_chain_stays_while_a_newer_bootstrap_waits(busy_world: ReplWorld) -> None:
    """If that is discarded, the next dump goes on from the loaded one."""
    world = busy_world
    old, new = two_chains(world)
    waiting = str(world.dump(is_previous_kept=True, is_bootstrap_forced=True).directory)
    world.clock.advance_ms(30 * DAY_MS)
    assert set(plan(world).removed) == old
    expiry(world).run(plan(world))
    assert left(world) == new | {waiting}


def test_a_long_chain_stays_whole(busy_world: ReplWorld) -> None:
    world = busy_world
    kept = {str(step(world).directory) for _ in range(4)}
    world.clock.advance_ms(365 * DAY_MS)
    expiry(world).run(plan(world))
    assert left(world) == kept


def test_what_is_no_dump_stays(busy_world: ReplWorld) -> None:
    world = busy_world
    old, new = two_chains(world)
    foreign = sorted(old)[0]
    (Path(foreign.removeprefix("file:")) / "notes.txt").write_text("by hand")
    above = Path(foreign.removeprefix("file:")).parent
    (above / "mine").mkdir()
    (above / "mine" / "file").write_text("x")
    world.clock.advance_ms(8 * DAY_MS)
    expiry(world).run(plan(world))
    assert left(world) == new | {foreign, f"file:{above}/mine"}
    (told,) = [one for one in plan(world).decisions if one.directory == foreign]
    assert "notes.txt" in told.why


def test_dumps_that_came_since_the_plan_are_looked_at_again(busy_world: ReplWorld) -> None:
    world = busy_world
    two_chains(world)
    world.clock.advance_ms(8 * DAY_MS)
    planned = plan(world)
    (Path(planned.removed[0].removeprefix("file:")) / "hive" / "_finished_load").unlink()
    with pytest.raises(ReplError, match="changed since the plan"):
        expiry(world).run(planned)
    assert set(planned.removed) <= left(world)


def test_nothing_goes_while_a_dump_is_made(busy_world: ReplWorld) -> None:
    world = busy_world
    old, new = two_chains(world)
    world.clock.advance_ms(8 * DAY_MS)
    wanted = LeaseRequest(
        kind=LeaseKind.DUMP, database_name="src", user="u", host="h", rules=LEASE,
        on_waiting=lambda _: None,
    )  # fmt: skip
    with held_lease(world.source, world.clock, wanted):
        keep_alive(world, world.source, "src")
        with pytest.raises(BusyError):
            expiry(world).run(plan(world))
        remove_expired(world.source, expiry(world), lambda name: request(world, name))
    assert left(world) == old | new


def test_a_server_removes_those_of_its_own_sources_only(busy_world: ReplWorld) -> None:
    world = busy_world
    old, new = two_chains(world)
    world.clock.advance_ms(8 * DAY_MS)
    run_end(world.source, plan_end(world.source, "src"))
    remove_expired(world.source, expiry(world), lambda name: request(world, name))
    assert left(world) == old | new
    world.dump(is_previous_kept=True)
    world.load()
    remove_expired(world.source, expiry(world), lambda name: request(world, name))
    assert left(world).isdisjoint(old)


def test_the_servers_task_takes_the_settings(busy_world: ReplWorld) -> None:
    world = busy_world
    old, _ = two_chains(world)
    world.clock.advance_ms(8 * DAY_MS)
    store: LocalStore = world.store
    repl = replace(store.settings.repl, root=str(world.repl_root))
    clean = dump_cleaner(replace(store, settings=replace(store.settings, repl=repl)))
    clean()
    assert left(world).isdisjoint(old)


def test_a_clock_that_jumped_makes_no_dump_older(busy_world: ReplWorld) -> None:
    world = busy_world
    old, new = two_chains(world)
    world.source.manifest.note_time(world.clock.now_ms())
    world.clock.set_back_ms(-40 * DAY_MS)
    kept = plan(world)
    assert kept.removed == ()
    assert all(
        "39 d 0 h do not count" in one.why for one in kept.decisions if "newest" not in one.why
    )
    world.source.manifest.trust_time(world.clock.now_ms())
    assert set(expiry(world).run(plan(world))) == old
    assert left(world) == new
