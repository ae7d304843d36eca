from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_bridge.backend.schema.notification_tables import TXN_WRITE_NOTIFICATION_LOG
from hms_bridge.backend.schema.txn_tables import (
    COMPACTION_QUEUE,
    COMPLETED_TXN_COMPONENTS,
    NEXT_WRITE_ID,
    REPL_TXN_MAP,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
)
from hms_bridge.errors import MetaError, TxnAbortedError
from hms_bridge.model.event import NotificationRequest
from hms_bridge.model.ids import EventId, TxnId, WriteId
from hms_bridge.model.properties import INCOMPATIBLE, TARGET_FOR
from hms_bridge.model.target import Target
from hms_bridge.model.txn import (
    AllocateWriteIdsRequest,
    CommitTxnRequest,
    ReplLastId,
    TableWriteIdState,
    TxnState,
    TxnToWriteId,
    TxnType,
    WriteEvent,
)
from hms_bridge.repl.target_objects import OPENED
from hms_bridge.txn.write_id_state import AppliedState, repl_table_write_id_state
from tests.support.event_messages import read_message
from tests.support.txns import Txns
from tests.support.world import World

POLICY = "db.*"
REPLAYED = TxnType.REPL_CREATED


@pytest.fixture
def world(fast_folder: Path) -> Iterator[World]:
    """A replica in which others may write, too."""
    world = World(fast_folder, parameters={TARGET_FOR: "src", OPENED: "true"})
    yield world
    world.close()


def _open(txns: Txns, *sources: int) -> list[TxnId]:
    return txns.open(len(sources), REPLAYED, repl_policy=POLICY, repl_source_txn_ids=tuple(sources))


def _allocate(world: World, pairs: dict[int, int]) -> dict[int, int]:
    request = AllocateWriteIdsRequest(
        database_name="db",
        table_name="t",
        repl_policy=POLICY,
        repl_source=tuple(
            TxnToWriteId(txn_id=TxnId(txn), write_id=WriteId(write)) for txn, write in pairs.items()
        ),
    )
    pairs_here = world.metastore.allocate_table_write_ids(request)
    return {pair.txn_id: pair.write_id for pair in pairs_here}


def _is_broken(world: World) -> bool:
    return INCOMPATIBLE in world.metastore.get_database("db").parameters


def _mapped(world: World) -> dict[int, int]:
    return {row["RTM_SRC_TXN_ID"]: row["RTM_TARGET_TXN_ID"] for row in world.records(REPL_TXN_MAP)}


def test_opening_twice_opens_once(world: World, txns: Txns) -> None:
    ids = _open(txns, 501, 502)
    assert _open(txns, 501, 502) == ids
    assert _mapped(world) == {501: ids[0], 502: ids[1]}
    assert txns.open(1, REPLAYED, repl_policy="other", repl_source_txn_ids=(501,)) == [3]


@pytest.mark.parametrize(
    "more", [{"repl_source_txn_ids": (1,)}, {"repl_policy": "p"}, {}, {"repl_policy": ""}]
)
def test_half_a_request_is_refused(txns: Txns, more: dict[str, object]) -> None:
    with pytest.raises(MetaError, match="send"):
        txns.open(1, REPLAYED, **more)


def test_write_ids_are_the_sources(world: World, txns: Txns) -> None:
    one, two = _open(txns, 502, 501)
    # The source's transaction 502 wrote first.
    assert _allocate(world, {501: 5, 502: 4}) == {one: 4, two: 5}
    assert _allocate(world, {501: 5, 502: 4}) == {one: 4, two: 5}
    assert world.records(NEXT_WRITE_ID)[0]["NWI_NEXT"] == 6


def test_nothing_for_transactions_that_are_not_open(world: World, txns: Txns) -> None:
    _open(txns, 501)
    assert _allocate(world, {501: 1, 502: 2}) == {}
    assert world.records(NEXT_WRITE_ID) == []


def test_lists_with_gaps_are_refused(world: World, txns: Txns) -> None:
    _open(txns, 501, 502)
    with pytest.raises(MetaError, match="contiguous"):
        _allocate(world, {501: 1, 502: 3})
    with pytest.raises(MetaError, match="srcTxnToWriteIdList"):
        _allocate(world, {})


def test_a_jump_forward_keeps_aborted_ids_aborted(world: World, txns: Txns) -> None:
    """Hive drops all rows of the table then, which makes aborted rows visible."""
    (first,) = _open(txns, 501)
    _allocate(world, {501: 1})
    txns.abort(501, type=REPLAYED, repl_policy=POLICY)
    (second,) = _open(txns, 502)
    assert _allocate(world, {502: 5}) == {second: 5}
    assert txns.valid().aborted_ids == (1,)
    assert first == 1


