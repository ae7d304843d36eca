"""What events of a load need is done for many of them together, and each is applied by itself."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from hms_bridge.backend.schema.txn_tables import NEXT_WRITE_ID
from hms_bridge.errors import ReplError, SourceFileMissingError
from hms_bridge.model.ids import EventId
from hms_bridge.model.txn import AllocateWriteIdsRequest, TxnState
from hms_bridge.repl.format.dump_metadata import DumpMetadata, DumpType
from hms_bridge.repl.format.layout import EventPaths
from hms_bridge.repl.format.reader import DumpedEvent
from hms_bridge.repl.load.repl_load import ReplLoad
from hms_bridge.repl.load.replica import Replica
from hms_bridge.repl.load.windows import windows_of
from tests.support.faults import CrashError, FaultPlan, FaultyMetastore, faulty
from tests.support.passing import Counting, Passing
from tests.support.repl_world import ReplWorld
from tests.support.simulated_clock import DAY_MS

KILLED_EACH = 7
COMMIT = DumpType.COMMIT_TXN.value
DROP = DumpType.DROP_TABLE.value
MANY_BYTES = 17 << 20


def dumped(number: int, kind: str = COMMIT) -> DumpedEvent:
    event_id = EventId(number)
    metadata = DumpMetadata(
        type=kind, from_event_id=event_id, to_event_id=event_id, cm_root=None, payload="{}"
    )
    return DumpedEvent(id=event_id, paths=EventPaths(f"/dump/{number}"), metadata=metadata)


def windows(events: list[DumpedEvent], **weights: int) -> list[list[int]]:
    by_id = {EventId(int(name.removeprefix("e"))): weight for name, weight in weights.items()}
    found = windows_of(events, lambda event: event.type == COMMIT, by_id)
    return [[int(event.id) for event in window] for window in found]


def test_what_changes_a_table_is_alone_and_keeps_the_order() -> None:
    events = [dumped(1), dumped(2), dumped(3, DROP), dumped(4, DROP), dumped(5)]
    assert windows(events) == [[1, 2], [3], [4], [5]]


def test_a_window_has_an_end() -> None:
    assert windows([dumped(number) for number in range(1, 5)], e2=MANY_BYTES) == [[1], [2], [3, 4]]
    assert [len(window) for window in windows([dumped(n) for n in range(1, 1001)])] == [
        400, 400, 200
    ]  # fmt: skip


def test_transactions_are_opened_and_ids_given_in_few_calls(world: ReplWorld) -> None:
    world.create_table("u")
    world.replicate()
    for number in range(2, 7):
        world.insert("t", (number, "a"))
        world.insert("u", (number, "a"))
    world.dump()
    target = Counting(world.target)
    loader = world.loader(target)
    loader.run(loader.plan(world.load_request))
    world.assert_same()
    assert target.calls["open_txns"] == 1
    assert target.calls["allocate_table_write_ids"] == 2
    assert target.calls["get_max_allocated_write_id"] == 2
    assert (target.calls["commit_replays"], target.calls["commit_txn"]) == (1, 0)


def test_commits_that_wait_are_loaded_where_a_later_one_is_refused(world: ReplWorld) -> None:
    """I6: one that overwrites with nothing makes a directory at its turn, which cannot be made."""
    world.replicate()
    for number in (2, 3):
        world.insert("t", (number, "a"))
    with world.transaction() as txn:
        base = world.root("t").child(f"base_{txn.write_id('t'):07d}")
        base.volume.make_directory(base.path)
    world.insert("t", (9, "a"))
    world.dump()
    location = world.target.get_table("dst", "t").storage.location or ""
    in_the_way = Path(location.removeprefix("file:")) / base.name
    in_the_way.write_text("a file where a directory is to be")
    target = Counting(world.target)
    loader = world.loader(target)
    with pytest.raises((OSError, ReplError)):
        loader.run(loader.plan(world.load_request))
    assert target.calls["commit_replays"] == 1
    assert [row["id"] for row in world.replica.rows("t")] == [1, 2, 3]
    in_the_way.unlink()
    world.load()
    world.assert_same()
    assert [row["id"] for row in world.replica.rows("t")] == [9]


@pytest.mark.parametrize("last", ["nothing", "an insert"])
def test_commits_that_wrote_nothing_count_where_the_next_change_is_written_down(
    world: ReplWorld, last: str
) -> None:
    """As INSERTs of no rows: what is written down after them is not before them, which looked as if
    somebody else had moved the replica on."""
    world.replicate()
    for _ in range(3):
        txn_id = world.open()
        world.source.allocate_table_write_ids(
            AllocateWriteIdsRequest(database_name="src", table_name="t", txn_ids=(txn_id,))
        )
        world.commit(txn_id)
    if last == "an insert":
        world.insert("t", (7, "a"))
    world.create_table("u")
    world.replicate()
    world.assert_same()


def test_an_abort_waits_for_the_commits_before_it(world: ReplWorld) -> None:
    """What an event does comes after all that is before it, but for what begins a write."""
    world.replicate()
    lost = world.begin()
    lost.insert("t", [(8, "never")])
    for number in (2, 3):
        world.insert("t", (number, "a"))
    lost.abort()
    world.dump()
    steps: list[str] = []
    target = Noting(world.target, steps)
    loader = world.loader(target)
    loader.run(loader.plan(world.load_request))
    ends = [step for step in steps if step in ("commit_replays", "commit_txn", "abort_txn")]
    assert ends == ["commit_replays", "abort_txn"]
    world.assert_same()


class Noting(Passing):
    """Writes down the names of its calls."""

    def __init__(self, inner: Any, steps: list[str]) -> None:
        super().__init__(inner)
        self._steps = steps

    def __getattr__(self, name: str) -> Any:
        self._steps.append(name)
        return super().__getattr__(name)


def write_much(world: ReplWorld) -> None:
    """Transactions of every kind in one window: side by side, aborted, of partitions, with a note
    of statistics between them."""
    world.insert("t", (4, "d"))
    first, second, lost = world.begin(), world.begin(), world.begin()
    first.insert("t", [(5, "e")])
    lost.insert("t", [(6, "never")])
    second.insert("t", [(7, "g")])
    second.insert("parted", [(3, "x")], partition="p=x")
    lost.abort()
    second.commit()
    table = world.describe("t")
    noted = replace(table, parameters={**table.parameters, "numRows": "5"})
    world.source.alter_table("src", "t", noted)
    first.commit()
    world.delete("t", 1, 5)
    world.insert("parted", (4, "y"), partition="p=y")


def killed_load(world: ReplWorld, at: int) -> bool:
    """Whether a load died at a point of its way; else it came to its end before."""
    faults = FaultPlan()
    faults.crash_at = at
    target = str(world.folder / "target")
    resolve = faulty(world.resolve, faults, lambda place: place.path.startswith(target))
    loader = ReplLoad(FaultyMetastore(world.target, faults), resolve, clock=world.clock)
    try:
        loader.run(loader.plan(world.load_request))
    except CrashError:
        return True
    return False


def resetting(world: ReplWorld) -> Callable[[], None]:
    """What brings the replica back to what it is now, and its dump to one that is not loaded."""
    database, files, kept = (
        world.replica.backup(),
        world.folder / "target",
        world.folder / "kept",
    )
    shutil.copytree(files, kept)

    def reset() -> None:
        shutil.rmtree(files)
        shutil.copytree(kept, files)
        world.replica.restore(database)
        for mark in ("_finished_load", "_load_metadata"):
            for path in world.repl_root.rglob(mark):
                path.unlink()

    return reset


def test_a_window_may_be_killed_anywhere(busy_world: ReplWorld) -> None:
    """I1, I6: what was done ahead of its turn is not seen, and is done again without harm."""
    world = busy_world
    world.replicate()
    write_much(world)
    world.dump()
    reset = resetting(world)
    rows, last_event = world.replica.rows("t"), world.last_event()
    killed = 0
    for at in range(1, 1000, KILLED_EACH):
        reset()
        if not killed_load(world, at):
            break
        killed += 1
        if world.last_event() == last_event:
            assert world.replica.rows("t") == rows
        world.load()
        world.assert_same()
    assert killed > 6


def test_a_partition_that_goes_between_two_commits_takes_no_file_of_the_later(
    busy_world: ReplWorld,
) -> None:
    """Files that came before the drop of their directory would go with it."""
    world = busy_world
    world.replicate()
    world.insert("parted", (8, "old"), partition="p=x")
    world.source.drop_partitions("src", "parted", ["p=x"])
    world.add_partition("parted", "x")
    world.insert("parted", (9, "new"), partition="p=x")
    world.dump()
    world.load()
    world.assert_same()


def test_what_cannot_be_done_stops_the_load_at_its_turn(world: ReplWorld) -> None:
    """I6: what comes before is loaded."""
    world.replicate()
    for number in (2, 3, 4):
        world.insert("t", (number, "a"))
    world.dump()
    loader = world.loader()
    plan = loader.plan(world.load_request)
    shutil.rmtree(world.path() / "delta_0000004_0000004_0000")
    with pytest.raises(SourceFileMissingError):
        loader.run(plan)
    assert [row["id"] for row in world.replica.rows("t")] == [1, 2, 3]


def test_a_load_that_was_killed_while_it_opened_opens_the_others(world: ReplWorld) -> None:
    """One call opens nothing if it finds one open; none of the others may count as open then."""
    world.replicate()
    writers = [world.begin() for _ in range(3)]
    for number, writer in enumerate(writers, 2):
        writer.insert("t", [(number, "a")])
        writer.commit()
    world.dump()
    names = world.load_request.names
    Replica(world.target, world.resolve, names).open_together([writers[1].id])
    target = Counting(world.target)
    loader = world.loader(target)
    loader.run(loader.plan(world.load_request))
    world.assert_same()
    assert target.calls["allocate_table_write_ids"] == 1


def test_write_ids_that_do_not_follow_on_the_replicas_are_refused(world: ReplWorld) -> None:
    """Who wrote those between is in no dump, so what they wrote would be missing without a word."""
    world.insert("t", (2, "b"))
    world.replicate()
    lower = update(NEXT_WRITE_ID).where(NEXT_WRITE_ID.c.NWI_TABLE == "t").values(NWI_NEXT=2)
    world.replica.execute(lower)
    world.insert("t", (3, "c"))
    world.dump()
    with pytest.raises(ReplError, match="begins with write id 3 .* which stands at 1"):
        world.load()


def test_what_a_killed_load_opened_is_ended_though_its_table_comes_whole(world: ReplWorld) -> None:
    """Else its housekeeping gives it up days later, with the replica; nothing is cleaned before."""
    world.create_table("u")
    world.replicate()
    for number in (2, 3):
        world.insert("t", (number, "a"))
    world.insert("u", (1, "a"))
    world.dump()
    assert killed_load(world, 19)
    begun = [txn for txn in world.target.get_open_txns().txns if txn.state is TxnState.OPEN]
    assert len(begun) == 3
    world.dump(tables_anew=("t",))
    world.load()
    world.assert_same()
    assert not world.target.get_replayed_txns("dst.*")
    world.clock.advance_ms(12 * DAY_MS)
    world.target.run_housekeeping()
    world.insert("t", (4, "a"))
    world.replicate()
    world.assert_same()
