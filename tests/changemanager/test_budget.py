"""Budgets of pins: what is within one stays, and what ends is written down before it goes."""

from __future__ import annotations

import io
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from changemanager.budget import budget_ends_ms
from changemanager.checksum import composite_checksum
from changemanager.config import PinBudget
from changemanager.manifest import Pin, PinKind
from changemanager.purge import PurgeReport
from changemanager.recycle import RecycleKind
from changemanager.retention import Disposition
from changemanager.uri import archive_name
from tests.support.archive_world import ArchiveWorld, context
from tests.support.faults import CrashError
from tests.support.simulated_clock import DAY_MS, START_MS

RETAIN_MS = 10 * DAY_MS
BUDGET = PinBudget(keep_ms=30 * DAY_MS)
POLICY = Pin(
    holder="policy:db",
    kind=PinKind.POLICY,
    reason="the next dump may name it",
    created_at_ms=START_MS,
    database="db",
    archived_since_ms=START_MS,
)


@pytest.fixture
def world(tmp_path: Path) -> ArchiveWorld:
    return ArchiveWorld(tmp_path, retain_ms=RETAIN_MS, budget=BUDGET)


def archive(world: ArchiveWorld, content: bytes = b"rows") -> str:
    """One more file; its name in the archive."""
    path = world.write("t/d/f", content)
    world.archive.recycle(
        str(path), RecycleKind.MOVE, is_purge=True, root=str(world.warehouse), context=context()
    )
    path.unlink(missing_ok=True)
    return archive_name("f", composite_checksum(io.BytesIO(content)))


def dump_pin(*names: str, holder: str = "dump:db:1", at_ms: int = START_MS) -> Pin:
    return Pin(
        holder=holder, kind=PinKind.DUMP, reason="", created_at_ms=at_ms, names=frozenset(names)
    )


def later(world: ArchiveWorld, milliseconds: int) -> None:
    """Time goes by in which the purge runs, so that its clock is believed."""
    world.clock.advance_ms(milliseconds)
    world.store.note_time(world.clock.now_ms())


def purge(world: ArchiveWorld) -> PurgeReport:
    world.purge.settle()
    return world.purge.run(world.purge.plan())


def given_up(world: ArchiveWorld) -> dict[str, str]:
    return {pin.holder: pin.given_up.reason for pin in world.store.pins() if pin.given_up}