def test_a_jump_back_is_the_sources_word(world: World, txns: Txns) -> None:
    _open(txns, 501, 502)
    _allocate(world, {501: 8})
    (third,) = _open(txns, 503)
    assert _allocate(world, {503: 2}) == {third: 2}
    assert {row["T2W_WRITEID"] for row in world.records(TXN_TO_WRITE_ID)} == {2}
    assert world.records(NEXT_WRITE_ID)[0]["NWI_NEXT"] == 3


def test_a_replayed_commit(world: World, txns: Txns) -> None:
    (mine,) = _open(txns, 501)
    _allocate(world, {501: 7})
    events = tuple(
        WriteEvent(write_id=WriteId(7), target=Target("DB", "T", partition or None))
        for partition in ("", "p=1")
    )
    asked = {"type": REPLAYED, "repl_policy": POLICY, "write_events": events}
    (event,) = txns.commit(501, **asked)
    assert (event.type, read_message(event)["txnid"]) == ("COMMIT_TXN", mine)
    rows = world.records(COMPLETED_TXN_COMPONENTS)
    assert [(row["CTC_TXNID"], row["CTC_PARTITION"], row["CTC_WRITEID"]) for row in rows] == [
        (mine, None, 7),
        (mine, "p=1", 7),
    ]
    assert _mapped(world) == {}
    assert txns.commit(501, **asked) == ()
    assert len(world.records(COMPLETED_TXN_COMPONENTS)) == 2


def _commits(database: str = "db") -> list[CommitTxnRequest]:
    """Of three; the first writes to a partition twice, the second names ``database``."""
    return [
        CommitTxnRequest(
            txn_id=TxnId(source), type=REPLAYED, repl_policy=POLICY,
            write_events=tuple(
                WriteEvent(
                    write_id=WriteId(write_id), target=Target("db", "t", partition),
                    files=(f"file:/wh/{partition}/f{number}#c#",),
                )
                for number, partition in enumerate(partitions)
            ),
            repl_last_id=ReplLastId(
                database_name=of, last_repl_id=90 + source, table_name=table,
            ),
        )
        for source, write_id, partitions, of, table in (
            (501, 7, ("p=1", "p=2", "p=1"), "db", "t"), (502, 8, ("p=1",), database, None),
            (503, 9, ("p=1",), "db", "t"),
        )
    ]  # fmt: skip


def _left_by(world: World) -> list[object]:
    """Rows that commits write, without numbers that only have to differ, and the server's time."""
    written, completed = (
        [
            {key: value for key, value in row.items() if key not in ("WNL_ID", "CTC_TIMESTAMP")}
            for row in world.records(table)
        ]
        for table in (TXN_WRITE_NOTIFICATION_LOG, COMPLETED_TXN_COMPONENTS)
    )
    logged = world.metastore.get_next_notification(NotificationRequest(last_event_id=EventId(0)))
    return [
        sorted(written, key=str),
        sorted(completed, key=str),
        [(event.type, read_message(event).get("txnid")) for event in logged],
        world.metastore.get_database("db").parameters["repl.last.id"],
        _mapped(world),
    ]


def test_commits_together_leave_what_each_alone_leaves(fast_folder: Path) -> None:
    """Rows of files, progress, events and their order."""
    left = []
    for name in ("alone", "together"):
        (fast_folder / name).mkdir()
        world = World(fast_folder / name, parameters={TARGET_FOR: "src", OPENED: "true"})
        _open(world.txns, 501, 502, 503)
        _allocate(world, {501: 7, 502: 8, 503: 9})
        if name == "together":
            world.metastore.commit_replays(_commits())
        else:
            for request in _commits():
                world.metastore.commit_txn(request)
        left.append(_left_by(world))
        world.close()
    assert left[0] == left[1]
    assert left[0][3] == "593"


def test_those_before_a_refused_commit_stay(world: World, txns: Txns) -> None:
    _open(txns, 501, 502, 503)
    _allocate(world, {501: 7, 502: 8, 503: 9})
    with pytest.raises(MetaError, match="default is no replica"):
        world.metastore.commit_replays(_commits("default"))
    assert {row["CTC_WRITEID"] for row in world.records(COMPLETED_TXN_COMPONENTS)} == {7}
    assert _mapped(world).keys() == {502, 503}
    assert world.metastore.get_database("db").parameters["repl.last.id"] == "591"


def test_only_replays_commit_together(txns: Txns, world: World) -> None:
    """A transaction of its own may be refused, and is then aborted: so it commits by itself."""
    mine, lost = txns.open(2)
    txns.abort(lost)
    world.metastore.commit_replays([CommitTxnRequest(txn_id=mine)])
    assert [txn.id for txn in world.metastore.get_open_txns().txns] == [lost]
    with pytest.raises(TxnAbortedError):
        world.metastore.commit_replays([CommitTxnRequest(txn_id=lost)])


