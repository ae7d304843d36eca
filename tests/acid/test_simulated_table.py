"""A table lives through writes, aborts, compactions and cleanings; every reader keeps its rows.

The expected rows come from the history of writes alone, the found ones from directories.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from hms_bridge.acid.directory import AcidState, resolve
from hms_bridge.acid.listing import DirectoryListing, ListedDirectory
from hms_bridge.acid.markers import DataFormat
from hms_bridge.acid.names import DirectoryName
from hms_bridge.acid.obsolete import plan_cleaning
from hms_bridge.errors import NotEnoughHistoryError
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList

Row = tuple[int, int]
"""Write id and number of an inserted row."""


@dataclass(frozen=True)
class Event:
    """An insert or delete of a row by a write."""

    row: Row
    write_id: int
    is_delete: bool = False


@dataclass
class Write:
    txn_id: int
    events: list[Event] = field(default_factory=list)
    is_overwrite: bool = False


@dataclass
class Reader:
    txns: ValidTxnList
    write_ids: ValidWriteIdList
    rows: set[Row]
    began: int


@dataclass(frozen=True)
class Compaction:
    txn_id: int
    highest: int
    output: dict[str, list[Event]]
    published: int = 0


class TableLife(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.txns: dict[int, str] = {}
        self.writes: dict[int, Write] = {}
        self.directories: dict[str, list[Event]] = {}
        self.readers: list[Reader] = []
        self.writers: dict[int, Reader] = {}
        self.running: Compaction | None = None
        self.ready: list[Compaction] = []
        self.is_hive3 = False
        self.now = 0
        self.compacted_bases: set[str] = set()

    @initialize(is_hive3=st.booleans())
    def choose_dialect(self, is_hive3: bool) -> None:
        """Hive 3 publishes a compaction by renames, Hive 4 by the commit of its transaction."""
        self.is_hive3 = is_hive3

    # -- what a snapshot is ---------------------------------------------------------------

    def state_of(self, write_id: int) -> str:
        return self.txns[self.writes[write_id].txn_id]

    def id_lists(self) -> tuple[ValidTxnList, ValidWriteIdList]:
        def write_ids(wanted: str) -> tuple[WriteId, ...]:
            return tuple(WriteId(one) for one in self.writes if self.state_of(one) == wanted)

        def txn_ids(wanted: str) -> tuple[TxnId, ...]:
            return tuple(TxnId(one) for one, state in self.txns.items() if state == wanted)

        return (
            ValidTxnList(
                high_watermark=TxnId(max(self.txns, default=0)),
                open_ids=txn_ids("open"),
                aborted_ids=txn_ids("aborted"),
            ),
            ValidWriteIdList(
                table="d.t",
                high_watermark=WriteId(max(self.writes, default=0)),
                open_ids=write_ids("open"),
                aborted_ids=write_ids("aborted"),
            ),
        )

    def expected_rows(self, write_ids: ValidWriteIdList) -> set[Row]:
        rows: set[Row] = set()
        for write_id, write in self.writes.items():
            if not write_ids.is_valid(WriteId(write_id)):
                continue
            if write.is_overwrite:
                rows = set()
            rows |= {event.row for event in write.events if not event.is_delete}
        deleted = {
            event.row
            for write_id, write in self.writes.items()
            for event in write.events
            if event.is_delete and write_ids.is_valid(WriteId(write_id))
        }
        return rows - deleted

    def snapshot(self) -> Reader:
        txns, write_ids = self.id_lists()
        self.now += 1
        return Reader(txns, write_ids, self.expected_rows(write_ids), self.now)

    # -- what a directory is --------------------------------------------------------------

    def listing(self) -> DirectoryListing:
        found = []
        for path in sorted(self.directories):
            name = DirectoryName.parse(path)
            assert name is not None
            is_compacted = path in self.compacted_bases
            data_format = DataFormat.COMPACTED if is_compacted else None
            found.append(ListedDirectory(path=path, name=name, data_format=data_format))
        return DirectoryListing(root="/t", directories=tuple(found))

    def rows_in(self, state: AcidState, write_ids: ValidWriteIdList) -> set[Row]:
        events = [
            event
            for one in state.current
            for event in self.directories[one.path]
            if write_ids.is_valid(WriteId(event.write_id))
        ]
        inserted = [event.row for event in events if not event.is_delete]
        assert len(inserted) == len(set(inserted)), "a row is there twice"
        return set(inserted) - {event.row for event in events if event.is_delete}

    # -- what happens ---------------------------------------------------------------------

    def begin_txn(self) -> int:
        txn_id = len(self.txns) + 1
        self.txns[txn_id] = "open"
        return txn_id

    def is_overwriting(self) -> bool:
        return any(self.writes[one].is_overwrite for one in self.writers)

    @precondition(lambda self: not self.is_overwriting())
    @rule(inserts=st.integers(0, 2), deletes=st.integers(0, 2), statement=st.integers(0, 1))
    def begin_write(self, inserts: int, deletes: int, statement: int) -> None:
        reader = self.snapshot()
        write = Write(self.begin_txn())
        write_id = len(self.writes) + 1
        taken = sorted(reader.rows)[:deletes]
        removed = [Event(row, write_id, is_delete=True) for row in taken]
        added = [Event((write_id, number), write_id) for number in range(inserts)]
        write.events = [*removed, *added]
        self.writes[write_id], self.writers[write_id] = write, reader
        own = WriteId(write_id)
        if removed:
            self.directories[DirectoryName.delete_delta(own, own, statement).format()] = removed
        if added:
            self.directories[DirectoryName.delta(own, own, statement + 1).format()] = added

    @precondition(lambda self: not self.is_overwriting())
    @rule(size=st.integers(2, 3))
    def begin_batch(self, size: int) -> None:
        """A streaming writer takes several write ids at once, for one delta; each ends alone."""
        reader, first = self.snapshot(), len(self.writes) + 1
        events = [Event((one, 0), one) for one in range(first, first + size)]
        for event in events:
            self.writes[event.write_id] = Write(self.begin_txn(), [event])
            self.writers[event.write_id] = reader
        last = WriteId(first + size - 1)
        self.directories[DirectoryName.delta(WriteId(first), last).format()] = events

    @rule(inserts=st.integers(1, 2), deletes=st.integers(0, 2))
    def write(self, inserts: int, deletes: int) -> None:
        if not self.is_overwriting():
            self.begin_write(inserts, deletes, statement=0)
            write_id = len(self.writes)
            del self.writers[write_id]
            self.txns[self.writes[write_id].txn_id] = "committed"

    @precondition(lambda self: self.running is None and self.writes)
    @rule(is_major=st.booleans(), is_query_based=st.booleans())
    def compact(self, is_major: bool, is_query_based: bool) -> None:
        self.begin_compaction(is_major, is_query_based)
        self.end_compaction("committed")

    @precondition(lambda self: not self.writers)
    @rule(inserts=st.integers(0, 2))
    def begin_overwrite(self, inserts: int) -> None:
        reader = self.snapshot()
        write_id = len(self.writes) + 1
        events = [Event((write_id, number), write_id) for number in range(inserts)]
        self.writes[write_id] = Write(self.begin_txn(), events, is_overwrite=True)
        self.writers[write_id] = reader
        self.directories[DirectoryName.base(WriteId(write_id)).format()] = events

    @precondition(lambda self: self.writers)
    @rule(data=st.data(), end=st.sampled_from(["committed", "committed", "aborted"]))
    def end_write(self, data: st.DataObject, end: str) -> None:
        write_id = data.draw(st.sampled_from(sorted(self.writers)))
        del self.writers[write_id]
        self.txns[self.writes[write_id].txn_id] = end

    @rule()
    def begin_read(self) -> None:
        self.readers.append(self.snapshot())

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def end_read(self, data: st.DataObject) -> None:
        self.readers.remove(data.draw(st.sampled_from(self.readers)))

    @precondition(lambda self: self.running is None and self.writes)
    @rule(is_major=st.booleans(), is_query_based=st.booleans())
    def begin_compaction(self, is_major: bool, is_query_based: bool) -> None:
        """Query-based compactions are named after the high watermark, others after their inputs."""
        txn_id = self.begin_txn()
        txns, write_ids = self.id_lists()
        view = write_ids.compactor_view()
        state = resolve(self.listing(), txns=txns, write_ids=view)
        inputs = state.current if is_major else state.deltas
        output = self.compacted(txn_id, view, inputs, is_major, is_query_based)
        self.running = Compaction(txn_id, view.high_watermark, output if len(inputs) > 1 else {})
        if not self.is_hive3:
            self.directories |= self.running.output

    def compacted(
        self,
        txn_id: int,
        view: ValidWriteIdList,
        inputs: tuple[ListedDirectory, ...],
        is_major: bool,
        is_query_based: bool,
    ) -> dict[str, list[Event]]:
        events = [
            event
            for one in inputs
            for event in self.directories[one.path]
            if view.is_valid(WriteId(event.write_id))
        ]
        seen = TxnId(0 if self.is_hive3 else txn_id)
        first = min((one.name.min_write_id for one in inputs), default=WriteId(0))
        last = max((one.name.max_write_id for one in inputs), default=WriteId(0))
        if is_query_based:
            last = view.high_watermark
        deletes = [event for event in events if event.is_delete]
        inserts = [event for event in events if not event.is_delete]
        if is_major:
            dead = {event.row for event in deletes}
            live = [event for event in inserts if event.row not in dead]
            return {DirectoryName.base(last, seen).format(): live}
        output = {DirectoryName.delta(first, last, None, seen).format(): inserts}
        if deletes:
            output[DirectoryName.delete_delta(first, last, None, seen).format()] = deletes
        return output

    @precondition(lambda self: self.running is not None)
    @rule(end=st.sampled_from(["committed", "committed", "aborted"]))
    def end_compaction(self, end: str) -> None:
        assert self.running is not None
        self.txns[self.running.txn_id] = end
        if end == "committed":
            self.now += 1
            self.ready.append(replace(self.running, published=self.now))
            if self.is_hive3:
                self.directories |= self.running.output
                self.compacted_bases |= {one for one in self.running.output if "base" in one}
        self.running = None

    @precondition(lambda self: self.ready)
    @rule(data=st.data())
    def clean(self, data: st.DataObject) -> None:
        entry = min(self.ready, key=lambda one: one.highest)
        using = [*self.readers, *self.writers.values()]
        if any(one.began < entry.published for one in using):
            return
        txns, write_ids = self.id_lists()
        unseen = [
            TxnId(one)
            for one, state in self.txns.items()
            if state == "committed" and not all(user.txns.is_valid(TxnId(one)) for user in using)
        ]
        plan = plan_cleaning(
            self.listing(),
            txns=txns.cleaner_view(None, unseen),
            write_ids=write_ids,
            highest_write_id=WriteId(entry.highest),
        )
        forgotten = set(plan.forgettable_write_ids)
        paths = [victim.path for victim in plan.victims]
        gone = data.draw(st.lists(st.sampled_from(paths), unique=True)) if paths else []
        for path in gone:
            del self.directories[path]
        if len(gone) == len(paths):
            self.ready.remove(entry)
            for one in forgotten:  # What a cleaner drops the abort record of is read as committed.
                self.writes[one].events, self.writes[one].is_overwrite = [], False
                self.txns[self.writes[one].txn_id] = "committed"

    @invariant()
    def every_reader_keeps_its_rows(self) -> None:
        listing = self.listing()
        for reader in [*self.readers, *self.writers.values(), self.snapshot()]:
            try:
                state = resolve(listing, txns=reader.txns, write_ids=reader.write_ids)
            except NotEnoughHistoryError:
                assert self.is_hive3  # The base hides from no one; the reader begins again.
                assert reader in self.readers or reader in self.writers.values()
                continue
            assert self.rows_in(state, reader.write_ids) == reader.rows


TestTableLife = TableLife.TestCase
TestTableLife.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
