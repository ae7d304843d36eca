"""Any schedule of writers, readers, compactions, cleanings and crashes: no row is lost (I1-I4, I7).

Rows are tokens, one a write; a compaction's output holds the tokens of its inputs. After every step

* every open reader, listing the directory anew under the lists it took at its start, still reads
  exactly the tokens that were committed then;
* a reader that comes now reads exactly the tokens that are committed now;
* every file that left the table is in the archive.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    precondition,
    rule,
)

from changemanager.manifest import LEASE_MS
from cleaner.daemon import make_cleaner
from hms_bridge.acid.directory import AcidState, resolve
from hms_bridge.directories.listing import list_acid_directory
from hms_bridge.errors import NoSuchCompactionError
from hms_bridge.model.compaction import Compaction, CompactionRequest, CompactionType
from hms_bridge.model.ids import LockId, TxnId, WriteId
from hms_bridge.model.target import Target
from hms_bridge.model.txn import TxnType
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from tests.support.cleaning_world import CleaningWorld
from tests.support.faults import CrashError, FaultPlan, FaultyManifest, faulty

NO_LOCK = LockId(0)


@dataclass(frozen=True)
class Reader:
    txn_id: TxnId
    txns: ValidTxnList
    write_ids: ValidWriteIdList
    tokens: frozenset[str]


@dataclass(frozen=True)
class RunningCompaction:
    entry: Compaction
    txn_id: TxnId
    is_published: bool


class Schedules(RuleBasedStateMachine):
    """One table; what should be in it is kept beside it."""

    writers = Bundle("writers")
    readers = Bundle("readers")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="schedules"))
        self.world = CleaningWorld(self.folder)
        self.volume = self.world.store.resolver(str(self.folder)).volume
        self.committed: set[str] = set()
        self.open_readers: dict[TxnId, Reader] = {}
        self.open_writers: set[TxnId] = set()
        self.running: RunningCompaction | None = None
        self.ever_written: dict[str, str] = {}

    def teardown(self) -> None:
        self.world.metastore.close()
        shutil.rmtree(self.folder)

    # -- what is in a snapshot

    def lists(self) -> tuple[ValidTxnList, ValidWriteIdList]:
        txns = self.world.metastore.get_open_txns().snapshot()
        return txns, self.world.metastore.get_valid_write_ids(["db.t"], txns)[0]

    def snapshot(self, txns: ValidTxnList, write_ids: ValidWriteIdList) -> AcidState:
        listing = list_acid_directory(self.volume, str(self.world.table))
        return resolve(listing, txns=txns, write_ids=write_ids)

    def tokens(self, state: AcidState, write_ids: ValidWriteIdList) -> list[str]:
        found: list[str] = []
        for directory in state.current:
            for file in directory.files:
                text = (self.world.table / directory.path / file.name).read_text()
                found += [
                    token
                    for token in text.split()
                    if write_ids.is_valid(WriteId(int(token.partition("w")[2])))
                ]
        return found

    # -- writers

    def fill(self, name: str, tokens: list[str]) -> None:
        path = self.world.write_directory(name)
        (path / "bucket_00000").write_text(" ".join(tokens))
        self.ever_written[str(path)] = " ".join(tokens)

    @rule(target=writers)
    def start_write(self) -> tuple[TxnId, WriteId]:
        txn_id, write_id = self.world.start_write()
        path = self.world.table / f"delta_{write_id:07d}_{write_id:07d}_0000"
        (path / "bucket_00000").write_text(f"w{write_id}")
        self.ever_written[str(path)] = f"w{write_id}"
        self.open_writers.add(txn_id)
        return txn_id, write_id

    @rule(writer=consumes(writers))
    def commit_write(self, writer: tuple[TxnId, WriteId]) -> None:
        self.world.commit(writer[0])
        self.open_writers.remove(writer[0])
        self.committed.add(f"w{writer[1]}")

    @rule(writer=consumes(writers))
    def abort_write(self, writer: tuple[TxnId, WriteId]) -> None:
        self.world.abort(writer[0])
        self.open_writers.remove(writer[0])

    @rule()
    def write_and_commit(self) -> None:
        self.commit_write(self.start_write())

    @rule()
    def write_and_abort(self) -> None:
        self.abort_write(self.start_write())

    # -- readers

    @rule(target=readers)
    def open_reader(self) -> TxnId:
        txn_id = self.world.open_reader()
        txns, write_ids = self.lists()
        reader = Reader(
            txn_id=txn_id, txns=txns, write_ids=write_ids, tokens=frozenset(self.committed)
        )
        self.open_readers[txn_id] = reader
        return txn_id

    @rule(reader=consumes(readers))
    def close_reader(self, reader: TxnId) -> None:
        self.world.commit(reader)
        del self.open_readers[reader]

    # -- compactions

    @precondition(lambda self: self.running is None)
    @rule(kind=st.sampled_from([CompactionType.MINOR, CompactionType.MAJOR]))
    def start_compaction(self, kind: CompactionType) -> None:
        answer = self.world.metastore.compact(
            CompactionRequest(target=Target("db", "t"), type=kind)
        )
        if answer.id is None or not answer.is_accepted:
            return
        entry = self.world.metastore.find_next_compaction("worker-1", "1")
        if entry is None:
            return
        txn_id = self.world.open(TxnType.COMPACTION, "worker")
        self.running = RunningCompaction(entry, txn_id, is_published=False)

    @precondition(lambda self: self.running is not None and not self.running.is_published)
    @rule()
    def publish_compaction(self) -> None:
        running = self.running
        assert running is not None
        txns, _ = self.lists()
        txns = txns.with_open(running.txn_id)
        write_ids = self.world.metastore.get_valid_write_ids(["db.t"], txns)[0].compactor_view()
        entry = replace(
            running.entry, highest_write_id=write_ids.high_watermark, txn_id=running.txn_id,
            run_as="worker",
        )  # fmt: skip
        try:
            self.world.metastore.update_compactor_state(entry, running.txn_id)
        except NoSuchCompactionError:  # it was silent for too long, and its entry was given back
            self.running = None
            self.world.abort(running.txn_id)
            return
        state = self.snapshot(txns, write_ids)
        is_minor = entry.type is CompactionType.MINOR
        sources = state.deltas if is_minor else state.current
        if len(sources) > (1 if is_minor else 0) and state.deltas:
            inputs = replace(state, base=None) if is_minor else state
            tokens = self.tokens(inputs, write_ids)
            low = min(one.name.min_write_id for one in state.deltas)
            high = max(one.name.max_write_id for one in sources)
            name = f"delta_{low:07d}_{high:07d}" if is_minor else f"base_{high:07d}"
            self.fill(f"{name}_v{running.txn_id:07d}", tokens)
        self.world.metastore.mark_compacted(entry)
        self.running = replace(running, entry=entry, is_published=True)

    @precondition(lambda self: self.running is not None and self.running.is_published)
    @rule(is_committed=st.booleans())
    def end_compaction(self, is_committed: bool) -> None:
        running, self.running = self.running, None
        assert running is not None
        if is_committed:
            self.world.commit(running.txn_id, TxnType.COMPACTION)
        else:
            self.world.abort(running.txn_id)
            self.world.metastore.mark_failed(replace(running.entry, error_message="died"))

    @precondition(lambda self: self.running is None)
    @rule(kind=st.sampled_from([CompactionType.MINOR, CompactionType.MAJOR]))
    def compact(self, kind: CompactionType) -> None:
        self.start_compaction(kind)
        if self.running is not None:
            self.publish_compaction()
            self.end_compaction(is_committed=True)

    # -- the cleaner

    def wait(self, milliseconds: int) -> None:
        """Time goes by; all that is open stays alive."""
        self.world.clock.advance_ms(milliseconds)
        running = [self.running.txn_id] if self.running else []
        for txn_id in (*self.open_readers, *self.open_writers, *running):
            self.world.metastore.heartbeat(txn_id, NO_LOCK)

    @rule()
    def clean(self) -> None:
        for _ in range(2):
            self.wait(LEASE_MS // 2 + 1)  # what a dead cleaner held is free
        for outcome in self.world.cleaner().run_once():
            assert outcome.state.value != "failed", outcome.message

    @rule(crash_at=st.integers(1, 60))
    def clean_and_die(self, crash_at: int) -> None:
        self.wait(60_000)
        faults = FaultPlan()
        faults.crash_at = crash_at
        store = replace(
            self.world.store,
            resolver=faulty(self.world.store.resolver, faults),
            manifest=FaultyManifest(self.world.store.manifest, faults),
        )
        with suppress(CrashError):
            make_cleaner(store).run_once()

    @rule()
    def keep_house(self) -> None:
        self.world.metastore.run_housekeeping()

    # -- what must hold

    @invariant()
    def readers_read_what_they_read_before(self) -> None:
        for reader in self.open_readers.values():
            state = self.snapshot(reader.txns, reader.write_ids)
            found = self.tokens(state, reader.write_ids)
            assert sorted(found) == sorted(reader.tokens), f"reader {reader.txn_id}"

    @invariant()
    def a_new_reader_reads_what_is_committed(self) -> None:
        txns, write_ids = self.lists()
        found = self.tokens(self.snapshot(txns, write_ids), write_ids)
        assert sorted(found) == sorted(self.committed)

    @invariant()
    def what_left_the_table_is_in_the_archive(self) -> None:
        kept = self.world.archived_contents()
        for path, text in self.ever_written.items():
            if not (Path(path) / "bucket_00000").exists():
                assert text in kept, path


Schedules.TestCase.settings = settings(
    max_examples=12,
    phases=(Phase.reuse, Phase.generate),
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestSchedules = Schedules.TestCase
