"""What the archive keeps for a replica has an end, which is told before and after it has come."""

from __future__ import annotations

from dataclasses import replace

import pytest

from changemanager.archive import ChangeManager
from changemanager.config import PinBudget
from changemanager.purge import Purge
from hms_bridge.errors import SourceFileMissingError
from hms_bridge.model.compaction import CompactionType
from hms_bridge.repl.cycles.cycle import OpenCycle
from hms_bridge.repl.dump.discard import DiscardRequest, ReplDiscard
from hms_bridge.repl.load.admission import SourcePlaces
from hms_bridge.repl.pins import given_up_of
from hms_bridge.repl.status.repl_status import ReplStatus
from hms_bridge.repl.status.report import StatusReport, StatusRequest
from tests.support.repl_world import LEASE, ReplWorld
from tests.support.simulated_clock import DAY_MS

DAY_SECONDS = 86_400


def look(world: ReplWorld) -> StatusReport:
    looker = ReplStatus(
        world.resolve,
        world.clock,
        source=world.source,
        target=world.target,
        manifest=world.source.manifest,
        places=SourcePlaces(metastore=world.source, cm_root=str(world.cmroot)),
    )
    request = StatusRequest(
        root=str(world.repl_root),
        source_database="src",
        target_database="dst",
        event_ttl_ms=100 * DAY_MS,
        own_archive=str(world.cmroot),
    )
    return looker.look(request)


def days_later(world: ReplWorld, days: int) -> int:
    """The purge runs every day; how many files went."""
    gone = 0
    for _ in range(days):
        world.clock.advance_ms(DAY_MS)
        world.source.manifest.note_time(world.clock.now_ms())
        gone += world.purge()
    return gone


def replace_by_compaction(world: ReplWorld) -> None:
    """The deltas of two inserts go to the archive."""
    world.insert("t", (2, "b"))
    world.insert("t", (3, "c"))
    world.compact("t", CompactionType.MAJOR)
    assert world.clean() >= 2


def cycle(world: ReplWorld) -> OpenCycle:
    world.clock.advance_ms(1000)
    return OpenCycle(
        dumper=world.dumper(),
        loader=world.loader(),
        dump=world.dump_request(),
        load=world.load_request,
        release=lambda: None,
        given_up=lambda: given_up_of(world.source.manifest, "src", f"file:{world.repl_root}"),
    )


def test_headroom_counts_down_to_the_archives_budget(world: ReplWorld) -> None:
    world.replicate()
    assert look(world).budget_ends_in_seconds is None
    replace_by_compaction(world)
    days_later(world, 29)
    report = look(world)
    assert report.headroom is not None
    assert report.headroom.limit == "archive's budget"
    assert 0 < report.headroom.seconds <= DAY_SECONDS
    assert report.troubles == ()


def test_a_policy_that_is_given_up_is_trouble_until_it_begins_anew(world: ReplWorld) -> None:
    world.replicate()
    replace_by_compaction(world)
    assert days_later(world, 30) == 0
    assert days_later(world, 2) >= 2
    (trouble,) = look(world).troubles
    assert trouble.startswith(f"{world.policy_pin} was given up at 20")
    assert "it kept files for longer than 30 d" in trouble
    assert "'repl dump src --bootstrap'" in trouble
    with pytest.raises(
        SourceFileMissingError, match=rf"lost: \d files.*{world.policy_pin} was given up at"
    ):
        cycle(world).run()
    (trouble,) = look(world).troubles
    world.target.drop_database("dst", is_cascade=True)
    world.dump(is_bootstrap_forced=True)
    assert look(world).troubles == ()
    world.load()
    world.assert_same()


def test_a_policy_whose_dump_lacks_nothing_goes_on(world: ReplWorld) -> None:
    """The archive held what an earlier dump had brought already."""
    world.insert("t", (2, "b"))
    world.replicate()
    world.compact("t", CompactionType.MAJOR)
    assert world.clean() >= 2
    assert days_later(world, 32) >= 2
    assert look(world).troubles
    world.insert("t", (3, "c"))
    cycle(world).run()
    assert look(world).troubles == ()
    world.assert_same()


def test_a_waiting_dump_that_is_given_up_is_named_and_refused_whole(world: ReplWorld) -> None:
    world.replicate()
    world.insert("t", (2, "b"))
    dump = world.dump()
    replace_by_compaction(world)
    before = world.replica.rows("t")
    assert days_later(world, 32) >= 2
    troubles = " ".join(look(world).troubles)
    assert "the waiting dump has lost" in troubles
    assert f"dump:src:{dump.directory} was given up at" in troubles
    with pytest.raises(SourceFileMissingError, match=f"dump:src:{dump.directory} was given up"):
        cycle(world).run()
    assert world.replica.rows("t") == before


def test_a_discard_does_not_hide_what_was_given_up(world: ReplWorld) -> None:
    world.replicate()
    manifest = world.source.manifest
    replace_by_compaction(world)
    world.dump()
    replace_by_compaction(world)
    assert days_later(world, 32) >= 2
    world.clock.advance_ms(1000)
    discarder = ReplDiscard(world.source, world.resolve, world.clock, world.token, manifest)
    request = DiscardRequest(root=str(world.repl_root), database_name="src", lease=LEASE)
    discarder.run(discarder.plan(request))
    (trouble,) = look(world).troubles
    assert trouble.startswith(f"{world.policy_pin} was given up")


def test_a_dump_does_not_count_on_what_a_purge_has_begun_to_take(world: ReplWorld) -> None:
    """The file is still there when the dump looks, and gone when it is loaded."""
    world.replicate()
    replace_by_compaction(world)
    manifest, root = world.source.manifest, world.archive.cmroot.uri
    for name, entry in manifest.entries(root).items():
        assert manifest.claim_purge(
            root,
            name,
            seen_archived_at_ms=entry.archived_at_ms,
            overridden_holders=[pin.holder for pin in manifest.pins()],
            owner="a purge",
            now_ms=world.clock.now_ms(),
        )
    assert len(world.archived()) >= 2
    with pytest.raises(SourceFileMissingError, match="lost: 2 files"):
        world.dump()


def test_a_budget_of_bytes(world: ReplWorld) -> None:
    world.replicate()
    replace_by_compaction(world)
    config = replace(world.archive.config, budget=PinBudget(size_bytes=1))
    manifest = world.source.manifest
    archive = ChangeManager(config, world.resolve, manifest, world.clock, world.token)
    world.clock.advance_ms(11 * DAY_MS)
    job = Purge(archive, manifest, world.clock)
    assert len(job.run(job.plan()).deleted) >= 2
    assert "it kept more than 1 bytes" in look(world).troubles[0]


def test_a_dump_that_is_finished_while_the_purge_begins_is_not_given_up(world: ReplWorld) -> None:
    world.replicate()
    replace_by_compaction(world)
    world.clock.advance_ms(31 * DAY_MS)
    manifest = world.source.manifest
    manifest.note_time(world.clock.now_ms())
    job = Purge(world.archive, manifest, world.clock)
    plan = job.plan()
    assert world.policy_pin in [end.holder for end in plan.ends]
    world.dump()
    report = job.run(plan)
    assert (report.given_up, look(world).troubles) == ((), ())
    world.load()
    world.assert_same()
