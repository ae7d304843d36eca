"""What hooks are told and Hive's log does not tell, on the product's own way."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from hms_bridge.errors import NoSuchCompactionError
from hms_bridge.model.compaction import (
    CompactionState,
    CompactionType,
    ShowCompactionsRequest,
)
from hms_bridge.model.replication import CycleOutcome, CycleResult, PolicySide, ReplicationPolicy
from tests.support.databases import fresh_url
from tests.support.handover_world import Sites
from tests.support.repl_world import ReplWorld
from tests.support.told_points import START, listen, messages, points

DAY_MS = 86_400_000


@pytest.fixture
def world(tmp_path: Path) -> Iterator[ReplWorld]:
    made = ReplWorld(tmp_path, source_url=fresh_url(tmp_path))
    for side in (made.source, made.target):
        listen(side)
    yield made
    made.close()


def test_a_failback_notes_its_event_and_is_no_load(tmp_path: Path) -> None:
    with Sites(tmp_path) as sites:
        main = sites.with_tables().main.metastore
        listen(main)
        sites.promote(is_planned=True)
        sites.dr.insert("t", (3, "c"))
        sites.failback()
        (ended,) = messages(main, "END_LOAD")
        at = main.get_database(sites.main.database).parameters["repl.last.id"]
        assert ended["lastReplId"] == at


def compacted_table(world: ReplWorld) -> None:
    world.create_table()
    world.insert("t", (1, "a"))
    world.insert("t", (2, "b"))
    world.compact()


def test_a_compaction_from_its_start_to_the_purge_and_the_load(world: ReplWorld) -> None:
    world.create_table()
    world.insert("t", (1, "a"))
    world.insert("t", (2, "b"))
    world.dump()
    compaction = world.compact()
    count = world.clean()
    assert count >= 2
    world.load()
    holders = [pin.holder for pin in world.source.manifest.pins()]
    purged = 0
    for _ in range(12):  # a clock that leaps would not be believed
        world.clock.advance_ms(DAY_MS)
        purged += world.purge(holders)
    assert purged == count
    passed = {"ACID_WRITE", "END_DUMP"}
    kinds = [event.type for event in points(world.source) if event.type not in passed]
    assert [kind for kind, _ in itertools.groupby(kinds)] == [
        "START_COMPACTION", "ARCHIVE_FILE", "CLEAN_COMPACTION", "PURGE_FILE",
    ]  # fmt: skip
    assert kinds.count("PURGE_FILE") == count
    (started,) = messages(world.source, "START_COMPACTION")
    assert (started["compactionId"], started["dbname"], started["type"]) == (
        compaction.id, "src", "MAJOR",
    )  # fmt: skip
    archived = {told["name"] for told in messages(world.source, "ARCHIVE_FILE")}
    assert archived == {told["name"] for told in messages(world.source, "PURGE_FILE")}
    (ended,) = messages(world.target, "END_LOAD")
    assert ended == {"db": "dst", "lastReplId": world.last_event(), "lastReplIdBefore": None}
    world.insert("t", (3, "c"))
    world.replicate()
    assert [told["lastReplId"] for told in messages(world.target, "END_LOAD")] == [
        ended["lastReplId"], world.last_event(),
    ]  # fmt: skip


def test_a_compaction_that_is_refused_or_aborted_ends_for_hooks_too(world: ReplWorld) -> None:
    for name in ("t", "u"):
        world.create_table(name)
        world.request_compaction(name, CompactionType.MAJOR)
    taken = world.source.find_next_compaction("w", "1")
    assert taken is not None
    for _ in range(2):  # the second time it is in the history already
        with suppress(NoSuchCompactionError):
            world.source.mark_refused(replace(taken, error_message="not today"))
    (queued,) = world.source.show_compactions(
        ShowCompactionsRequest(state=CompactionState.INITIATED)
    )
    assert queued.id is not None
    for _ in range(2):
        world.source.abort_compactions([queued.id, taken.id])
    stopped = [
        (told["compactionId"], told["state"], told["errorMessage"])
        for told in messages(world.source, "STOP_COMPACTION")
    ]
    assert stopped == [
        (taken.id, "refused", "not today"),
        (queued.id, "aborted", "Compaction aborted by an Abort Compaction request."),
    ]


def test_points_stand_between_the_events_of_what_they_tell(world: ReplWorld) -> None:
    compacted_table(world)
    _, told = world.source.hook_positions.following(START, 10_000)
    kinds = [event.type for event in told]
    started = kinds.index("START_COMPACTION")
    assert kinds.index("REQUEST_COMPACTION") < started < kinds.index("COMMIT_COMPACTION_EVENT")
    assert [event.id for event in told] == sorted(event.id for event in told)


def test_a_write_is_told_before_the_end_of_its_transaction(world: ReplWorld) -> None:
    place = world.create_table()
    world.insert("t", (1, "a"))
    _, told = world.source.hook_positions.following(START, 10_000)
    kinds = [event.type for event in told]
    written = kinds.index("ACID_WRITE")
    assert kinds.index("ALLOC_WRITE_ID_EVENT") < written < kinds.index("COMMIT_TXN")
    message = json.loads(told[written].message)
    assert (message["db"], message["table"], message["writeId"]) == ("src", "t", 1)
    assert [str(place) in file for file in message["files"]] == [True]


def test_every_cycle_is_told_of_also_one_that_was_killed(world: ReplWorld) -> None:
    side = PolicySide(database="src")
    policy = ReplicationPolicy(
        name="p", source=side, target=PolicySide(database="dst"), root="/dumps"
    )
    store = world.source.policies
    store.add_policies([policy])
    store.begin_cycle("p", "here")  # and dies
    number = store.begin_cycle("p", "here")
    result = CycleResult(outcome=CycleOutcome.REPLICATED, dump_kind="bootstrap", event_count=5)
    store.end_cycle("p", number, result)
    told = messages(world.source, "END_CYCLE")
    assert [(one["cycle"], one["outcome"], one["eventCount"]) for one in told] == [
        (1, "interrupted", 0), (2, "replicated", 5),
    ]  # fmt: skip


def test_points_are_purged_with_the_events_of_their_time(world: ReplWorld) -> None:
    compacted_table(world)
    world.source.run_housekeeping()
    count = len(points(world.source))
    assert count == 3
    world.clock.advance_ms(11 * DAY_MS)
    world.source.run_housekeeping()
    assert points(world.source) == []
    world.insert("t", (3, "c"))
    assert [event.point_id for event in points(world.source)] == [4], "no number comes twice"