def test_a_replayed_abort(world: World, txns: Txns) -> None:
    (mine,) = _open(txns, 501)
    (event,) = txns.abort(501, type=REPLAYED, repl_policy=POLICY)
    assert (event.type, read_message(event)["txnid"]) == ("ABORT_TXN", mine)
    assert not _is_broken(world)
    assert _mapped(world) == {}
    assert txns.abort(501, type=REPLAYED, repl_policy=POLICY) == ()


@pytest.mark.parametrize("verb", ["abort", "abort_many"])
def test_an_abort_from_outside_breaks_the_replication(world: World, txns: Txns, verb: str) -> None:
    (mine,) = _open(txns, 501)
    txns.abort(mine) if verb == "abort" else txns.abort_many([mine])
    assert _is_broken(world)
    assert _mapped(world) == {}


def test_replays_of_plain_transactions_are_not_logged(txns: Txns) -> None:
    first, second = txns.open(2)
    assert txns.commit(first, repl_policy=POLICY) == ()
    assert txns.abort(second, repl_policy=POLICY) == ()


def _apply(world: World, text: str, *partitions: str, are_none: bool = False) -> AppliedState:
    state = TableWriteIdState(
        valid_write_ids=text,
        user="u",
        host="h",
        database_name="DB",
        table_name="T",
        partition_names=partitions or (() if are_none else None),
    )
    return world.do(repl_table_write_id_state, state)


class TestState:
    def test_without_aborted_ids(self, world: World, txns: Txns) -> None:
        assert _apply(world, "db.t:5:9223372036854775807::") == AppliedState()
        assert txns.valid().format() == "db.t:5:9223372036854775807::"
        assert world.records(COMPACTION_QUEUE) == []
        assert txns.allocate(txns.open_one()) == [6]

    def test_aborted_ids_are_aborted_here(self, world: World, txns: Txns) -> None:
        done = _apply(world, "db.t:5:9223372036854775807::2,5")
        assert [txn.id for txn in done.aborted] == list(done.opened) == [1, 2]
        assert txns.valid().format() == "db.t:5:9223372036854775807::2,5"
        assert all(txn.state is TxnState.ABORTED for txn in txns.all().txns)
        (entry,) = world.records(COMPACTION_QUEUE)
        assert (entry["CQ_TYPE"], entry["CQ_PARTITION"]) == ("a", None)

    def test_no_partitions_are_not_the_table(self, world: World) -> None:
        done = _apply(world, "db.t:5:9223372036854775807::2,5", are_none=True)
        assert len(done.aborted) == 2
        assert world.records(COMPACTION_QUEUE) == []

    @pytest.mark.parametrize("aborted", ["2", "2,5", "5", "1,2,3,4", "1,2,3,4,5"])
    def test_what_was_committed_stays_visible(self, world: World, txns: Txns, aborted: str) -> None:
        text = f"db.t:5:9223372036854775807::{aborted}"
        _apply(world, text)
        committed = {1, 2, 3, 4, 5} - {int(one) for one in aborted.split(",")}
        for _ in range(3):
            found = txns.valid()
            assert {one for one in range(1, 9) if found.is_valid(WriteId(one))} == committed
            txns.grow_old()
            txns.open_one()
            txns.grow_old()
            txns.housekeep()

    def test_what_was_open_at_the_source_is_not_the_end(self, world: World, txns: Txns) -> None:
        _apply(world, "db.t:5:4:4,5:2")
        assert txns.valid().format() == "db.t:3:9223372036854775807::2"

    def test_partitions_are_compacted_each(self, world: World) -> None:
        _apply(world, "db.t:5:9223372036854775807::2", "p=1", "p=2")
        assert [row["CQ_PARTITION"] for row in world.records(COMPACTION_QUEUE)] == ["p=1", "p=2"]

    def test_a_table_with_write_ids_is_left_alone(self, world: World, txns: Txns) -> None:
        txns.allocate(txns.open_one())
        assert _apply(world, "db.t:5:9223372036854775807::2") == AppliedState()
        assert world.records(NEXT_WRITE_ID)[0]["NWI_NEXT"] == 2

    def test_aborted_ids_are_remembered_until_they_are_cleaned(self, world: World) -> None:
        _apply(world, "db.t:3:9223372036854775807::2")
        assert [row["TC_WRITEID"] for row in world.records(TXN_COMPONENTS)] == [2]

    def test_more_than_one_call_opens(self, world: World) -> None:
        ids = range(1, 1502)
        _apply(world, f"db.t:1501:9223372036854775807::{','.join(map(str, ids))}")
        assert len(world.records(TXN_TO_WRITE_ID)) == 1501
