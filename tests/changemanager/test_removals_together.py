"""Several victims of one table: each step of the store is one for all; kills come at any step."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import pytest

from changemanager import delete_protocol
from changemanager.errors import (
    ArchivedFileLostError,
    ChangeManagerError,
    IntentError,
    LeaseLostError,
)
from changemanager.lease import never_lost
from changemanager.manifest import IntentState
from changemanager.removal import DeletionReport, Removal, RemovalWork
from changemanager.removed_directories import QUIET_MS
from tests.support.archive_world import ArchiveWorld, context
from tests.support.faults import CrashError, FarVolume, FaultyVolume, LinklessVolume

VICTIMS = ("t/delta_1_1", "t/delta_2_2", "t/delta_3_3")
OPEN = tuple(state for state in IntentState if state.is_open)
VOLUMES = (FaultyVolume, LinklessVolume, FarVolume)


def make(folder: Path, volume_class: type[FaultyVolume] = FaultyVolume) -> ArchiveWorld:
    folder.mkdir()
    world = ArchiveWorld(folder, volume_class=volume_class)
    for victim in VICTIMS:
        world.write(f"{victim}/bucket_00000", f"rows of {victim}".encode())
        world.write(f"{victim}/_orc_acid_version", b"2")
    world.write("t/base_3/bucket_00000", b"live rows")
    return world


def remove_all(
    world: ArchiveWorld,
    *,
    is_archived: bool = True,
    require_same: Callable[[], None] = never_lost,
    changed: Collection[str] = (),
    listed: Collection[str] = (),
    require_quiet: Callable[[], None] = never_lost,
    require_lease: Callable[[], None] = never_lost,
) -> tuple[object, ...]:
    removals = [
        Removal(
            victim=str(world.warehouse / victim),
            root=str(world.warehouse),
            context=context(location=str(world.warehouse / "t")),
            is_archived=is_archived,
        )
        for victim in VICTIMS
    ]

    def check(asked: Sequence[Removal]) -> Sequence[ChangeManagerError | None]:
        require_same()
        error = ChangeManagerError("it is another one now")
        return [error if one.victim.endswith(tuple(changed)) else None for one in asked]

    def look_for_readers(asked: Sequence[Removal]) -> Sequence[ChangeManagerError | None]:
        require_quiet()
        error = ChangeManagerError("it is being read")
        return [error if one.victim.endswith(tuple(listed)) else None for one in asked]

    return world.protocol.remove_all(
        removals, require_same=check, require_quiet=look_for_readers, require_lease=require_lease
    )


def is_there(world: ArchiveWorld, victim: str) -> bool:
    return (world.warehouse / victim / "bucket_00000").exists()


def states(world: ArchiveWorld) -> list[IntentState]:
    rows = world.store.intents(list(IntentState))
    return [row.state for row in sorted(rows, key=lambda row: row.victim)]


def fails_at(call: int, error: Exception) -> Callable[[], None]:
    calls = itertools.count(1)

    def check() -> None:
        if next(calls) == call:
            raise error

    return check


@pytest.mark.parametrize("is_archived", [True, False])
def test_the_store_is_asked_once_for_all(tmp_path: Path, is_archived: bool) -> None:
    world = make(tmp_path / "w")
    assert all(
        isinstance(one, DeletionReport) for one in remove_all(world, is_archived=is_archived)
    )
    labels = world.faults.labels
    assert labels.count("after add_intents") == 1
    assert labels.count("after advance_intents") == (2 if is_archived else 1)
    first_touch = next(at for at, label in enumerate(labels) if "remove_file" in label)
    assert labels.index("after add_intents") < first_touch
    assert states(world) == [IntentState.DELETED] * 3


@pytest.mark.parametrize("is_archived", [True, False])
@pytest.mark.parametrize("volume_class", VOLUMES)
def test_killed_at_any_step_nothing_is_lost_and_all_comes_to_an_end(
    tmp_path: Path, volume_class: type[FaultyVolume], is_archived: bool
) -> None:
    contents = {victim: f"rows of {victim}".encode() for victim in VICTIMS}
    for crash_at in itertools.count(1):
        world = make(tmp_path / f"w{crash_at}", volume_class)
        world.start(crash_at)
        try:
            remove_all(world, is_archived=is_archived)
            break
        except CrashError:
            pass
        named = {row.victim for row in world.store.intents(list(IntentState))}
        for victim, content in contents.items():
            place = world.warehouse / victim / "bucket_00000"
            whole = place.exists() and place.read_bytes() == content
            assert whole or f"file:{world.warehouse}/{victim}" in named
            assert whole or not is_archived or content in world.archived().values()
        world.start()
        outcomes = remove_all(world, is_archived=is_archived)
        assert all(isinstance(outcome, DeletionReport) for outcome in outcomes), outcomes
        assert not any(is_there(world, victim) for victim in VICTIMS)
        assert world.store.intents(OPEN) == ()
        if is_archived:
            assert set(contents.values()) <= set(world.archived().values())
        assert is_there(world, "t/base_3")
    assert crash_at > 20


def test_one_that_fails_stops_no_other(tmp_path: Path) -> None:
    """Its archived copy vanishes before anything of it is deleted."""
    world = make(tmp_path / "w")
    lost = f"rows of {VICTIMS[1]}".encode()
    keep = world.archive.keep

    def losing(place, files, **given):  # type: ignore[no-untyped-def]
        kept = keep(place, files, **given)
        for path in world.cmroot.iterdir():
            if path.read_bytes() == lost:
                path.unlink()
        return kept

    world.archive.keep = losing  # type: ignore[method-assign]
    first, second, third = remove_all(world)
    assert isinstance(first, DeletionReport) and isinstance(third, DeletionReport)
    assert isinstance(second, ArchivedFileLostError)
    assert [is_there(world, victim) for victim in VICTIMS] == [False, True, False]
    expected = [IntentState.DELETED, IntentState.ABANDONED, IntentState.DELETED]
    assert states(world) == expected


@pytest.mark.parametrize("call", [1, 2, 3])
def test_a_table_that_is_no_longer_the_same_loses_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    """Asked before each victim of many files; what is gone by then is on record as gone."""
    monkeypatch.setattr(delete_protocol, "FILES_AT_ONCE", 2)
    world = make(tmp_path / "w")
    check = fails_at(call, RuntimeError("made anew"))
    with pytest.raises(RuntimeError, match="made anew"):
        remove_all(world, is_archived=False, require_same=check)
    gone = call - 1
    assert [is_there(world, victim) for victim in VICTIMS] == [at >= gone for at in range(3)]
    assert states(world) == [IntentState.DELETED] * gone + [IntentState.ARCHIVED] * (3 - gone)


@pytest.mark.parametrize("is_archived", [True, False])
@pytest.mark.parametrize("changed", [VICTIMS[:1], VICTIMS[1:]])
def test_of_those_that_may_not_go_any_more_nothing_is_touched(
    tmp_path: Path, changed: Sequence[str], is_archived: bool
) -> None:
    """Their rows stay open; the others go."""
    world = make(tmp_path / "w")
    outcomes = remove_all(world, is_archived=is_archived, changed=changed)
    for victim, outcome, state in zip(VICTIMS, outcomes, states(world), strict=True):
        stays = victim in changed
        assert is_there(world, victim) is stays
        assert isinstance(outcome, ChangeManagerError) is stays
        assert state.is_open is stays
        is_kept = f"rows of {victim}".encode() in world.archived().values()
        assert is_kept is (is_archived and not stays)


@pytest.mark.parametrize(("files_at_once", "calls"), [(1, 3), (2, 3), (4, 2), (16, 1)])
def test_few_files_go_after_one_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files_at_once: int, calls: int
) -> None:
    """Never more of them than that, unless a victim has more."""
    monkeypatch.setattr(delete_protocol, "FILES_AT_ONCE", files_at_once)
    world = make(tmp_path / "w")
    asked: list[int] = []

    def check() -> None:
        asked.append(sum("remove_file" in label for label in world.faults.labels))

    remove_all(world, is_archived=False, require_same=check)
    assert len(asked) == calls
    assert not any(is_there(world, victim) for victim in VICTIMS)


@pytest.mark.parametrize("is_archived", [False, True])
def test_what_was_asked_before_the_look_is_not_enough(tmp_path: Path, is_archived: bool) -> None:
    """A table that is made anew while its victims are looked at has files of the same names: it is
    asked about after the look, before the first file goes."""
    world = make(tmp_path / "w")
    looks: list[str] = []
    protocol = world.protocol
    look = protocol._look_again

    def noted(work: RemovalWork) -> None:
        looks.append(work.place.uri)
        look(work)

    def check() -> None:
        if len(looks) == len(VICTIMS):
            raise RuntimeError("made anew")

    protocol._look_again = noted  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="made anew"):
        remove_all(world, is_archived=is_archived, require_same=check)
    assert all(is_there(world, victim) for victim in VICTIMS)


def test_nothing_is_archived_of_a_table_that_is_no_longer_the_same(tmp_path: Path) -> None:
    world = make(tmp_path / "w")
    with pytest.raises(RuntimeError, match="made anew"):
        remove_all(world, require_same=fails_at(2, RuntimeError("made anew")))
    assert f"rows of {VICTIMS[1]}".encode() not in world.archived().values()
    assert all(is_there(world, victim) for victim in VICTIMS)


def test_who_lost_the_lease_changes_nothing_more(tmp_path: Path) -> None:
    world = make(tmp_path / "w")
    calls = 5  # before all rows, before all removals, two files of the first victim; the second's
    with pytest.raises(LeaseLostError):
        remove_all(world, is_archived=False, require_lease=fails_at(calls, LeaseLostError("lost")))
    assert "after remove_file bucket_00000" in world.faults.labels
    assert states(world) == [IntentState.ARCHIVED] * 3
    assert is_there(world, VICTIMS[2])


def test_a_row_that_another_process_has_moved_fails_its_victim_alone(tmp_path: Path) -> None:
    world = make(tmp_path / "w")
    advance = world.store.advance_intents
    stolen: list[str] = []

    def after_another(ids, from_state, to_state, now_ms, reason=""):  # type: ignore[no-untyped-def]
        if not stolen:
            rows = world.store.intents(
                [from_state], victims=[f"file:{world.warehouse}/{VICTIMS[0]}"]
            )
            stolen.extend(row.intent_id for row in rows)
            advance(stolen, from_state, IntentState.ABANDONED, now_ms, "another")
        return advance(ids, from_state, to_state, now_ms, reason)

    world.store.advance_intents = after_another  # type: ignore[method-assign]
    first, second, third = remove_all(world)
    assert isinstance(first, IntentError)
    assert isinstance(second, DeletionReport) and isinstance(third, DeletionReport)
    assert [is_there(world, victim) for victim in VICTIMS] == [True, False, False]


@pytest.mark.parametrize("is_archived", [True, False])
@pytest.mark.parametrize("listed", [VICTIMS[:1], VICTIMS])
def test_emptied_directories_stay_while_they_may_be_listed(
    tmp_path: Path, listed: Sequence[str], is_archived: bool
) -> None:
    """Their rows stay open, and who comes again has only the directories left to remove."""
    world = make(tmp_path / "w")
    outcomes = remove_all(world, is_archived=is_archived, listed=listed)
    for victim, outcome, state in zip(VICTIMS, outcomes, states(world), strict=True):
        place, stays = world.warehouse / victim, victim in listed
        assert place.exists() is stays
        assert not stays or list(place.iterdir()) == []
        assert isinstance(outcome, ChangeManagerError) is stays
        assert state is (IntentState.ARCHIVED if stays else IntentState.DELETED)
    again = remove_all(world, is_archived=is_archived)
    assert all(isinstance(outcome, DeletionReport) for outcome in again), again
    assert not any((world.warehouse / victim).exists() for victim in VICTIMS)
    assert states(world) == [IntentState.DELETED] * 3


@pytest.mark.parametrize("files_at_once", [1, 16])
def test_who_lists_is_looked_for_between_the_last_file_and_the_first_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files_at_once: int
) -> None:
    monkeypatch.setattr(delete_protocol, "FILES_AT_ONCE", files_at_once)
    world = make(tmp_path / "w")
    counted: list[tuple[int, int]] = []

    def look() -> None:
        there = [world.warehouse / victim for victim in VICTIMS]
        counted.append(
            (sum(is_there(world, victim) for victim in VICTIMS), sum(map(Path.exists, there)))
        )

    remove_all(world, is_archived=False, require_quiet=look)
    assert counted == ([(0, 3)] if files_at_once == 16 else [(2, 3), (1, 2), (0, 1)])


def test_who_lists_is_looked_for_again_when_the_answer_is_old(tmp_path: Path) -> None:
    """Before each directory more time goes by than an answer is fresh."""
    world = make(tmp_path / "w")
    left: list[int] = []

    def look() -> None:
        left.append(sum((world.warehouse / victim).exists() for victim in VICTIMS))

    slow = lambda: world.clock.advance_ms(QUIET_MS)  # noqa: E731
    remove_all(world, is_archived=False, require_quiet=look, require_lease=slow)
    assert left == [3, 2, 1]


def test_an_answer_that_is_always_late_holds_nothing_up(tmp_path: Path) -> None:
    world = make(tmp_path / "w")
    remove_all(world, is_archived=False, require_quiet=lambda: world.clock.advance_ms(QUIET_MS))
    assert not any((world.warehouse / victim).exists() for victim in VICTIMS)


def test_what_came_into_an_emptied_directory_meanwhile_stays(tmp_path: Path) -> None:
    world = make(tmp_path / "w")
    remove_all(world, is_archived=False, listed=VICTIMS)
    world.write(f"{VICTIMS[0]}/bucket_00009", b"somebody else's")
    outcomes = remove_all(world, is_archived=False, changed=VICTIMS[:1])
    assert [isinstance(outcome, DeletionReport) for outcome in outcomes] == [False, True, True]
    assert (world.warehouse / VICTIMS[0] / "bucket_00009").exists()
