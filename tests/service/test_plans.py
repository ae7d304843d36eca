"""That no verb which is asked all the time reads a whole table that grows with use or history.

Each statement of a verb is heard on its way to the database, which is then asked how it goes about
it. What it may read as a whole stands in a list, with the reason; and each index of ours is missed
where it is dropped.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest
from sqlalchemy import Connection, Index

from hms_bridge.backend.work import Work
from hms_bridge.catalog import tables
from hms_bridge.catalog.partition_filter import parse_filter
from hms_bridge.catalog.partition_matches import Matches, matches
from hms_bridge.catalog.partition_predicate import bind_filter
from hms_bridge.catalog.partitions import insert_partitions
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.catalog.tables import StoredTable
from hms_bridge.model.catalog import Column
from hms_bridge.model.compaction import CompactionRequest, CompactionType
from hms_bridge.model.ids import NO_TXN, TxnId
from hms_bridge.model.lock import DataOperation
from hms_bridge.model.target import Target
from hms_bridge.model.txn import OpenTxnsRequest, TxnType
from tests.conformance import objects
from tests.service import test_statement_counts
from tests.support.added_indexes import added_indexes
from tests.support.databases import SERVER_URL
from tests.support.plans import Heard, fill, hearing, plan_of, prefer_indexes
from tests.support.ready_verbs import ReadyVerbs
from tests.support.world import World

Called = tuple[str, Callable[[], object]]
DIALECT = (SERVER_URL or "sqlite").partition(":")[0].partition("+")[0]

SMALL = frozenset(
    {
        "AUX_TABLE", "DBS", "HMSB_ARCHIVE_LOCK", "HMSB_ARCHIVE_TIME", "HMSB_EVENT_HOOK",
        "HMSB_TIME_GAP", "NEXT_COMPACTION_QUEUE_ID", "NEXT_LOCK_ID", "NOTIFICATION_SEQUENCE",
        "SEQUENCE_TABLE", "TXN_LOCK_TBL",
    }
)  # fmt: skip
"""Counters, locks, databases, hooks: neither use nor history adds rows to them."""


@dataclass(frozen=True)
class Excuse:
    """A table that is read as a whole by statements with this text (verb: statement), and why."""

    table: str
    text: str
    reason: str
    dialects: Sequence[str] = ("sqlite", "postgresql", "mysql")

    def holds(self, table: str, line: str) -> bool:
        return DIALECT in self.dialects and table == self.table and self.text in line


_ALL = "all of it is the answer"
_FIRST = "in the order of an index, until there are as many as one call takes"
_EACH = "what open transactions have, once for all of them instead of once for each"
_BUILDS = ("postgresql",)
EXCUSES = (
    Excuse(
        "HMSB_LATE_WRITER", "DELETE FROM HMSB_LATE_WRITER",
        "writers of dropped tables that are open or aborted an hour ago at most: few",
    ),
    Excuse("HIVE_LOCKS", "show_locks:", _ALL),
    Excuse("COMPACTION_QUEUE", "show_compactions:", _ALL),
    Excuse("COMPLETED_COMPACTIONS", "show_compactions:", _ALL),
    Excuse("COMPLETED_TXN_COMPONENTS", "find_potential_compactions:", f"{_ALL}, summed up"),
    Excuse(
        "TXNS", "ORDER BY TXNS.TXN_ID DESC LIMIT", "backwards, until one is a second old",
        ("sqlite", "postgresql"),
    ),
    Excuse(
        "TXNS", "min(TXNS_2.TXN_ID)", "the first young one, among what housekeeping has left",
        ("postgresql", "mysql"),
    ),
    Excuse(
        "TXN_TO_WRITE_ID", "SELECT DISTINCT TXN_TO_WRITE_ID.T2W_DATABASE",
        "which tables there are, in an index alone, once in a pass of housekeeping", ("sqlite",),
    ),
    Excuse(
        "NOTIFICATION_LOG", "min(NOTIFICATION_LOG.EVENT_TIME)",
        "once, before the clock was judged first, and after a day without a sign of life",
    ),
    Excuse("NOTIFICATION_LOG", "ORDER BY NOTIFICATION_LOG.EVENT_ID", _FIRST, ("sqlite", "mysql")),
    Excuse(
        "TXN_WRITE_NOTIFICATION_LOG", "ORDER BY TXN_WRITE_NOTIFICATION_LOG.WNL_TXNID", _FIRST,
        ("sqlite",),
    ),
    Excuse("HMSB_FILE_TASK", "FROM HMSB_FILE_TASK ORDER BY", "what is still to be done"),
    Excuse("HMSB_FILE_TASK", ".LOCATION, HMSB_FILE_TASK.TARGET FROM", "places of the same"),
    Excuse("HMSB_ARCHIVE_PIN", "ARCHIVED_SINCE_MS IS NOT NULL", "dumps that are not loaded yet"),
    Excuse("HMSB_ARCHIVE_PIN", "ARCHIVED_SINCE_MS >", "dumps that are not loaded yet"),
    Excuse("MATERIALIZATION_REBUILD_LOCKS", "MRL_LAST_HEARTBEAT >", "views that are rebuilt now"),
    Excuse("HMSB_LEASE", "DELETE FROM HMSB_LEASE", "what was claimed in the last days"),
    Excuse(
        "MATERIALIZATION_REBUILD_LOCKS", "DELETE FROM MATERIALIZATION_REBUILD_LOCKS",
        "rebuilds that are under way",
    ),
    *(
        Excuse(table, "NOT (((EXISTS", _EACH, _BUILDS)
        for table in ("HIVE_LOCKS", "MIN_HISTORY_WRITE_ID", "TXN_COMPONENTS")
    ),
    Excuse("TXN_COMPONENTS", "DELETE FROM TXN_COMPONENTS", _EACH, ("mysql",)),
)  # fmt: skip


USES = {
    "HMSB_CHANGES_BY_COMMIT": "run_housekeeping",
    "HMSB_CHANGES_OF_TABLE": "commit_txn of an update",
    "HMSB_COMPACTED_BY_STATE": "cleaning",
    "HMSB_FILE_TASK_OF_TABLE": "find_next_compaction",
    "HMSB_HISTORY_OF_TXN": "commit_txn of an insert",
    "HMSB_LOCKS_OF_TYPE": "lock",
    **({"HMSB_PARTITIONS_BY_NAME": "filter of the first key"} if DIALECT in _BUILDS else {}),
    "HMSB_QUEUED_BY_STATE": "find_next_compaction",
    "HMSB_QUEUED_OF_TABLE": "compact",
    "HMSB_QUEUED_OF_TXN": "compaction",
    "HMSB_REPLAYED_BY_TARGET": "abort_txn",
    "HMSB_TXN_STATE": "get_open_txns",
    "HMSB_WRITE_IDS_OF_TXN": "commit_txn of an insert",
}
"""Each index of ours, and a verb that goes by it."""

_REPLACED = frozenset({"HMSB_CHANGES_OF_TABLE", "HMSB_LOCKS_OF_TYPE", "HMSB_QUEUED_OF_TABLE"})
"""Without these a part of the table is read by another index: all that has a state, or came later.
It grows as well, but a plan does not say so."""


def _counted(world: World) -> Iterator[Called]:
    for sent in test_statement_counts.TABLE:
        ready = ReadyVerbs(world.metastore)
        ready.add_partition("first")
        yield sent.verb, ready.call_of(sent.verb)


def _of_partitions(world: World) -> Iterator[Called]:
    metastore, ready = world.metastore, ReadyVerbs(world.metastore)
    name = ready.database
    for number in range(12):
        ready.add_partition(f"d{number}")
    some = [objects.partition(name, "p", f"e{number}") for number in range(12)]
    yield "add_partitions", lambda: metastore.add_partitions(name, "p", some)
    yield "alter_partitions", lambda: metastore.alter_partitions(name, "p", some)
    yield "get_partition", lambda: metastore.get_partition(name, "p", ["d1"])
    yield "get_partition_names", lambda: metastore.get_partition_names(name, "p")
    for count in (1, 3, 12):
        names = [f"ds=d{number}" for number in range(count)]
        yield (
            "get_partitions_by_names",
            lambda names=names: metastore.get_partitions_by_names(name, "p", names),  # type: ignore[misc]
        )
    for given in ('ds = "d1"', 'ds in ("d1", "d2")', 'ds > "d1"'):
        yield (
            "get_partitions_by_filter",
            lambda given=given: metastore.get_partitions_by_filter(name, "p", given),  # type: ignore[misc]
        )
    two_keys = (*objects.DS, Column(name="n", type="int"))
    objects.new_table(metastore, name, "q", partition_columns=two_keys)
    metastore.add_partitions(name, "q", [objects.partition(name, "q", "d1", "1")])
    text = 'ds = "d1"'
    yield "filter of the first key", lambda: metastore.get_partitions_by_filter(name, "q", text)
    yield "get_partitions_by_values", lambda: metastore.get_partitions_by_values(name, "p", ["d1"])


def _of_many_partitions(world: World) -> Iterator[Called]:
    """So many that first values are looked for; some are ruled out in the middle of others."""
    metastore, database = world.metastore, ReadyVerbs(world.metastore).database
    days = tuple(Column(name=key, type="int") for key in ("y", "m", "d"))
    objects.new_table(metastore, database, "r", partition_columns=days)
    values = itertools.product(("1", "2"), ("1", "2", "3"), map(str, range(200)))
    many = [objects.partition(database, "r", *one) for one in values]
    stored = world.do(lambda work: tables.require_table(work.connection, database, "r"))
    world.do(lambda work: insert_partitions(work.connection, stored, many))
    for text in ("y = 2 and m = 2", "m = 3", "m != 2", "y > 2"):
        yield (
            f"filter {text}",
            lambda text=text: metastore.get_partitions_by_filter(database, "r", text),  # type: ignore[misc]
        )
    yield "partitions to drop", lambda: world.do(_to_drop, stored)


def _to_drop(work: Work, stored: StoredTable) -> Matches:
    node = parse_filter("m = 2")
    assert node is not None
    bound = bind_filter(node, stored.table.partition_columns)
    return matches(work.connection, stored, bound.selects, bound, RowLock.EXCLUSIVE)


def _of_transactions(world: World) -> Iterator[Called]:
    metastore, ready = world.metastore, ReadyVerbs(world.metastore)
    name = ready.database
    lock = metastore.lock(objects.request(objects.component(name))).lock_id
    yield "heartbeat of a lock", lambda: metastore.heartbeat(NO_TXN, lock)
    yield "get_current_event_id", metastore.get_current_event_id
    yield "show_locks", metastore.show_locks
    yield "get_open_txns_info", metastore.get_open_txns_info
    yield "get_max_allocated_write_id", lambda: metastore.get_max_allocated_write_id(name, "t")
    txn, _ = objects.write(metastore, name, operation=DataOperation.UPDATE)
    yield "get_latest_txn_in_conflict", lambda: metastore.get_latest_txn_in_conflict(txn)
    yield "commit_txn of an update", lambda: objects.commit(metastore, txn)
    several = [objects.write(metastore, name)[0] for _ in range(3)]
    yield "abort_txns", lambda: metastore.abort_txns(several)
    replayed = OpenTxnsRequest(
        user="u", host="h", type=TxnType.REPL_CREATED, count=1, repl_policy="p.*",
        repl_source_txn_ids=(TxnId(7),),
    )  # fmt: skip
    yield "open_txns of a replay", lambda: metastore.open_txns(replayed)


def _of_compactions(world: World) -> Iterator[Called]:
    metastore, ready = world.metastore, ReadyVerbs(world.metastore)
    ready.add_partition("d1")
    target = Target(ready.database, "p", "ds=d1")
    request = CompactionRequest(target=target, type=CompactionType.MINOR)
    yield "compact", lambda: metastore.compact(request)
    yield "show_compactions", metastore.show_compactions
    yield "find_potential_compactions", lambda: metastore.find_potential_compactions(1, 1)
    yield "revoke_timed_out_workers", lambda: metastore.revoke_timed_out_workers(1)
    yield "run_housekeeping", metastore.run_housekeeping
    world.create_table()
    for number in range(3):
        world.insert("t", (number, "v"))
    while world.worker().run_once() is not None:
        pass
    yield "compaction", world.compact
    world.clock.advance_ms(10_000)
    yield "find_ready_to_clean", metastore.find_ready_to_clean
    yield "find_ready_to_clean_aborts", metastore.find_ready_to_clean_aborts
    yield "cleaning", world.cleaner().run_once


_CALLS = (_counted, _of_partitions, _of_many_partitions, _of_transactions, _of_compactions)


@dataclass(frozen=True)
class Asked:
    """What all verbs sent, and the database that answers how it goes about it."""

    world: World
    heard: Sequence[Heard]

    def look(self, connection: Connection) -> Looked:
        prefer_indexes(connection)
        plans = [(one, plan_of(connection, one)) for one in self.heard]
        whole = {(table, one.line) for one, plan in plans for table in plan.whole - SMALL}
        used = {(one.verb, index) for one, plan in plans for index in plan.indexes}
        return Looked(whole=whole, lacking=set(USES.items()) - {(i, verb) for verb, i in used})


@dataclass(frozen=True)
class Looked:
    """What is read as a whole (table, line), and indexes that a verb does not use."""

    whole: set[tuple[str, str]]
    lacking: set[tuple[str, str]]

    @property
    def unexcused(self) -> set[tuple[str, str]]:
        return {read for read in self.whole if not any(excuse.holds(*read) for excuse in EXCUSES)}

    @property
    def shown(self) -> str:
        return "\n".join(f"{table}: {line[:400]}" for table, line in sorted(self.unexcused))


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    world = World(tmp_path_factory.mktemp("plans"))
    heard: list[Heard] = []
    for calls in _CALLS:
        for verb, call in calls(world):
            with hearing(world.engine.engine, verb, heard):
                call()
    with world.engine.transaction(write=True) as connection:
        fill(connection, heard)
    distinct = {(one.verb, one.sql): one for one in heard}
    yield Asked(world, list(distinct.values()))
    world.close()


@pytest.fixture(scope="module")
def looked(asked: Asked) -> Looked:
    with asked.world.engine.transaction(write=True) as connection:
        return asked.look(connection)


def test_no_verb_reads_a_table_that_grows_as_a_whole(looked: Looked) -> None:
    assert not looked.unexcused, looked.shown


def test_every_excuse_is_needed(looked: Looked) -> None:
    unused = [
        excuse
        for excuse in EXCUSES
        if DIALECT in excuse.dialects and not any(excuse.holds(*read) for read in looked.whole)
    ]
    assert not unused


def test_indexes_of_ours_are_used(looked: Looked) -> None:
    assert not looked.lacking
    assert {index.name for index in _ours()} == USES.keys()


def _ours() -> list[Index]:
    return [index for index in added_indexes() if index.info.get("dialect", DIALECT) == DIALECT]


@pytest.mark.parametrize("index", _ours(), ids=lambda index: index.name)
def test_each_index_of_ours_is_missed(asked: Asked, index: Index) -> None:
    if DIALECT == "mysql" and index.columns[0].foreign_keys:
        pytest.skip("InnoDB needs one for its foreign keys")
    with asked.world.engine.transaction(write=True) as connection:
        index.drop(connection)
        try:
            looked = asked.look(connection)
        finally:
            index.create(connection)
    assert index.name in dict(looked.lacking)
    assert index.table is not None
    is_read_whole = index.table.name in {table for table, _ in looked.unexcused}
    assert is_read_whole or index.name in _REPLACED or DIALECT != "sqlite"
