"""Clocks that jump: nothing goes for time that nobody lived through (I5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import update

from changemanager.manifest import Pin, PinKind
from changemanager.plausible_time import TimeGap, judge
from changemanager.purge import Purge
from hms_bridge.backend.schema.archive_tables import HMSB_ARCHIVE_TIME, HMSB_TIME_GAP
from hms_bridge.backend.schema.notification_tables import NOTIFICATION_LOG
from hms_bridge.cli.lag_verdict import LagLimits, State, Watched
from hms_bridge.metrics.store_figures import store_figures
from hms_bridge.repl.status.repl_status import ReplStatus
from hms_bridge.repl.status.report import StatusRequest
from tests.support.databases import fresh_url
from tests.support.repl_world import ReplWorld
from tests.support.simulated_clock import DAY_MS
from tests.support.world import World, world_to_compact

YEAR_MS = 365 * DAY_MS


def pass_of_daemons(world: World) -> None:
    """One of each that runs in `serve --cleaner`."""
    world.cleaner().run_once()
    world.metastore.run_housekeeping()
    job = purge_of(world)
    job.run(job.plan())


def purge_of(world: World) -> Purge:
    return Purge(world.store.archive(), world.store.manifest, world.clock)


@pytest.mark.parametrize(
    ("jump_ms", "is_written_to"), [(40 * DAY_MS, False), (40 * DAY_MS, True), (-YEAR_MS, True)]
)
def test_a_dump_that_waits_loses_nothing(tmp_path: Path, jump_ms: int, is_written_to: bool) -> None:
    world = ReplWorld(tmp_path)
    world.create_table()
    world.insert("t", (1, "a"))
    world.replicate()
    world.insert("t", (2, "b"))
    world.insert("t", (3, "c"))
    world.dump()
    world.compact()
    assert world.clean()
    archived, pins = world.archived(), world.source.manifest.pins()
    world.clock.set_back_ms(-jump_ms)
    for _ in range(2):
        if is_written_to:
            world.insert("t", (4, "d"))
        pass_of_daemons(world)
        world.clock.advance_ms(10_000)
    assert world.archived() == archived
    for pin, before in zip(world.source.manifest.pins(), pins, strict=True):
        # The clock is behind: the policy begins at a time that is yet to come, and holds more.
        assert (pin.archived_since_ms or 0) <= (before.archived_since_ms or 0)
        assert replace(pin, archived_since_ms=before.archived_since_ms) == before
    assert_told(world, is_doubted=jump_ms > 0)
    world.load()
    assert [row["id"] for row in world.replica.rows()] == [1, 2, 3]
    world.close()


def assert_told(world: ReplWorld, *, is_doubted: bool) -> None:
    """What status, lag and metrics of a monitor say."""
    manifest = world.source.manifest
    looker = ReplStatus(world.resolve, world.clock, source=world.source, manifest=manifest)
    request = StatusRequest(root=str(world.repl_root), source_database="src")
    report = replace(looker.look(request), rpo_seconds=0)
    limits = LagLimits(warning=1, critical=1, headroom=0)
    sales = Watched(database="src", metastore="m")
    verdict = limits.judge(sales, replace(report, troubles=()))
    ample = dict.fromkeys(("events_expire_in_seconds", "budget_ends_in_seconds"), 10)
    state = limits.judge(sales, replace(report, troubles=(), **ample)).state
    assert state is (State.WARNING if is_doubted else State.OK)
    assert ("do not count" in report.time_doubt) is is_doubted
    assert ("cm clock" in verdict.why) is is_doubted
    figures = store_figures(
        world.source,
        world.clock,
        None,
        None,
        lambda: judge(world.clock.now_ms(), manifest.known_times()),
    )
    (sample,) = next(figure for figure in figures if figure.name == "clock").ask()
    assert sample.value == int(is_doubted)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """With files in the archive, and a hold on them that ends in two weeks."""
    world = World(tmp_path, url=fresh_url(tmp_path), parameters={"repl.source.for": "policy"})
    world_to_compact(world)
    world.compact()
    assert world.clean()
    now_ms = world.clock.now_ms()
    world.store.manifest.put_pin(
        Pin(
            holder="hold:audit", kind=PinKind.HOLD, reason="", database="db",
            created_at_ms=now_ms, expires_at_ms=now_ms + 14 * DAY_MS,
        )
    )  # fmt: skip
    world.metastore.run_housekeeping()
    yield world
    world.close()


def event_ids(world: World) -> list[int]:
    return [row["EVENT_ID"] for row in world.records(NOTIFICATION_LOG)]


def test_after_a_jump_all_ages_go_on_from_before_it(world: World) -> None:
    archived, events = world.archived(), event_ids(world)
    world.clock.set_back_ms(-YEAR_MS)
    world.insert("t", (9, "new"))  # a sign of life, by the clock that jumped
    pass_of_daemons(world)
    # A day of the gap counts, and what is lived through after it.
    world.clock.advance_ms(9 * DAY_MS - 60_000)
    pass_of_daemons(world)
    assert set(archived) <= set(world.archived())
    assert set(events) <= set(event_ids(world))
    world.clock.advance_ms(120_000)
    pass_of_daemons(world)
    assert not set(events) & set(event_ids(world))
    # The hold ends four days later.
    assert set(archived) <= set(world.archived())
    world.clock.advance_ms(4 * DAY_MS)
    pass_of_daemons(world)
    assert not {name for name in archived if not name.startswith(".")} & set(world.archived())


def test_confirmed_time_counts(world: World) -> None:
    events, manifest = event_ids(world), world.store.manifest
    world.clock.set_back_ms(-40 * DAY_MS)
    pass_of_daemons(world)
    assert purge_of(world).plan().doubt
    assert [gap.doubtful_ms for gap in manifest.trust_time(world.clock.now_ms())] == [39 * DAY_MS]
    assert not purge_of(world).plan().doubt
    pass_of_daemons(world)
    assert not set(events) & set(event_ids(world))
    assert not {name for name in world.archived() if not name.startswith(".")}
    (row,) = world.records(HMSB_TIME_GAP)
    assert row["TRUSTED_AT_MS"] == world.clock.now_ms()
    assert manifest.trust_time(world.clock.now_ms()) == ()


def test_where_nobody_looked_at_the_clock_before_events_are_signs_of_life(world: World) -> None:
    """As after an upgrade: the first sign after the jump hides none before it."""
    world.execute(update(HMSB_ARCHIVE_TIME).values(SEEN_AT_MS=0))
    archived = world.archived()
    world.clock.set_back_ms(-40 * DAY_MS)
    world.insert("t", (9, "new"))
    pass_of_daemons(world)
    pass_of_daemons(world)
    assert set(archived) <= set(world.archived())


def test_a_clock_that_comes_back_and_jumps_again_proves_nothing(world: World) -> None:
    archived, events = world.archived(), event_ids(world)
    for _ in range(3):
        world.clock.set_back_ms(-40 * DAY_MS)
        world.insert("t", (9, "new"))
        pass_of_daemons(world)
        world.clock.set_back_ms(40 * DAY_MS)
        world.clock.advance_ms(60_000)
        pass_of_daemons(world)
        assert world.store.manifest.known_times().gaps == ()
    assert set(archived) <= set(world.archived())
    assert set(events) <= set(event_ids(world))


def test_events_of_each_day_are_signs_of_life(world: World) -> None:
    """A Hive beside us worked for two weeks, and nobody looked at the clock."""
    before_ms = world.clock.now_ms()
    for _ in range(14):
        world.clock.set_back_ms(-DAY_MS)
        world.insert("t", (9, "new"))
    assert world.store.manifest.note_time(world.clock.now_ms()).gaps == ()
    world.clock.set_back_ms(-3 * DAY_MS)
    gaps = world.store.manifest.note_time(world.clock.now_ms()).gaps
    assert gaps == (TimeGap(before_ms + 14 * DAY_MS, before_ms + 17 * DAY_MS),)


def test_a_time_that_a_wrong_clock_stamped_makes_no_hole_in_the_log(world: World) -> None:
    world.clock.set_back_ms(YEAR_MS)
    world.insert("t", (8, "a year back"))
    world.clock.set_back_ms(-YEAR_MS)
    world.clock.advance_ms(60_000)
    events = event_ids(world)
    pass_of_daemons(world)
    assert event_ids(world) == events
