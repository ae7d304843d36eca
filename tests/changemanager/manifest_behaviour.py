"""What every manifest must do; each implementation runs this class with its own `manifest`.

class TestMyManifest(ManifestBehaviour):
    @pytest.fixture
    def manifest(self): ...
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from changemanager.errors import ArchiveBusyError, IntentError
from changemanager.figures import ArchiveFigures
from changemanager.given_up import GivenUp, HeldFiles
from changemanager.manifest import (
    LEASE_MS,
    ArchiveCause,
    ArchiveContext,
    ArchivedFile,
    ArchiveIntent,
    ArchiveManifest,
    ArchiveOrigin,
    EntryState,
    IntentFile,
    IntentState,
    Pin,
    PinKind,
    ReservedFile,
)
from changemanager.plausible_time import TimeGap
from tests.support.intents import add_intent, advance_intent

CMROOT = "file:/cmroot"
OTHER = "hdfs://ns/cmroot"
CHECKSUM = "00000200" + "0" * 16 + "a" * 32
NAME = f"bucket_00000_{CHECKSUM}"
SECOND = f"bucket_00001_{CHECKSUM}"
T0 = 1_700_000_000_000
CONTEXT = ArchiveContext(
    cause=ArchiveCause.OBSOLETE,
    location="file:/wh/db.db/t",
    database="db",
    table="t",
    partition="p=1/q=a b",
    txn_id=12,
    compaction_id=7,
)


def reserved(*names: str) -> list[ReservedFile]:
    return [ReservedFile(name=name, checksum=CHECKSUM, size_bytes=31) for name in names]


def archived(
    *names: str,
    directory: str = "delta_1_1",
    at_ms: int = T0,
    is_remaining_in_trash: bool = False,
    context: ArchiveContext = CONTEXT,
) -> list[ArchivedFile]:
    return [
        ArchivedFile(
            name=name,
            origin=ArchiveOrigin(
                uri=f"file:/wh/db.db/t/{directory}/{name.rpartition('_')[0]}",
                directory=directory,
                context=context,
                archived_at_ms=at_ms,
            ),
            is_remaining_in_trash=is_remaining_in_trash,
        )
        for name in names
    ]


def intent(
    intent_id: str = "i1",
    *,
    victim: str = "file:/wh/db.db/t/delta_1_1",
    at_ms: int = T0,
    context: ArchiveContext = CONTEXT,
    cmroot: str | None = CMROOT,
) -> ArchiveIntent:
    return ArchiveIntent(
        intent_id=intent_id,
        victim=victim,
        cmroot=cmroot,
        files=(
            IntentFile(
                path="bucket_00000",
                size_bytes=31,
                mtime_ms=T0 - 5,
                checksum=CHECKSUM if cmroot else None,
                archive_name=NAME if cmroot else None,
            ),
            IntentFile(path="sub/ä .crc", size_bytes=0, mtime_ms=None),
        ),
        context=context,
        is_remaining_in_trash=False,
        state=IntentState.PLANNED,
        created_at_ms=at_ms,
        updated_at_ms=at_ms,
    )


def claim(
    manifest: ArchiveManifest,
    name: str = NAME,
    *,
    seen: int | None = T0,
    overridden: tuple[str, ...] = (),
    owner: str = "one",
    now_ms: int = T0 + 100,
) -> bool:
    return manifest.claim_purge(
        CMROOT,
        name,
        seen_archived_at_ms=seen,
        overridden_holders=overridden,
        owner=owner,
        now_ms=now_ms,
    )


def purged(
    manifest: ArchiveManifest, name: str = NAME, *, owner: str = "one", now_ms: int = T0 + 200
) -> bool:
    return manifest.record_purged(CMROOT, name, owner=owner, now_ms=now_ms)


def released(
    manifest: ArchiveManifest, name: str = NAME, *, owner: str | None = "one", now_ms: int = T0
) -> bool:
    return manifest.release_purge(CMROOT, name, owner=owner, now_ms=now_ms)


def pin(holder: str = "dump:1", **given: object) -> Pin:
    values: dict[str, object] = {
        "kind": PinKind.DUMP, "reason": "not loaded yet", "created_at_ms": T0,
    } | given  # fmt: skip
    return Pin(holder=holder, **values)  # type: ignore[arg-type]


class ManifestBehaviour:
    """Inherit, and give the fixture `manifest`."""

    # -- records

    def test_knows_nothing_at_first(self, manifest: ArchiveManifest) -> None:
        assert manifest.entries(CMROOT) == {}
        assert manifest.intents(list(IntentState)) == ()
        assert manifest.pins() == ()

    def test_a_file_is_reserved_then_archived(self, manifest: ArchiveManifest) -> None:
        manifest.reserve(CMROOT, reserved(NAME), T0)
        entry = manifest.entries(CMROOT)[NAME]
        assert (entry.state, entry.checksum, entry.size_bytes, entry.archived_at_ms) == (
            EntryState.RESERVED, CHECKSUM, 31, T0,
        )  # fmt: skip
        manifest.record_archived(CMROOT, archived(NAME, at_ms=T0 + 1), T0 + 1)
        entry = manifest.entries(CMROOT)[NAME]
        assert entry.state is EntryState.ARCHIVED
        assert entry.archived_at_ms == T0 + 1
        assert entry.origins == (archived(NAME, at_ms=T0 + 1)[0].origin,)
        assert not entry.is_remaining_in_trash

    def test_the_same_content_from_two_places_is_one_file_with_two_origins(
        self, manifest: ArchiveManifest
    ) -> None:
        for place, time in (("delta_1_1", T0), ("delta_2_2", T0 + 9)):
            manifest.reserve(CMROOT, reserved(NAME), time)
            manifest.record_archived(CMROOT, archived(NAME, directory=place, at_ms=time), time)
        entry = manifest.entries(CMROOT)[NAME]
        assert [origin.directory for origin in entry.origins] == ["delta_1_1", "delta_2_2"]
        assert entry.archived_at_ms == T0 + 9

    def test_files_are_found_by_where_they_were(self, manifest: ArchiveManifest) -> None:
        """Only those below the directory, with the origins there; purged ones too."""
        for place, name in (
            ("delta_1_1", NAME), ("delta_2_2", NAME), ("DELTA_1_1", SECOND), ("delta_1_10", SECOND),
        ):  # fmt: skip
            manifest.reserve(CMROOT, reserved(name), T0)
            manifest.record_archived(CMROOT, archived(name, directory=place), T0)
        table = "file:/wh/db.db/t"
        (entry,) = manifest.archived_below(CMROOT, f"{table}/delta_1_1")
        assert entry.name == NAME
        assert [origin.directory for origin in entry.origins] == ["delta_1_1"]
        found = {entry.name: entry for entry in manifest.archived_below(CMROOT, f"{table}/")}
        assert set(found) == {NAME, SECOND}
        assert found == manifest.entries(CMROOT)
        assert manifest.archived_below(CMROOT, "file:/wh/db_db/t") == ()
        assert manifest.archived_below(OTHER, table) == ()
        assert claim(manifest)
        assert purged(manifest)
        (entry,) = manifest.archived_below(CMROOT, f"{table}/delta_1_1")
        assert entry.state is EntryState.PURGED

    def test_recording_twice_keeps_one_origin_with_its_first_time(
        self, manifest: ArchiveManifest
    ) -> None:
        manifest.reserve(CMROOT, reserved(NAME), T0)
        manifest.record_archived(CMROOT, archived(NAME, at_ms=T0), T0)
        manifest.record_archived(CMROOT, archived(NAME, at_ms=T0 + 5), T0 + 5)
        entry = manifest.entries(CMROOT)[NAME]
        assert [origin.archived_at_ms for origin in entry.origins] == [T0]
        assert entry.archived_at_ms == T0 + 5

    def test_a_clock_never_goes_back(self, manifest: ArchiveManifest) -> None:
        manifest.reserve(CMROOT, reserved(NAME), T0)
        manifest.reserve(CMROOT, reserved(NAME), T0 - 50)
        manifest.record_archived(CMROOT, archived(NAME), T0 - 70)
        assert manifest.entries(CMROOT)[NAME].archived_at_ms == T0

    def test_the_trash_tag_stays(self, manifest: ArchiveManifest) -> None:
        manifest.reserve(CMROOT, reserved(NAME), T0)
        manifest.record_archived(CMROOT, archived(NAME, is_remaining_in_trash=True), T0)
        manifest.record_archived(CMROOT, archived(NAME, is_remaining_in_trash=False), T0)
        assert manifest.entries(CMROOT)[NAME].is_remaining_in_trash

    def test_what_was_not_reserved_cannot_be_recorded(self, manifest: ArchiveManifest) -> None:
        manifest.reserve(CMROOT, reserved(NAME), T0)
        with pytest.raises(IntentError):
            manifest.record_archived(CMROOT, archived(NAME, SECOND), T0)
        assert manifest.entries(CMROOT)[NAME].state is EntryState.RESERVED

    def test_withdrawing_drops_only_what_came_to_nothing(self, manifest: ArchiveManifest) -> None:
        manifest.reserve(CMROOT, reserved(NAME, SECOND), T0)
        manifest.record_archived(CMROOT, archived(NAME), T0)
        manifest.withdraw(CMROOT, [NAME, SECOND, "never_seen"])
        assert set(manifest.entries(CMROOT)) == {NAME}

    def test_roots_are_apart(self, manifest: ArchiveManifest) -> None:
        manifest.reserve(CMROOT, reserved(NAME), T0)
        assert manifest.entries(OTHER) == {}
        manifest.reserve(OTHER, reserved(NAME), T0 + 1)
        assert manifest.entries(CMROOT)[NAME].archived_at_ms == T0

    def test_entries_by_name(self, manifest: ArchiveManifest) -> None:
        manifest.reserve(CMROOT, reserved(NAME, SECOND), T0)
        assert set(manifest.entries(CMROOT, [SECOND, "never_seen"])) == {SECOND}
        assert manifest.entries(CMROOT, []) == {}

    def test_many_files_at_once(self, manifest: ArchiveManifest) -> None:
        names = [f"bucket_{number:05d}_{CHECKSUM}" for number in range(2500)]
        manifest.reserve(CMROOT, reserved(*names), T0)
        manifest.record_archived(CMROOT, archived(*names), T0)
        assert len(manifest.entries(CMROOT, names)) == 2500
        assert manifest.holders(CMROOT, names, T0) == {}

    # -- purge

    def test_a_purge_is_claimed_then_recorded(self, manifest: ArchiveManifest) -> None:
        self._archive(manifest, NAME)
        assert claim(manifest)
        assert manifest.entries(CMROOT)[NAME].state is EntryState.PURGING
        assert purged(manifest)
        assert manifest.entries(CMROOT) == {}
        history = manifest.entries(CMROOT, [NAME])[NAME]
        assert (history.state, history.archived_at_ms) == (EntryState.PURGED, T0 + 200)

    def test_what_was_archived_again_cannot_be_claimed(self, manifest: ArchiveManifest) -> None:
        self._archive(manifest, NAME)
        manifest.reserve(CMROOT, reserved(NAME), T0 + 1)
        assert not claim(manifest, seen=T0)
        assert not claim(manifest, seen=None)
        assert manifest.entries(CMROOT)[NAME].state is EntryState.ARCHIVED

    def test_what_is_being_purged_cannot_be_reserved(self, manifest: ArchiveManifest) -> None:
        self._archive(manifest, NAME)
        assert claim(manifest)
        with pytest.raises(ArchiveBusyError) as caught:
            manifest.reserve(CMROOT, reserved(SECOND, NAME), T0 + 200)
        assert caught.value.names == (NAME,)
        assert set(manifest.entries(CMROOT)) == {NAME}

    def test_an_interrupted_purge_is_claimed_again(self, manifest: ArchiveManifest) -> None:
        self._archive(manifest, NAME)
        assert claim(manifest)
        assert claim(manifest)

    def test_a_released_file_is_archived_as_before(self, manifest: ArchiveManifest) -> None:
        self._archive(manifest, NAME)
        before = manifest.entries(CMROOT)[NAME]
        assert claim(manifest)
        assert released(manifest)
        assert manifest.entries(CMROOT)[NAME] == before
        assert not released(manifest)
        assert not released(manifest, "never_seen")
        assert manifest.entries(CMROOT)[NAME] == before

    def test_a_file_of_hive_is_claimed_without_a_row(self, manifest: ArchiveManifest) -> None:
        assert claim(manifest, seen=None)
        with pytest.raises(ArchiveBusyError):
            manifest.reserve(CMROOT, reserved(NAME), T0)
        seen = manifest.entries(CMROOT)[NAME].archived_at_ms
        assert claim(manifest, seen=seen)
        assert released(manifest)
        assert manifest.entries(CMROOT, [NAME]) == {}

    def test_a_row_that_came_stops_the_purge_of_hives_file(self, manifest: ArchiveManifest) -> None:
        manifest.reserve(CMROOT, reserved(NAME), T0)
        assert not claim(manifest, seen=None)

    def test_a_purged_file_can_come_again(self, manifest: ArchiveManifest) -> None:
        self._archive(manifest, NAME, is_remaining_in_trash=True)
        assert claim(manifest)
        assert purged(manifest)
        manifest.reserve(CMROOT, reserved(NAME), T0 + 300)
        entry = manifest.entries(CMROOT)[NAME]
        assert (entry.state, entry.archived_at_ms) == (EntryState.RESERVED, T0 + 300)
        assert entry.origins == ()
        assert not entry.is_remaining_in_trash

    def test_a_purged_row_counts_as_none(self, manifest: ArchiveManifest) -> None:
        self._archive(manifest, NAME)
        assert claim(manifest)
        assert purged(manifest)
        assert not claim(manifest, seen=T0 + 200)
        assert claim(manifest, seen=None)

    def test_only_claimed_files_are_purged(self, manifest: ArchiveManifest) -> None:
        self._archive(manifest, NAME)
        assert not purged(manifest)
        assert not purged(manifest, "never_seen")
        assert manifest.entries(CMROOT)[NAME].state is EntryState.ARCHIVED

    def test_a_claim_belongs_to_its_owner(self, manifest: ArchiveManifest) -> None:
        self._archive(manifest, NAME)
        assert claim(manifest)
        assert not claim(manifest, owner="two", now_ms=T0 + 100 + LEASE_MS)
        assert not manifest.holds_purge(CMROOT, NAME, owner="two", now_ms=T0 + 150)
        assert not purged(manifest, owner="two")
        assert not released(manifest, owner="two")
        assert not released(manifest, owner=None, now_ms=T0 + 150)
        assert manifest.holds_purge(CMROOT, NAME, owner="one", now_ms=T0 + 150)
        assert purged(manifest)

    def test_a_silent_owner_loses_its_claim_for_good(self, manifest: ArchiveManifest) -> None:
        self._archive(manifest, NAME)
        assert claim(manifest)
        late = T0 + 150 + LEASE_MS
        assert manifest.holds_purge(CMROOT, NAME, owner="one", now_ms=T0 + 150)
        assert not claim(manifest, owner="two", now_ms=late)
        assert claim(manifest, owner="two", now_ms=late + 1)
        assert not manifest.holds_purge(CMROOT, NAME, owner="one", now_ms=late + 2)
        assert not purged(manifest)
        assert not released(manifest)
        assert manifest.entries(CMROOT)[NAME].state is EntryState.PURGING
        assert purged(manifest, owner="two")

    def test_a_claim_from_the_future_does_not_last(self, manifest: ArchiveManifest) -> None:
        """The clock stepped back by a year."""
        self._archive(manifest, NAME)
        assert claim(manifest, now_ms=T0 + 365 * 86_400_000)
        assert claim(manifest, owner="two")

    def test_whoever_archives_ends_a_dead_claim(self, manifest: ArchiveManifest) -> None:
        self._archive(manifest, NAME)
        assert claim(manifest)
        now_ms = T0 + 101 + LEASE_MS
        manifest.reserve(CMROOT, reserved(NAME), now_ms)
        entry = manifest.entries(CMROOT)[NAME]
        assert (entry.state, entry.archived_at_ms) == (EntryState.RESERVED, now_ms)
        assert not manifest.holds_purge(CMROOT, NAME, owner="one", now_ms=now_ms)
        assert not purged(manifest)
        manifest.record_archived(CMROOT, archived(NAME, at_ms=now_ms), now_ms)
        assert manifest.entries(CMROOT)[NAME].state is EntryState.ARCHIVED

    def test_a_dead_claim_on_hives_file_leaves_no_trace(self, manifest: ArchiveManifest) -> None:
        assert claim(manifest, seen=None)
        now_ms = T0 + 101 + LEASE_MS
        manifest.reserve(CMROOT, reserved(NAME), now_ms)
        assert manifest.entries(CMROOT)[NAME].checksum == CHECKSUM
        manifest.withdraw(CMROOT, [NAME])
        assert claim(manifest, seen=None, now_ms=now_ms)
        assert released(manifest, owner=None, now_ms=now_ms + LEASE_MS + 1)
        assert manifest.entries(CMROOT, [NAME]) == {}

    # -- amendments

    def test_an_entry_is_amended_as_it_was_seen(self, manifest: ArchiveManifest) -> None:
        self._archive(manifest, NAME)
        seen = manifest.entries(CMROOT)[NAME]
        wanted = replace(seen, cmroot=OTHER)
        assert not manifest.amend(OTHER, NAME, seen, wanted, T0)
        assert manifest.amend(OTHER, NAME, None, wanted, T0)
        assert manifest.entries(OTHER)[NAME] == wanted
        assert manifest.roots() == (CMROOT, OTHER)
        assert not manifest.amend(CMROOT, NAME, replace(seen, archived_at_ms=T0 - 1), None, T0)
        assert manifest.amend(CMROOT, NAME, seen, None, T0)
        assert manifest.entries(CMROOT) == {}
        assert manifest.roots() == (OTHER,)

    def test_what_is_being_purged_is_not_amended(self, manifest: ArchiveManifest) -> None:
        self._archive(manifest, NAME)
        assert claim(manifest)
        seen = manifest.entries(CMROOT)[NAME]
        assert not manifest.amend(CMROOT, NAME, seen, None, T0 + 100)
        assert manifest.amend(CMROOT, NAME, seen, None, T0 + 101 + LEASE_MS)
        assert manifest.entries(CMROOT, [NAME]) == {}

    def test_live_purges(self, manifest: ArchiveManifest) -> None:
        self._archive(manifest, NAME)
        assert claim(manifest)
        assert manifest.live_purges(CMROOT, T0 + 100) == {NAME}
        assert manifest.live_purges(CMROOT, T0 + 101 + LEASE_MS) == set()
        assert manifest.live_purges(OTHER, T0 + 100) == set()

    # -- leases and times

    def test_a_lease_has_one_owner_until_it_is_silent(self, manifest: ArchiveManifest) -> None:
        assert manifest.take_leases(["x"], "one", T0)
        assert manifest.take_leases(["x"], "one", T0 + 10)
        assert manifest.take_leases(["y"], "two", T0)
        assert not manifest.take_leases(["x"], "two", T0 + 10 + LEASE_MS)
        assert manifest.renew_lease("x", "one", T0 + 20)
        assert not manifest.take_leases(["x"], "two", T0 + 20 + LEASE_MS)
        assert manifest.take_leases(["x"], "two", T0 + 21 + LEASE_MS)
        assert not manifest.renew_lease("x", "one", T0 + 22 + LEASE_MS)
        manifest.end_leases(["x"], "one")
        assert not manifest.take_leases(["x"], "one", T0 + 22 + LEASE_MS)
        manifest.end_leases(["x"], "two")
        assert manifest.lease_owner("x") is None
        assert manifest.lease_owner("y") == "two"
        assert not manifest.renew_lease("x", "two", T0 + 22 + LEASE_MS)
        assert manifest.take_leases(["x"], "one", T0 + 22 + LEASE_MS)
        assert manifest.forget_leases(T0 + 1) == 1
        assert not manifest.take_leases(["x"], "two", T0 + 22 + LEASE_MS)

    def test_several_leases_are_taken_each_for_itself(self, manifest: ArchiveManifest) -> None:
        assert manifest.take_leases([], "one", T0) == frozenset()
        assert manifest.take_leases(["b"], "two", T0)
        assert manifest.take_leases(["a", "b", "c"], "one", T0 + 1) == {"a", "c"}
        assert manifest.take_leases(["c", "b"], "one", T0 + 1 + LEASE_MS) == {"b", "c"}
        assert not manifest.renew_lease("b", "two", T0 + 2 + LEASE_MS)
        assert manifest.take_leases(["a", "c"], "two", T0 + 2 + LEASE_MS) == {"a"}
        manifest.end_leases(["a", "b", "c", "d"], "one")
        assert [manifest.lease_owner(name) for name in "abcd"] == ["two", None, None, None]

    def test_the_noted_time_goes_on_only(self, manifest: ArchiveManifest) -> None:
        assert manifest.known_times().newest_ms == 0
        manifest.note_time(T0)
        manifest.note_time(T0 - 1)
        assert manifest.known_times().newest_ms == T0

    def test_a_jump_is_kept_until_somebody_confirms_it(self, manifest: ArchiveManifest) -> None:
        late = T0 + 40 * 86_400_000
        assert manifest.note_time(T0).new_gaps == ()
        gaps = (TimeGap(T0, late),)
        assert manifest.note_time(late).new_gaps == gaps
        again = manifest.note_time(late + 5)
        assert (again.new_gaps, again.gaps) == ((), gaps)
        assert manifest.known_times().gaps == gaps
        assert manifest.trust_time(late + 6) == gaps
        assert manifest.known_times().gaps == ()
        assert manifest.note_time(late + 7).gaps == ()
        assert manifest.trust_time(late + 8) == ()

    def test_a_clock_that_comes_back_takes_the_jump_along(self, manifest: ArchiveManifest) -> None:
        late, back = T0 + 40 * 86_400_000, T0 + 5_000
        manifest.note_time(T0)
        manifest.note_time(late)
        assert manifest.note_time(back).gaps == ()
        assert manifest.known_times().seen_ms == back
        assert manifest.note_time(late).new_gaps == (TimeGap(back, late),)

    def test_history_is_forgotten_by_age(self, manifest: ArchiveManifest) -> None:
        self._archive(manifest, NAME, SECOND)
        assert claim(manifest)
        assert purged(manifest)
        assert manifest.forget_purged(CMROOT, T0 + 200) == 0
        assert manifest.forget_purged(CMROOT, T0 + 201) == 1
        assert set(manifest.entries(CMROOT, [NAME, SECOND])) == {SECOND}

    # -- pins

    def test_a_pinned_file_cannot_be_claimed(self, manifest: ArchiveManifest) -> None:
        self._archive(manifest, NAME, SECOND)
        assert manifest.put_pin(pin(names=frozenset({NAME}))) == ()
        assert manifest.holders(CMROOT, [NAME, SECOND], T0) == {NAME: ("dump:1",)}
        assert not claim(manifest)
        assert claim(manifest, SECOND)
        assert claim(manifest, overridden=("dump:1",))

    def test_a_pin_that_comes_too_late_says_so(self, manifest: ArchiveManifest) -> None:
        self._archive(manifest, NAME, SECOND)
        assert claim(manifest)
        assert manifest.put_pin(pin(names=frozenset({NAME, SECOND}))) == (NAME,)

    def test_a_pin_holds_until_it_expires(self, manifest: ArchiveManifest) -> None:
        self._archive(manifest, NAME)
        manifest.put_pin(pin(names=frozenset({NAME}), expires_at_ms=T0 + 50))
        assert manifest.holders(CMROOT, [NAME], T0 + 49) == {NAME: ("dump:1",)}
        assert manifest.holders(CMROOT, [NAME], T0 + 50) == {}
        assert not claim(manifest, now_ms=T0 + 49)
        assert claim(manifest, now_ms=T0 + 50)

    def test_a_file_can_be_pinned_before_it_is_archived(self, manifest: ArchiveManifest) -> None:
        manifest.put_pin(pin(names=frozenset({NAME})))
        self._archive(manifest, NAME)
        assert not claim(manifest)
        assert not claim(manifest, seen=None)

    def test_a_database_or_table_is_held(self, manifest: ArchiveManifest) -> None:
        self._archive(manifest, NAME)
        for selector, is_held in (
            ({"database": "db"}, True),
            ({"database": "db", "table": "t"}, True),
            ({"database": "db", "table": "u"}, False),
            ({"database": "other"}, False),
            ({"database": "db", "archived_since_ms": T0}, True),
            ({"database": "db", "archived_since_ms": T0 + 1}, False),
        ):
            manifest.put_pin(pin("hold:x", kind=PinKind.HOLD, **selector))
            assert (NAME in manifest.holders(CMROOT, [NAME], T0)) is is_held, selector
            if is_held:
                assert not claim(manifest)
        assert claim(manifest)

    def test_a_holder_has_one_pin(self, manifest: ArchiveManifest) -> None:
        manifest.put_pin(pin("b", names=frozenset({NAME})))
        manifest.put_pin(pin("a", names=frozenset({NAME})))
        manifest.put_pin(pin("b", names=frozenset({SECOND}), reason="another"))
        assert [(one.holder, one.reason) for one in manifest.pins()] == [
            ("a", "not loaded yet"), ("b", "another"),
        ]  # fmt: skip
        assert manifest.pins()[1].names == {SECOND}
        assert manifest.holders(CMROOT, [NAME], T0) == {NAME: ("a",)}

    def test_a_removed_pin_holds_nothing(self, manifest: ArchiveManifest) -> None:
        manifest.put_pin(pin(names=frozenset({NAME})))
        assert manifest.remove_pin("dump:1")
        assert not manifest.remove_pin("dump:1")
        assert manifest.holders(CMROOT, [NAME], T0) == {}

    def test_an_open_intent_holds_its_files(self, manifest: ArchiveManifest) -> None:
        self._archive(manifest, NAME)
        add_intent(manifest, intent())
        assert manifest.holders(CMROOT, [NAME], T0) == {NAME: ("intent:i1",)}
        assert manifest.holders(OTHER, [NAME], T0) == {}
        assert not claim(manifest)
        assert advance_intent(manifest, "i1", IntentState.PLANNED, IntentState.ARCHIVED, T0)
        assert not claim(manifest)
        assert advance_intent(manifest, "i1", IntentState.ARCHIVED, IntentState.DELETED, T0)
        assert claim(manifest)

    # -- intents

    def test_an_intent_is_stored_as_it_is(self, manifest: ArchiveManifest) -> None:
        for one in (intent(), intent("i2", victim="file:/wh/x", cmroot=None)):
            assert add_intent(manifest, one) == one
            assert manifest.intent(one.intent_id) == one
        assert manifest.intent("never_seen") is None

    def test_a_victim_has_one_open_intent(self, manifest: ArchiveManifest) -> None:
        first = add_intent(manifest, intent("i1"))
        assert add_intent(manifest, intent("i2")) == first
        assert manifest.intent("i2") is None
        assert advance_intent(manifest, "i1", IntentState.PLANNED, IntentState.ABANDONED, T0, "x")
        assert add_intent(manifest, intent("i3")).intent_id == "i3"

    def test_intents_move_on_from_the_state_that_is_named(self, manifest: ArchiveManifest) -> None:
        add_intent(manifest, intent())
        assert not advance_intent(manifest, "i1", IntentState.ARCHIVED, IntentState.DELETED, T0)
        assert not advance_intent(manifest, "no", IntentState.PLANNED, IntentState.DELETED, T0)
        over = IntentState.ABANDONED
        assert advance_intent(manifest, "i1", IntentState.PLANNED, over, T0 + 4, "gone")
        stored = manifest.intent("i1")
        assert stored is not None
        assert (stored.state, stored.reason, stored.updated_at_ms, stored.created_at_ms) == (
            IntentState.ABANDONED, "gone", T0 + 4, T0,
        )  # fmt: skip

    def test_intents_of_several_victims_move_in_one_step(self, manifest: ArchiveManifest) -> None:
        open_one = add_intent(manifest, intent("i0", victim="file:/b"))
        asked = [intent("i1", victim="file:/a"), intent("i2", victim="file:/b")]
        assert manifest.add_intents(asked) == (asked[0], open_one)
        assert manifest.add_intents([]) == ()
        advance_intent(manifest, "i0", IntentState.PLANNED, IntentState.ARCHIVED, T0)
        states = (IntentState.PLANNED, IntentState.ARCHIVED)
        assert manifest.advance_intents(["i0", "i1", "no"], *states, T0 + 3) == {"i1"}
        moved, other = manifest.intent("i1"), manifest.intent("i0")
        assert moved is not None and (moved.state, moved.updated_at_ms) == (states[1], T0 + 3)
        assert other is not None and other.updated_at_ms == T0
        assert manifest.advance_intents([], *states, T0) == frozenset()

    def test_intents_are_found_by_state_and_victim(self, manifest: ArchiveManifest) -> None:
        other = ArchiveContext(cause=ArchiveCause.DROP_TABLE)
        add_intent(manifest, intent("i3", victim="file:/c", at_ms=T0 + 1, context=other))
        add_intent(manifest, intent("i2", victim="file:/b"))
        add_intent(manifest, intent("i1", victim="file:/a"))
        advance_intent(manifest, "i2", IntentState.PLANNED, IntentState.ARCHIVED, T0)

        def found(*states: IntentState, **given: object) -> list[str]:
            return [one.intent_id for one in manifest.intents(states, **given)]  # type: ignore[arg-type]

        assert found(*IntentState) == ["i1", "i2", "i3"]
        assert found(IntentState.PLANNED) == ["i1", "i3"]
        assert found(*IntentState, victims=["file:/b"]) == ["i2"]
        assert found(*IntentState, victims=["file:/c", "file:/no", "file:/a"]) == ["i1", "i3"]
        assert found(*IntentState, victims=[]) == []
        assert found() == []

    def test_what_was_deleted_below_a_location_is_done(self, manifest: ArchiveManifest) -> None:
        victims = ("file:/t/a", "file:/t", "file:/ta", "file:/t/b")
        for number, victim in enumerate(victims):
            add_intent(manifest, intent(f"i{number}", victim=victim))
        for number in range(3):
            states = (IntentState.PLANNED, IntentState.DELETED)
            assert advance_intent(manifest, f"i{number}", *states, T0)
        assert manifest.finish_intents([], T0 + 7) == 0
        assert manifest.finish_intents(["file:/elsewhere", "file:/t"], T0 + 7) == 2
        done = manifest.intents([IntentState.DONE])
        assert [(one.intent_id, one.updated_at_ms) for one in done] == [
            ("i0", T0 + 7), ("i1", T0 + 7),
        ]  # fmt: skip
        assert manifest.finish_intents(["file:/t"], T0) == 0

    def test_old_intents_are_forgotten_once_they_are_over(self, manifest: ArchiveManifest) -> None:
        for number, state in enumerate(IntentState):
            add_intent(manifest, intent(f"i{number}", victim=f"file:/{number}"))
            if state is not IntentState.PLANNED:
                advance_intent(manifest, f"i{number}", IntentState.PLANNED, state, T0 + 5)
        assert manifest.forget_intents(T0 + 5) == 0
        assert manifest.forget_intents(T0 + 6) == 2
        left = {one.state for one in manifest.intents(list(IntentState))}
        assert left == {IntentState.PLANNED, IntentState.ARCHIVED, IntentState.DELETED}

    # -- budgets

    def test_a_pin_is_given_up_as_it_was_seen_and_once(self, manifest: ArchiveManifest) -> None:
        manifest.put_pin(pin())
        first, second = GivenUp(at_ms=T0 + 1, reason="too old"), GivenUp(at_ms=T0 + 2, reason="ä")
        assert not manifest.give_up("dump:1", seen_created_at_ms=T0 - 1, given_up=first)
        assert not manifest.give_up("dump:2", seen_created_at_ms=T0, given_up=first)
        assert manifest.pins() == (pin(),)
        assert manifest.give_up("dump:1", seen_created_at_ms=T0, given_up=first)
        assert manifest.give_up("dump:1", seen_created_at_ms=T0, given_up=second)
        assert manifest.pins() == (pin(given_up=first),)
        assert manifest.figures(CMROOT, T0).given_up_count == 1

    def test_a_pin_that_is_given_up_holds_until_it_is_removed(
        self, manifest: ArchiveManifest
    ) -> None:
        self._archive(manifest, NAME)
        manifest.put_pin(pin(names=frozenset({NAME})))
        mark = GivenUp(at_ms=T0, reason="too old")
        assert manifest.give_up("dump:1", seen_created_at_ms=T0, given_up=mark)
        assert not claim(manifest)
        assert manifest.remove_pin("dump:1")
        manifest.put_pin(pin())
        assert manifest.pins() == (pin(),)

    def test_only_a_pin_that_holds_more_of_the_same_stays_given_up(
        self, manifest: ArchiveManifest
    ) -> None:
        mark = GivenUp(at_ms=T0, reason="too old")
        manifest.put_pin(pin(database="db", archived_since_ms=T0))
        manifest.give_up("dump:1", seen_created_at_ms=T0, given_up=mark)
        wider = pin(database="db", archived_since_ms=T0 - 5, created_at_ms=T0 + 5)
        manifest.put_pin(wider, is_wider=True)
        assert manifest.pins() == (replace(wider, given_up=mark),)
        manifest.put_pin(wider)
        assert manifest.pins() == (wider,)

    def test_what_a_pin_holds_is_told_by_the_hour(self, manifest: ArchiveManifest) -> None:
        hour = 3_600_000
        first = T0 - T0 % hour
        for name, at_ms in (("c", first + hour), ("a", first + 7), ("b", first + 9), (NAME, T0)):
            manifest.reserve(CMROOT, reserved(name), at_ms)
            manifest.record_archived(CMROOT, archived(name, at_ms=at_ms), at_ms)
        manifest.reserve(CMROOT, reserved("reserved"), first)
        manifest.reserve(OTHER, reserved("a"), first + 5)
        manifest.record_archived(OTHER, archived("a", at_ms=first + 5), first + 5)
        assert claim(manifest)
        names = frozenset({"a", "b", "c", NAME, "reserved", "of nobody"})
        manifest.put_pin(pin(names=names))
        told = (
            HeldFiles(oldest_ms=first + 5, size_bytes=93),
            HeldFiles(oldest_ms=first + hour, size_bytes=31),
        )
        assert manifest.held_files("dump:1") == told
        for holder, given, wanted in (
            ("policy:db", {"database": "db"}, told),
            ("policy:late", {"database": "db", "archived_since_ms": first + hour}, told[1:]),
            ("policy:t", {"database": "db", "table": "t"}, told),
            ("policy:u", {"database": "db", "table": "u"}, ()),
            ("policy:other", {"database": "other"}, ()),
        ):
            manifest.put_pin(pin(holder, **given))
            assert manifest.held_files(holder) == wanted, holder
        assert manifest.held_files("nobody") == ()

    # -- figures

    def test_an_empty_manifest_has_figures(self, manifest: ArchiveManifest) -> None:
        assert manifest.figures(CMROOT, T0) == ArchiveFigures(
            file_count=0,
            size_bytes=0,
            oldest_archived_at_ms=None,
            pin_count=0,
            given_up_count=0,
            open_intent_count=0,
            oldest_open_intent_ms=None,
            abandoned_intent_count=0,
        )

    def test_figures_are_of_what_is_archived_open_and_live(self, manifest: ArchiveManifest) -> None:
        manifest.reserve(CMROOT, reserved("purging"), T0 - 5)
        manifest.record_archived(CMROOT, archived("purging", at_ms=T0 - 5), T0 - 5)
        assert claim(manifest, "purging", seen=T0 - 5)
        self._archive(manifest, NAME)
        manifest.reserve(CMROOT, reserved(SECOND, "third"), T0 + 8)
        manifest.record_archived(CMROOT, archived(SECOND, at_ms=T0 + 8), T0 + 8)
        manifest.reserve(OTHER, reserved(NAME), T0 - 9)
        manifest.record_archived(OTHER, archived(NAME), T0 - 9)
        states = (*IntentState, IntentState.ABANDONED)
        for number, state in enumerate(states):
            add_intent(manifest, intent(f"i{number}", victim=f"file:/{number}", at_ms=T0 + number))
            if state is not IntentState.PLANNED:
                advance_intent(manifest, f"i{number}", IntentState.PLANNED, state, T0 + 50)
        manifest.put_pin(pin("hold:1", kind=PinKind.HOLD, database="db"))
        manifest.put_pin(pin("hold:2", kind=PinKind.HOLD, database="db", expires_at_ms=T0 + 1))
        found = manifest.figures(CMROOT, T0 + 1)
        assert (found.file_count, found.size_bytes) == (2, 62)
        assert found.oldest_archived_at_ms == T0
        assert found.pin_count == 1
        assert (found.open_intent_count, found.oldest_open_intent_ms) == (2, T0)
        assert found.abandoned_intent_count == 2

    def test_what_is_announced_is_settled_once(self, manifest: ArchiveManifest) -> None:
        for holder in ("dump:a:/r/1", "dump:a:/r/2", "dump:b:/r/1"):
            manifest.announce(holder, {"db": holder, "untilEventId": 3, "scope": None})
        manifest.announce("dump:a:/r/1", {"db": "a"})
        assert manifest.announced("dump:a:/r/") == ("dump:a:/r/1", "dump:a:/r/2")
        assert manifest.settle_announced("dump:a:/r/1", is_finished=True)
        assert not manifest.settle_announced("dump:a:/r/1", is_finished=True)
        assert manifest.settle_announced("dump:a:/r/2", is_finished=False)
        assert manifest.announced("dump:") == ("dump:b:/r/1",)

    def _archive(
        self, manifest: ArchiveManifest, *names: str, is_remaining_in_trash: bool = False
    ) -> None:
        manifest.reserve(CMROOT, reserved(*names), T0)
        manifest.record_archived(
            CMROOT, archived(*names, is_remaining_in_trash=is_remaining_in_trash), T0
        )
