"""Two purges of one archive at a time: a daemon's, and an administrator's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from changemanager.manifest import Pin, PinKind
from changemanager.purge import Purge, PurgeReport
from changemanager.uri import archive_name
from tests.support.databases import fresh_url
from tests.support.simulated_clock import DAY_MS
from tests.support.world import World

FILE_COUNT = 24


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Files that a Hive archived, which are expired."""
    world = World(tmp_path, url=fresh_url(tmp_path))
    world.cmroot.mkdir()
    now_ms = world.clock.now_ms()
    for number in range(FILE_COUNT):
        written = world.resolve(f"{world.cmroot}/bucket_{number:05}")
        written.volume.write_new(written.path, [b"rows"])
        written.volume.set_mtime(written.path, now_ms)
        name = archive_name(written.name, written.checksum(), 255)
        written.volume.rename(written.path, written.parent.child(name).path)
    world.clock.advance_ms(11 * DAY_MS)
    yield world
    world.close()


def purge_of(world: World) -> Purge:
    return Purge(world.store.archive(), world.store.manifest, world.clock)


def test_the_second_purge_says_that_another_one_took_the_files(world: World) -> None:
    first, second = purge_of(world), purge_of(world)
    plan, late = first.plan(), second.plan()
    assert len(first.run(plan).deleted) == FILE_COUNT
    report = second.run(late)
    assert (report.deleted, report.failed, report.freed_bytes) == ((), (), 0)
    assert len(report.purged_by_others) == FILE_COUNT


def test_purges_at_once_take_each_file_once(world: World) -> None:
    jobs = [purge_of(world) for _ in range(2)]
    plans = [job.plan() for job in jobs]
    reports: list[PurgeReport] = []
    threads = [
        threading.Thread(target=lambda job=job, plan=plan: reports.append(job.run(plan)))
        for job, plan in zip(jobs, plans, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [report.failed for report in reports] == [(), ()]
    deleted = [name for report in reports for name in report.deleted]
    assert len(deleted) == len(set(deleted)) == FILE_COUNT
    assert sum(len(report.purged_by_others) for report in reports) == FILE_COUNT
    assert not list(world.cmroot.iterdir())


@pytest.mark.parametrize("look", ["entries", "live_purges"])
def test_a_purge_that_ends_between_two_looks_took_the_file(
    world: World, monkeypatch: pytest.MonkeyPatch, look: str
) -> None:
    """The second one asks what became of a file that it may not claim."""
    manifest, now_ms = world.store.manifest, world.clock.now_ms()
    second = Purge(world.store.archive(), manifest, world.clock)
    plan = second.plan()
    first = plan.removals[0].item.name
    assert manifest.claim_purge(
        plan.cmroot, first, seen_archived_at_ms=None, overridden_holders=(), owner="first",
        now_ms=now_ms,
    )  # fmt: skip
    seen = getattr(type(manifest), look)

    def seen_before_the_end(*words: object) -> object:
        found = seen(*words)
        if (world.cmroot / first).exists():
            (world.cmroot / first).unlink()
            assert manifest.record_purged(plan.cmroot, first, owner="first", now_ms=now_ms)
        return found

    monkeypatch.setattr(type(manifest), look, seen_before_the_end)
    report = second.run(plan)
    assert (report.failed, report.purged_by_others) == ((), (first,))
    assert len(report.deleted) == FILE_COUNT - 1


def test_a_file_that_was_pinned_since_the_plan_is_a_failure(world: World) -> None:
    """It stays, and whoever purges hears of it."""
    job = purge_of(world)
    plan = job.plan()
    name = plan.removals[0].item.name
    world.store.manifest.put_pin(
        Pin(holder="dump:1", kind=PinKind.DUMP, reason="", created_at_ms=0, names=frozenset({name}))
    )
    report = job.run(plan)
    assert [failed for failed, _ in report.failed] == [name]
    assert report.purged_by_others == ()
    assert [file.name for file in world.cmroot.iterdir()] == [name]
