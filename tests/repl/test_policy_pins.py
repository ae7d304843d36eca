"""Two replications of one database, each with a root of its own: what one needs, the other keeps
its hands off."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from changemanager.given_up import GivenUp
from changemanager.manifest import Pin, PinKind
from hms_bridge.errors import SourceFileMissingError
from hms_bridge.model.compaction import CompactionType
from hms_bridge.repl.drill.scratch import scratch_place
from hms_bridge.repl.format.layout import database_directory
from hms_bridge.repl.handover.own_part import plan_end, run_end
from hms_bridge.repl.pins import dump_holder, policy_holder
from hms_bridge.repl.status.repl_status import ReplStatus
from hms_bridge.repl.status.report import StatusRequest
from tests.support.handover_world import POLICY, Sites
from tests.support.repl_world import ReplWorld

DAY_MS = 86_400_000
SHARED = "policy:src"
"""The one pin that versions before kept for all replications of a database."""


@pytest.fixture
def world(empty_world: ReplWorld) -> ReplWorld:
    """Both replicas have the table."""
    world = empty_world
    world.create_table("t")
    world.insert("t", (1, "a"))
    world.replicate()
    replicate_other(world)
    return world


def other_root(world: ReplWorld) -> str:
    return str(world.folder / "other")


def replicate_other(world: ReplWorld) -> None:
    world.dump(root=other_root(world))
    loader = world.loader()
    request = replace(world.load_request, root=other_root(world), target_database="other")
    loader.run(loader.plan(request))


def policy_pins(world: ReplWorld) -> dict[str, Pin]:
    return {pin.holder: pin for pin in world.source.manifest.pins() if pin.kind is PinKind.POLICY}


def own(world: ReplWorld, root: str | None = None) -> str:
    return policy_holder("src", f"file:{root or world.repl_root}")


def replace_by_compaction(world: ReplWorld) -> None:
    world.insert("t", (2, "b"))
    world.insert("t", (3, "c"))
    world.compact("t", CompactionType.MAJOR)
    assert world.clean() >= 2


def as_before(world: ReplWorld, *, since_ms: int) -> None:
    """The pins of a database in use, as versions before wrote them."""
    manifest = world.source.manifest
    for holder in policy_pins(world):
        manifest.remove_pin(holder)
    manifest.put_pin(
        Pin(
            holder=SHARED,
            kind=PinKind.POLICY,
            reason="the next dump of src may name it",
            created_at_ms=world.clock.now_ms(),
            database="src",
            archived_since_ms=since_ms,
        )
    )


def test_each_replication_has_a_pin_of_its_own(world: ReplWorld) -> None:
    assert set(policy_pins(world)) == {own(world), own(world, other_root(world))}


def test_one_that_goes_on_keeps_what_the_other_needs(world: ReplWorld) -> None:
    """I5: the other one's next dump names files that were archived before this one's last dump."""
    replace_by_compaction(world)
    world.replicate()
    world.clock.advance_ms(11 * DAY_MS)
    world.replicate()
    assert world.purge() == 0
    replicate_other(world)
    assert world.replica.metastore.get_tables("other") == ("t",)


def test_one_that_is_released_takes_nothing_from_the_other(world: ReplWorld) -> None:
    replace_by_compaction(world)
    assert world.source.manifest.remove_pin(own(world))
    world.clock.advance_ms(11 * DAY_MS)
    assert world.purge() == 0
    replicate_other(world)


def test_the_last_dump_of_a_dropped_database_is_the_last_of_one(world: ReplWorld) -> None:
    """The other one has yet to bring what was there before."""
    replace_by_compaction(world)
    run_end(world.source, plan_end(world.source, "src"))
    world.source.drop_database("src", is_cascade=True)
    world.dump()
    assert set(policy_pins(world)) == {own(world, other_root(world))}


def test_one_that_is_given_up_is_no_trouble_of_the_other(world: ReplWorld) -> None:
    world.replicate()
    manifest, holder = world.source.manifest, own(world, other_root(world))
    pin = policy_pins(world)[holder]
    given_up = GivenUp(at_ms=world.clock.now_ms(), reason="it kept too much")
    assert manifest.give_up(holder, seen_created_at_ms=pin.created_at_ms, given_up=given_up)
    looker = ReplStatus(world.resolve, world.clock, source=world.source, manifest=manifest)
    troubles = [
        looker.look(StatusRequest(root=root, source_database="src")).troubles
        for root in (str(world.repl_root), other_root(world))
    ]
    assert troubles[0] == ()
    assert "was given up" in troubles[1][0]


def test_a_way_back_releases_what_is_its_own(fast_folder: Path) -> None:
    """A replica of a third site still has a dump of the former source to load."""
    with Sites(fast_folder) as sites:
        sites.with_tables()
        sites.main.insert("t", (3, "c"))
        elsewhere = replace(sites.policy, root=str(sites.folder / "third"))
        with sites.sides().open_cycle(elsewhere) as cycle:
            cycle.dumper.run(cycle.plan())
        sites.promote(is_planned=True)
        sites.failback()
        held = [pin.holder for pin in sites.main.metastore.manifest.pins()]
        assert len(held) == 2
        third = f":{POLICY}:file:{sites.folder}/third"
        assert all(third in holder for holder in held)


def test_the_pin_of_versions_before_is_taken_over(world: ReplWorld) -> None:
    """What it held stays held, for each replication that the archive knows of."""
    waiting = world.dump(root=other_root(world), is_bootstrap_forced=True).directory
    assert waiting is not None
    since_ms = world.clock.now_ms()
    replace_by_compaction(world)
    as_before(world, since_ms=since_ms)
    world.replicate()
    found = policy_pins(world)
    assert set(found) == {own(world), own(world, other_root(world))}
    assert found[own(world, other_root(world))].archived_since_ms == since_ms
    assert (found[own(world)].archived_since_ms or 0) > since_ms
    assert dump_holder("src", waiting) in {pin.holder for pin in world.source.manifest.pins()}


def test_a_drill_that_was_killed_gets_no_part_of_it(world: ReplWorld) -> None:
    """Nobody dumps to its scratch place again, so nobody would ever let go."""
    replace_by_compaction(world)
    as_before(world, since_ms=world.clock.now_ms() - DAY_MS)
    place = scratch_place(f"file:{world.repl_root}", "src", "token")
    dump = f"{database_directory(place, 'src')}/made"
    world.source.manifest.put_pin(
        Pin(
            holder=dump_holder("src", dump),
            kind=PinKind.DUMP,
            reason=f"dump {dump} is not loaded yet",
            created_at_ms=world.clock.now_ms(),
            names=frozenset({"one"}),
        )
    )
    world.replicate()
    assert set(policy_pins(world)) == {own(world), own(world, other_root(world))}


def test_until_its_first_dump_a_replication_goes_by_that_pin(world: ReplWorld) -> None:
    """Events and files stay, status tells what became of it, and a purge that comes first takes
    nothing."""
    replace_by_compaction(world)
    since_ms = world.clock.now_ms() - DAY_MS
    as_before(world, since_ms=since_ms)
    world.clock.advance_ms(11 * DAY_MS)
    world.source.run_housekeeping()
    assert world.purge() == 0
    manifest = world.source.manifest
    given_up = GivenUp(at_ms=world.clock.now_ms(), reason="it kept too much")
    created_at_ms = policy_pins(world)[SHARED].created_at_ms
    assert manifest.give_up(SHARED, seen_created_at_ms=created_at_ms, given_up=given_up)
    looker = ReplStatus(world.resolve, world.clock, source=world.source, manifest=manifest)
    request = StatusRequest(root=str(world.repl_root), source_database="src")
    assert "policy:src was given up" in looker.look(request).troubles[0]
    world.replicate()
    assert looker.look(request).troubles == ()


def test_a_dump_that_fails_takes_it_over_as_it_is(
    world: ReplWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped between: nothing is held that was not, and nothing is let go. That it was given up
    is not forgotten."""
    since_ms = world.clock.now_ms() - DAY_MS
    as_before(world, since_ms=since_ms)
    manifest = world.source.manifest
    given_up = GivenUp(at_ms=5, reason="it kept too much")
    created_at_ms = policy_pins(world)[SHARED].created_at_ms
    assert manifest.give_up(SHARED, seen_created_at_ms=created_at_ms, given_up=given_up)
    world.insert("t", (4, "d"))

    def dies(*args: object, **kwargs: object) -> NoReturn:
        raise SourceFileMissingError("lost", ())

    remove = type(manifest).remove_pin

    def dies_before_the_last(store: object, holder: str) -> bool:
        return dies() if holder == SHARED else remove(manifest, holder)

    monkeypatch.setattr("hms_bridge.repl.dump.repl_dump.hold_named", dies)
    with monkeypatch.context() as patch:
        patch.setattr(type(manifest), "remove_pin", dies_before_the_last)
        with pytest.raises(SourceFileMissingError):
            world.dump()
    both = {own(world), own(world, other_root(world))}
    assert set(policy_pins(world)) == {SHARED, *both}
    with pytest.raises(SourceFileMissingError):
        world.dump()
    found = policy_pins(world)
    assert set(found) == both
    for pin in found.values():
        assert (pin.archived_since_ms, pin.given_up) == (since_ms, given_up)
