"""An incremental dump that was killed is gone on with, and is what it would have been (I1, I13)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.errors import ReplError
from hms_bridge.repl.dump.plan import DumpKind, DumpPlan, IncrementalRules
from hms_bridge.repl.dump.repl_dump import ReplDump
from hms_bridge.repl.format.directories import DumpState, list_dumps
from hms_bridge.repl.format.layout import PROGRESS_DIRECTORY
from hms_bridge.repl.format.manifest import text_digest
from hms_bridge.repl.format.progress import RANGE
from tests.support.faults import CrashError, FaultPlan, FaultyMetastore, faulty
from tests.support.passing import Counting
from tests.support.repl_world import ReplWorld

NOTED = IncrementalRules(noted_each=2)
KILLED_EACH = 9
AT_ITS_END = frozenset({"_finished_dump"})
"""Has the time at which a dump was finished."""


@pytest.fixture
def world(busy_world: ReplWorld) -> ReplWorld:
    """A replica, and what it lacks: transactions side by side, aborted, of partitions; and
    definitions."""
    world = busy_world
    world.replicate()
    world.insert("t", (4, "d"))
    first, lost = world.begin(), world.begin()
    first.insert("t", [(5, "e")])
    lost.insert("t", [(6, "never")])
    lost.abort()
    first.commit()
    world.add_partition("parted", "z")
    world.insert("parted", (7, "z"), partition="p=z")
    world.delete("t", 1)
    return world


def planned(world: ReplWorld, **changes: object) -> DumpPlan:
    return world.dumper().plan(world.dump_request(**{"events": NOTED, **changes}))


def killed(world: ReplWorld, at: int, **changes: Any) -> bool:
    """Whether a dump died at a point of its way; else it was finished before."""
    faults = FaultPlan()
    faults.crash_at = at
    dumper = ReplDump(
        FaultyMetastore(world.source, faults),
        faulty(world.resolve, faults, lambda place: place.path.startswith(str(world.repl_root))),
        world.clock,
        world.token,
        world.source.manifest,
    )
    try:
        dumper.run(dumper.plan(world.dump_request(events=NOTED, **changes)))
    except CrashError:
        return True
    return False


def killed_late(world: ReplWorld) -> Path:
    """What a dump has left that was killed when most of its events were written."""
    assert any(is_left_with_notes(world, at) for at in range(150, 1, -10))
    return unfinished(world)


def is_left_with_notes(world: ReplWorld, at: int) -> bool:
    assert killed(world, at)
    return len(notes(unfinished(world))) > 3


def unfinished(world: ReplWorld) -> Path:
    (left,) = [dump for dump in dumps(world) if dump.state is DumpState.UNFINISHED]
    return Path(left.paths.root.removeprefix("file:"))


def dumps(world: ReplWorld):
    return list_dumps(world.resolve, str(world.repl_root), "src")


def notes(dump: Path) -> list[Path]:
    return sorted(path for path in (dump / PROGRESS_DIRECTORY).glob("[0-9]*"))


def texts(directory: str | None) -> dict[str, str]:
    root = Path((directory or "").removeprefix("file:"))
    return {
        str(path.relative_to(root)): path.read_text()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name not in AT_ITS_END
    }


def resetting(world: ReplWorld) -> Callable[[], None]:
    """What removes all dumps but those that are there now."""
    kept = {dump.paths.root for dump in dumps(world)}

    def reset() -> None:
        for dump in dumps(world):
            if dump.paths.root not in kept:
                shutil.rmtree(dump.paths.root.removeprefix("file:"))

    return reset


def test_it_may_be_killed_anywhere_and_is_as_if_it_never_was(world: ReplWorld) -> None:
    reset = resetting(world)
    whole = texts(world.dump(events=NOTED, is_previous_kept=True).directory)
    reset()
    resumed = 0
    for at in range(1, 1000, KILLED_EACH):
        if not killed(world, at, is_previous_kept=True):
            break
        resumed += planned(world).resumed is not None
        report = world.dump(events=NOTED, is_previous_kept=True)
        assert texts(report.directory) == whole, f"killed at point {at}"
        reset()
    assert resumed > 5
    world.load()
    world.assert_same()


def test_it_may_be_killed_again_and_again(world: ReplWorld) -> None:
    for at in range(1, 1000, 7):
        if not killed(world, at):
            break
    assert planned(world).kind is DumpKind.BLOCKED
    world.load()
    world.assert_same()


def test_what_is_written_is_not_asked_for_again(world: ReplWorld) -> None:
    left = killed_late(world)
    plan = planned(world)
    assert plan.resumed is not None
    assert plan.resumed.directory.endswith(left.name)
    assert plan.reason.endswith(f"goes on with {plan.resumed.directory}, which was killed")
    source = Counting(world.source)
    dumper = world.dumper(source)
    dumper.run(plan)
    commits = sum(event.kind == "EVENT_COMMIT_TXN" for event in plan.resumed.written.values())
    assert commits > 0
    assert source.calls["get_write_events"] == plan.events.dumped["EVENT_COMMIT_TXN"] - commits
    world.load()
    world.assert_same()


def test_its_end_stays_and_the_next_dump_brings_the_rest(world: ReplWorld) -> None:
    killed_late(world)
    until = planned(world).until_event_id
    world.insert("t", (8, "later"))
    plan = planned(world)
    assert plan.until_event_id == until
    assert plan.left_event_count == 3
    report = world.dump(events=NOTED)
    assert (report.to_event_id, report.left_event_count) == (until, 3)
    world.load()
    world.replicate()
    world.assert_same()


def test_a_text_that_was_torn_is_made_anew(world: ReplWorld) -> None:
    whole = texts(world.dump(events=NOTED, is_previous_kept=True).directory)
    resetting_to_loaded(world)
    left = killed_late(world)
    noted = json.loads(notes(left)[0].read_text().splitlines()[0])
    torn = left / "hive" / next(iter(noted["texts"]))
    torn.write_text(torn.read_text()[:10])
    resumed = planned(world).resumed
    assert resumed is not None
    assert noted["event"] not in resumed.written
    assert texts(world.dump(events=NOTED).directory) == whole


def resetting_to_loaded(world: ReplWorld) -> None:
    for dump in dumps(world):
        if dump.state is DumpState.FINISHED:
            shutil.rmtree(dump.paths.root.removeprefix("file:"))


def test_an_event_that_is_another_one_now_is_made_anew(world: ReplWorld) -> None:
    """A source that was restored counts again from where it was."""
    whole = texts(world.dump(events=NOTED, is_previous_kept=True).directory)
    resetting_to_loaded(world)
    left = killed_late(world)
    for path in notes(left):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps({**line, "hash": "0"}) + "\n" for line in lines))
    plan = planned(world)
    assert plan.resumed is not None
    source = Counting(world.source)
    report = world.dumper(source).run(plan)
    assert texts(report.directory) == whole
    assert source.calls["get_write_events"] == plan.events.dumped["EVENT_COMMIT_TXN"]


def test_what_was_archived_since_it_began_is_kept_for_the_next(world: ReplWorld) -> None:
    """I5: what came after its end, and was replaced before it was gone on with."""
    began_at_ms = world.clock.now_ms()
    killed_late(world)
    world.clock.advance_ms(3_600_000)
    world.insert("t", (8, "later"))
    world.compact("t")
    world.clean()
    world.clock.advance_ms(60_000)
    world.dump(events=NOTED)
    (pin,) = [pin for pin in world.source.manifest.pins() if pin.holder == world.policy_pin]
    assert pin.archived_since_ms is not None
    assert pin.archived_since_ms <= began_at_ms
    world.load()
    world.replicate()
    world.assert_same()


def test_another_command_begins_anew(world: ReplWorld) -> None:
    killed_late(world)
    assert planned(world).resumed is not None
    assert planned(world, has_checksums=False).resumed is None
    assert planned(world, event_limit=5).resumed is None
    assert planned(world, tables_anew=("t",)).resumed is None
    assert planned(world, is_bootstrap_forced=True).resumed is None


def test_it_follows_on_the_same_dump_only(world: ReplWorld) -> None:
    left = killed_late(world)
    begun = json.loads((left / PROGRESS_DIRECTORY / RANGE).read_text())
    for other in ({"previous": "/another"}, {"after": begun["after"] - 1}, {"until": 10_000}):
        (left / PROGRESS_DIRECTORY / RANGE).write_text(json.dumps({**begun, **other}))
        assert planned(world).resumed is None
    (left / PROGRESS_DIRECTORY / RANGE).write_text("{")
    assert planned(world).resumed is None


def test_a_note_that_leads_out_of_the_dump_is_not_followed(world: ReplWorld) -> None:
    left = killed_late(world)
    first, *others = notes(left)
    for path in others:
        path.unlink()
    line, *_ = [json.loads(line) for line in first.read_text().splitlines()]
    other, name = left / "hive/7", line["place"]
    other.mkdir()
    (other / "_dumpmetadata").write_text("a")
    digest = text_digest("a")
    for place, path in (
        (f"../{left.name}/hive/7", f"{name}/a"),
        ("7", "7/_dumpmetadata"),
        (name, f"{name}/../7/a"),
    ):
        first.write_text(json.dumps({**line, "place": place, "texts": {path: digest}}) + "\n")
        assert planned(world).resumed is None


def test_one_that_wakes_writes_nothing_into_the_one_that_goes_on(world: ReplWorld) -> None:
    """It goes on under a name of its own."""
    left = killed_late(world)
    report = world.dump(events=NOTED)
    assert report.directory is not None
    assert not report.directory.endswith(left.name)
    assert not left.exists()


def test_a_refused_dump_is_not_gone_on_with(world: ReplWorld) -> None:
    """Else it could be refused for ever for what a new one would not say."""
    left = killed_late(world)
    plan = planned(world)
    shutil.rmtree(left)
    with pytest.raises(ReplError, match="is not there any more; dump again"):
        world.dumper().run(plan)
    world.dump(events=NOTED)
    world.load()
    world.assert_same()


def test_a_bootstrap_begins_anew(empty_world: ReplWorld) -> None:
    world = empty_world
    world.create_table("t")
    world.insert("t", (1, "a"))
    assert killed(world, 30)
    assert planned(world).resumed is None
    world.dump()
    world.load()
    world.assert_same()
