"""Whatever a cleaner deletes, every reader finds the same directories as before."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from hms_bridge.acid.directory import resolve
from hms_bridge.acid.listing import DirectoryListing, ListedDirectory, ListedFile
from hms_bridge.acid.markers import DataFormat
from hms_bridge.acid.names import DirectoryName
from hms_bridge.acid.obsolete import CLOCKS_APART_MS, CleaningPlan, KeptReason, plan_cleaning
from hms_bridge.errors import NotEnoughHistoryError
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.txn import AbortedSince
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList

WRITE_IDS = range(1, 8)
TXN_IDS = range(11, 16)
STATES = st.sampled_from([*["committed"] * 6, "open", "aborted"])
LATER_STATES = st.sampled_from(["committed", "open"])
ABORTED_LATER = st.sampled_from(["aborted", "open"])
FILE_TIMES = st.none() | st.integers(0, 10).map(lambda one: one * CLOCKS_APART_MS)


@dataclass(frozen=True)
class World:
    """A directory of any content, the truth about its ids, and how far a cleaning may go."""

    listing: DirectoryListing
    writes: dict[int, str]
    txns: dict[int, str]
    highest: int
    seen_by_all: frozenset[int]

    @property
    def write_ids(self) -> ValidWriteIdList:
        return _write_ids(self.writes)

    @property
    def cleaner_txns(self) -> ValidTxnList:
        txns = _txns(self.txns)
        committed = {txn_id for txn_id, state in self.txns.items() if state == "committed"}
        return txns.cleaner_view(None, (TxnId(one) for one in committed - self.seen_by_all))


@st.composite
def directory_names(draw: st.DrawFn) -> DirectoryName:
    first = draw(st.sampled_from(WRITE_IDS))
    kind = draw(st.sampled_from(["base", "write", "write", "minor", "minor", "batch"]))
    txn_id = TxnId(draw(st.sampled_from(TXN_IDS)))
    make = draw(st.sampled_from([DirectoryName.delta, DirectoryName.delete_delta]))
    if kind == "base":
        return DirectoryName.base(WriteId(first), draw(st.sampled_from([TxnId(0), txn_id])))
    if kind == "write":
        return make(WriteId(first), WriteId(first), draw(st.integers(0, 2)))
    last = draw(st.integers(first, WRITE_IDS[-1]))
    visible = txn_id if kind == "minor" else TxnId(0)
    return make(WriteId(first), WriteId(last), None, visible)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    names = draw(st.sets(directory_names(), min_size=3, max_size=12))
    formats = st.sampled_from([None, None, DataFormat.COMPACTED])
    directories = [
        ListedDirectory(
            path=name.format(),
            name=name,
            files=tuple(
                ListedFile(path=f"{name.format()}/{index}", size_bytes=1, modified_ms=one)
                for index, one in enumerate(draw(st.lists(FILE_TIMES, max_size=2)))
            ),
            data_format=draw(formats) if name.is_base else None,
        )
        for name in names
    ]
    originals = (ListedFile(path="000000_0", size_bytes=1),) if draw(st.booleans()) else ()
    listing = DirectoryListing(
        root="/t",
        directories=tuple(sorted(directories, key=lambda one: one.path)),
        originals=originals,
    )
    txns = {txn_id: draw(STATES) for txn_id in TXN_IDS}
    committed = [txn_id for txn_id, state in txns.items() if state == "committed"]
    return World(
        listing=listing,
        writes={write_id: draw(STATES) for write_id in WRITE_IDS},
        txns=txns,
        highest=draw(st.integers(0, WRITE_IDS[-1])),
        seen_by_all=frozenset(one for one in committed if draw(st.booleans())),
    )


@st.composite
def readers(draw: st.DrawFn, world: World) -> tuple[ValidTxnList, ValidWriteIdList]:
    """Any snapshot that may exist: later ids end in any way, earlier ones are as they are."""
    end = min([world.highest, *(one - 1 for one, state in world.writes.items() if state == "open")])
    writes = {
        one: state if one <= end else draw(ABORTED_LATER if state == "aborted" else LATER_STATES)
        for one, state in world.writes.items()
    }
    txns = {
        one: state if one in world.seen_by_all or state == "aborted" else draw(LATER_STATES)
        for one, state in world.txns.items()
    }
    return _txns(txns), _write_ids(writes, draw(st.integers(end, WRITE_IDS[-1])))


def _ids(states: dict[int, str], wanted: str) -> tuple[int, ...]:
    return tuple(one for one, state in states.items() if state == wanted)


def _write_ids(writes: dict[int, str], hwm: int = WRITE_IDS[-1]) -> ValidWriteIdList:
    return ValidWriteIdList(
        table="d.t",
        high_watermark=WriteId(hwm),
        open_ids=tuple(WriteId(one) for one in _ids(writes, "open") if one <= hwm),
        aborted_ids=tuple(WriteId(one) for one in _ids(writes, "aborted") if one <= hwm),
    )


def _txns(txns: dict[int, str]) -> ValidTxnList:
    return ValidTxnList(
        high_watermark=TxnId(TXN_IDS[-1]),
        open_ids=tuple(TxnId(one) for one in _ids(txns, "open")),
        aborted_ids=tuple(TxnId(one) for one in _ids(txns, "aborted")),
    )


def _current(
    listing: DirectoryListing, reader: tuple[ValidTxnList, ValidWriteIdList]
) -> list[str] | None:
    txns, write_ids = reader
    try:
        state = resolve(listing, txns=txns, write_ids=write_ids)
    except NotEnoughHistoryError:
        return None
    return [one.path for one in (*state.current, *state.originals)]


@given(world=worlds(), data=st.data())
@settings(max_examples=600, deadline=None)
def test_every_reader_finds_the_same(world: World, data: st.DataObject) -> None:
    plan = plan_cleaning(
        world.listing,
        txns=world.cleaner_txns,
        write_ids=world.write_ids,
        highest_write_id=WriteId(world.highest),
    )
    victims = [victim.path for victim in plan.victims]
    gone = data.draw(st.sets(st.sampled_from(victims))) if victims else set()
    rest = replace(
        world.listing,
        directories=tuple(one for one in world.listing.directories if one.path not in gone),
        originals=tuple(one for one in world.listing.originals if one.path not in gone),
    )
    reader = data.draw(readers(world))
    assert _current(rest, reader) == _current(world.listing, reader)


@given(world=worlds(), data=st.data())
@settings(max_examples=600, deadline=None)
def test_what_is_older_than_all_who_aborted_is_not_theirs(
    world: World, data: st.DataObject
) -> None:
    times = st.integers(0, 10).map(lambda one: one * CLOCKS_APART_MS)
    since = AbortedSince(
        txns={TxnId(one): data.draw(times) for one in _ids(world.txns, "aborted")},
        write_ids={WriteId(one): data.draw(times) for one in _ids(world.writes, "aborted")},
    )
    free, bound = (_plan(world, one) for one in (None, since))
    older = {one.path for one in bound.kept if one.reason is KeptReason.OLDER}
    assert {one.path for one in bound.victims} == {one.path for one in free.victims} - older
    files = {one.path: one for one in world.listing.directories}
    for victim in free.victims:
        if victim.by is not None:
            assert victim.path not in older
            continue
        directory = files[victim.path]
        opened = [since.write_ids[one] for one in victim.write_ids] or [
            since.txns[directory.name.visibility_txn_id]
        ]
        is_of_it = [
            one.modified_ms is not None and one.modified_ms >= min(opened) - CLOCKS_APART_MS
            for one in directory.files
        ]
        assert (victim.path in older) is not all(is_of_it)
        if victim.path in older and victim.write_ids:
            assert not set(victim.write_ids) & set(bound.forgettable_write_ids)


def _plan(world: World, since: AbortedSince | None) -> CleaningPlan:
    return plan_cleaning(
        world.listing,
        txns=world.cleaner_txns,
        write_ids=world.write_ids,
        highest_write_id=WriteId(world.highest),
        since=since,
    )