def test_a_policy_keeps_a_file_exactly_as_long_as_its_budget(
    world: ArchiveWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.store.put_pin(POLICY)
    name = archive(world)
    later(world, 30 * DAY_MS)
    plan = world.purge.plan()
    assert plan.of(Disposition.PINNED)[0].item.name == name
    assert (purge(world).deleted, given_up(world)) == ((), {})
    later(world, 1)
    (decision,) = world.purge.plan().removals
    assert decision.reason == "expired; beyond the budget of policy:db"
    with caplog.at_level(logging.WARNING):
        report = purge(world)
    assert report.deleted == (name,)
    (end,) = report.given_up
    assert (end.holder, end.file_count, end.size_bytes) == ("policy:db", 1, 4)
    assert given_up(world) == {"policy:db": "it kept files for longer than 30 d 0 h"}
    assert "policy:db is given up: it kept files for longer than 30 d 0 h" in caplog.text


def test_what_is_within_the_budget_stays_of_a_pin_that_was_given_up(world: ArchiveWorld) -> None:
    world.store.put_pin(POLICY)
    old = archive(world, b"old")
    later(world, 15 * DAY_MS)
    younger = archive(world, b"younger")
    later(world, 15 * DAY_MS + 1)
    assert purge(world).deleted == (old,)
    assert set(world.archived()) == {younger}
    later(world, 14 * DAY_MS)
    assert purge(world).deleted == ()
    later(world, DAY_MS)
    assert purge(world).deleted == (younger,)


def test_nobody_is_given_up_while_nothing_goes(world: ArchiveWorld) -> None:
    """A pin may be as old as it likes: what counts is how old the files are that it keeps."""
    world.store.put_pin(POLICY)
    later(world, 100 * DAY_MS)
    name = archive(world)
    later(world, 11 * DAY_MS)
    assert (purge(world).deleted, given_up(world)) == ((), {})
    world.store.put_pin(dump_pin(name, at_ms=world.clock.now_ms()))
    later(world, 20 * DAY_MS)
    assert (purge(world).deleted, given_up(world)) == ((), {})
    later(world, 10 * DAY_MS + 1)
    assert purge(world).deleted == (name,)
    assert set(given_up(world)) == {"policy:db", "dump:db:1"}


def test_a_dump_has_its_budget_from_when_it_was_made(world: ArchiveWorld) -> None:
    """It may name what was archived long before."""
    name = archive(world)
    later(world, 9 * DAY_MS)
    world.store.put_pin(dump_pin(name, at_ms=world.clock.now_ms()))
    later(world, 30 * DAY_MS)
    assert purge(world).deleted == ()
    later(world, 1)
    assert purge(world).deleted == (name,)


def test_a_person_holds_for_as_long_as_it_was_said(world: ArchiveWorld) -> None:
    name = archive(world)
    hold = replace(dump_pin(name, holder="hold:audit"), kind=PinKind.HOLD)
    world.store.put_pin(hold)
    later(world, 1000 * DAY_MS)
    assert purge(world).deleted == ()


def test_of_too_many_bytes_the_newest_stay(tmp_path: Path) -> None:
    budget = PinBudget(keep_ms=300 * DAY_MS, size_bytes=25)
    world = ArchiveWorld(tmp_path, retain_ms=RETAIN_MS, budget=budget)
    world.store.put_pin(POLICY)
    names = []
    for content in (b"a" * 10, b"b" * 10, b"c" * 10, b"d" * 5):
        names.append(archive(world, content))
        later(world, DAY_MS)
    later(world, 8 * DAY_MS)  # two are older than the retention: 20 bytes
    assert purge(world).deleted == ()
    later(world, DAY_MS)
    assert purge(world).deleted == (names[0],)
    later(world, DAY_MS)
    assert (purge(world).deleted, set(world.archived())) == ((), set(names[1:]))
    assert given_up(world) == {"policy:db": "it kept more than 25 bytes"}


def test_a_pin_that_was_put_anew_since_the_plan_is_not_given_up(world: ArchiveWorld) -> None:
    """A dump was finished meanwhile, and found all that it needs."""
    world.store.put_pin(POLICY)
    name = archive(world)
    later(world, 31 * DAY_MS)
    plan = world.purge.plan()
    world.store.put_pin(replace(POLICY, created_at_ms=world.clock.now_ms()))
    report = world.purge.run(plan)
    assert (report.deleted, report.given_up, given_up(world)) == ((), (), {})
    assert [failed for failed, _ in report.failed] == [name]
    assert set(world.archived()) == {name}


def test_one_who_needs_it_too_keeps_it_for_all(world: ArchiveWorld) -> None:
    world.store.put_pin(POLICY)
    name = archive(world)
    later(world, 31 * DAY_MS)
    plan = world.purge.plan()
    world.store.put_pin(dump_pin(name, at_ms=world.clock.now_ms()))
    assert world.purge.run(plan).deleted == ()  # pinned since the plan
    assert purge(world).deleted == ()
    assert set(world.archived()) == {name}


def test_a_dry_run_says_who_would_be_given_up(world: ArchiveWorld) -> None:
    world.store.put_pin(POLICY)
    archive(world)
    later(world, 31 * DAY_MS)
    assert [end.holder for end in world.purge.plan().ends] == ["policy:db"]
    assert given_up(world) == {}


def test_a_purge_may_be_killed_anywhere_and_never_takes_a_file_in_silence(tmp_path: Path) -> None:
    total = 0
    for crash_at in range(1, 200):
        folder = tmp_path / str(crash_at)
        folder.mkdir()
        world = ArchiveWorld(folder, retain_ms=RETAIN_MS, budget=BUDGET)
        world.store.put_pin(POLICY)
        old = {archive(world, content) for content in (b"one", b"two")}
        later(world, 5 * DAY_MS)
        young = archive(world, b"young")
        world.store.put_pin(dump_pin(young))
        later(world, 26 * DAY_MS)
        world.start(crash_at)
        try:
            purge(world)
        except CrashError:
            total = crash_at
        else:
            break
        there = {name for name in world.archived() if not name.startswith(".")}
        if old - there:
            assert set(given_up(world)) == {"policy:db"}
        world.start()
        later(world, DAY_MS)
        purge(world)
        assert (set(world.archived()), set(given_up(world))) == ({young}, {"policy:db"})
    assert total > 10


@pytest.mark.parametrize("size_bytes", [None, 9, 15, 29])
@pytest.mark.parametrize("is_dump", [False, True])
def test_the_end_that_is_told_is_the_one_that_comes(
    tmp_path: Path, size_bytes: int | None, is_dump: bool
) -> None:
    """At that time nothing goes, right after it something does."""
    budget = PinBudget(keep_ms=30 * DAY_MS, size_bytes=size_bytes)
    world = ArchiveWorld(tmp_path, retain_ms=RETAIN_MS, budget=budget)
    names = []
    for content in (b"a" * 10, b"b" * 10, b"c" * 10):
        names.append(archive(world, content))
        later(world, 2 * DAY_MS)
    pin = dump_pin(*names, at_ms=world.clock.now_ms()) if is_dump else POLICY
    world.store.put_pin(pin)
    ends_ms = budget_ends_ms(pin, world.store.held_files(pin.holder), budget, RETAIN_MS)
    assert ends_ms is not None
    later(world, ends_ms - world.clock.now_ms())
    assert purge(world).deleted == ()
    later(world, 1)
    report = purge(world)
    assert names[0] in report.deleted
    assert [end.holder for end in report.given_up] == [pin.holder]


def test_without_files_nothing_ends() -> None:
    assert budget_ends_ms(POLICY, (), BUDGET, RETAIN_MS) is None
