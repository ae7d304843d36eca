import pytest

from hms_bridge.backend.schema.txn_tables import (
    COMPACTION_QUEUE,
    COMPLETED_TXN_COMPONENTS,
    NEXT_WRITE_ID,
    REPL_TXN_MAP,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
)
from hms_bridge.errors import MetaError
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.target import Target
from hms_bridge.model.txn import (
    AllocateWriteIdsRequest,
    TableWriteIdState,
    TxnState,
    TxnToWriteId,
    TxnType,
    WriteEvent,
)
from hms_bridge.txn import write_ids
from hms_bridge.txn.write_id_state import AppliedState, repl_table_write_id_state
from tests.support.txn_world import TxnWorld

POLICY = "src.*"
REPLAYED = TxnType.REPL_CREATED


def _open(world: TxnWorld, *sources: int) -> list[TxnId]:
    return world.open(
        len(sources), REPLAYED, repl_policy=POLICY, repl_source_txn_ids=tuple(sources)
    )


def _allocate(world: TxnWorld, pairs: dict[int, int]) -> dict[int, int]:
    request = AllocateWriteIdsRequest(
        database_name="db",
        table_name="t",
        repl_policy=POLICY,
        repl_source=tuple(
            TxnToWriteId(txn_id=TxnId(txn), write_id=WriteId(write)) for txn, write in pairs.items()
        ),
    )
    done = world.do(lambda c: write_ids.allocate_table_write_ids(c, request))
    return {pair.txn_id: pair.write_id for pair in done.pairs}


def _mapped(world: TxnWorld) -> dict[int, int]:
    return {row["RTM_SRC_TXN_ID"]: row["RTM_TARGET_TXN_ID"] for row in world.rows(REPL_TXN_MAP)}


def test_opening_twice_opens_once(world: TxnWorld) -> None:
    ids = _open(world, 501, 502)
    assert _open(world, 501, 502) == ids
    assert _mapped(world) == {501: ids[0], 502: ids[1]}
    assert world.open(1, REPLAYED, repl_policy="other", repl_source_txn_ids=(501,)) == [3]


@pytest.mark.parametrize(
    "more", [{"repl_source_txn_ids": (1,)}, {"repl_policy": "p"}, {}, {"repl_policy": ""}]
)
def test_half_a_request_is_refused(world: TxnWorld, more: dict[str, object]) -> None:
    with pytest.raises(MetaError, match="send"):
        world.open(1, REPLAYED, **more)


def test_write_ids_are_the_sources(world: TxnWorld) -> None:
    one, two = _open(world, 502, 501)
    # The source's transaction 502 wrote first.
    assert _allocate(world, {501: 5, 502: 4}) == {one: 4, two: 5}
    assert _allocate(world, {501: 5, 502: 4}) == {one: 4, two: 5}
    assert world.rows(NEXT_WRITE_ID)[0]["NWI_NEXT"] == 6


def test_nothing_for_transactions_that_are_not_open(world: TxnWorld) -> None:
    _open(world, 501)
    assert _allocate(world, {501: 1, 502: 2}) == {}
    assert world.rows(NEXT_WRITE_ID) == []


def test_lists_with_gaps_are_refused(world: TxnWorld) -> None:
    _open(world, 501, 502)
    with pytest.raises(MetaError, match="contiguous"):
        _allocate(world, {501: 1, 502: 3})
    with pytest.raises(MetaError, match="srcTxnToWriteIdList"):
        _allocate(world, {})


def test_a_jump_forward_keeps_aborted_ids_aborted(world: TxnWorld) -> None:
    """Hive drops all rows of the table then, which makes aborted rows visible."""
    (first,) = _open(world, 501)
    _allocate(world, {501: 1})
    world.abort(501, type=REPLAYED, repl_policy=POLICY)
    (second,) = _open(world, 502)
    assert _allocate(world, {502: 5}) == {second: 5}
    assert world.valid().aborted_ids == (1,)
    assert first == 1


def test_a_jump_back_is_the_sources_word(world: TxnWorld) -> None:
    _open(world, 501, 502)
    _allocate(world, {501: 8})
    (third,) = _open(world, 503)
    assert _allocate(world, {503: 2}) == {third: 2}
    assert {row["T2W_WRITEID"] for row in world.rows(TXN_TO_WRITE_ID)} == {2}
    assert world.rows(NEXT_WRITE_ID)[0]["NWI_NEXT"] == 3


def test_a_replayed_commit(world: TxnWorld) -> None:
    (mine,) = _open(world, 501)
    _allocate(world, {501: 7})
    events = tuple(
        WriteEvent(write_id=WriteId(7), target=Target("DB", "T", partition or None))
        for partition in ("", "p=1")
    )
    asked = {"type": REPLAYED, "repl_policy": POLICY, "write_events": events}
    outcome = world.commit(501, **asked)
    assert (outcome.txn_id, outcome.is_event_due) == (mine, True)
    rows = world.rows(COMPLETED_TXN_COMPONENTS)
    assert [(row["CTC_TXNID"], row["CTC_PARTITION"], row["CTC_WRITEID"]) for row in rows] == [
        (mine, None, 7),
        (mine, "p=1", 7),
    ]
    assert _mapped(world) == {}
    again = world.commit(501, **asked)
    assert (again.txn_id, again.is_event_due) == (None, False)
    assert len(world.rows(COMPLETED_TXN_COMPONENTS)) == 2


def test_a_replayed_abort(world: TxnWorld) -> None:
    (mine,) = _open(world, 501)
    outcome = world.abort(501, type=REPLAYED, repl_policy=POLICY)
    assert [txn.id for txn in outcome.logged] == [mine]
    assert outcome.broken_policies == ()
    assert _mapped(world) == {}
    assert world.abort(501, type=REPLAYED, repl_policy=POLICY).logged == ()


@pytest.mark.parametrize("verb", ["abort", "abort_many"])
def test_an_abort_from_outside_breaks_the_replication(world: TxnWorld, verb: str) -> None:
    (mine,) = _open(world, 501)
    outcome = world.abort(mine) if verb == "abort" else world.abort_many([mine])
    assert outcome.broken_policies == (POLICY,)
    assert _mapped(world) == {}


def test_replays_of_plain_transactions_are_not_logged(world: TxnWorld) -> None:
    first, second = world.open(2)
    assert not world.commit(first, repl_policy=POLICY).is_event_due
    assert world.abort(second, repl_policy=POLICY).logged == ()


def _apply(world: TxnWorld, text: str, *partitions: str) -> AppliedState:
    state = TableWriteIdState(
        valid_write_ids=text,
        user="u",
        host="h",
        database_name="DB",
        table_name="T",
        partition_names=partitions,
    )
    return world.do(lambda c: repl_table_write_id_state(world.work(c), state))


class TestState:
    def test_without_aborted_ids(self, world: TxnWorld) -> None:
        assert _apply(world, "db.t:5:9223372036854775807::") == AppliedState()
        assert world.valid().format() == "db.t:5:9223372036854775807::"
        assert world.rows(COMPACTION_QUEUE) == []
        assert world.allocate(world.open_one()) == [6]

    def test_aborted_ids_are_aborted_here(self, world: TxnWorld) -> None:
        done = _apply(world, "db.t:5:9223372036854775807::2,5")
        assert [txn.id for txn in done.aborted] == list(done.opened) == [1, 2]
        assert world.valid().format() == "db.t:5:9223372036854775807::2,5"
        assert all(txn.state is TxnState.ABORTED for txn in world.open_txns().txns)
        (entry,) = world.rows(COMPACTION_QUEUE)
        assert (entry["CQ_TYPE"], entry["CQ_PARTITION"]) == ("a", None)

    @pytest.mark.parametrize("aborted", ["2", "2,5", "5", "1,2,3,4", "1,2,3,4,5"])
    def test_what_was_committed_stays_visible(self, world: TxnWorld, aborted: str) -> None:
        text = f"db.t:5:9223372036854775807::{aborted}"
        _apply(world, text)
        committed = {1, 2, 3, 4, 5} - {int(one) for one in aborted.split(",")}
        for _ in range(3):
            found = world.valid()
            assert {one for one in range(1, 9) if found.is_valid(WriteId(one))} == committed
            world.grow_old()
            world.open_one()
            world.grow_old()
            world.housekeep()

    def test_what_was_open_at_the_source_is_not_the_end(self, world: TxnWorld) -> None:
        _apply(world, "db.t:5:4:4,5:2")
        assert world.valid().format() == "db.t:3:9223372036854775807::2"

    def test_partitions_are_compacted_each(self, world: TxnWorld) -> None:
        _apply(world, "db.t:5:9223372036854775807::2", "p=1", "p=2")
        assert [row["CQ_PARTITION"] for row in world.rows(COMPACTION_QUEUE)] == ["p=1", "p=2"]

    def test_a_table_with_write_ids_is_left_alone(self, world: TxnWorld) -> None:
        world.allocate(world.open_one())
        assert _apply(world, "db.t:5:9223372036854775807::2") == AppliedState()
        assert world.rows(NEXT_WRITE_ID)[0]["NWI_NEXT"] == 2

    def test_aborted_ids_are_remembered_until_they_are_cleaned(self, world: TxnWorld) -> None:
        _apply(world, "db.t:3:9223372036854775807::2")
        assert [row["TC_WRITEID"] for row in world.rows(TXN_COMPONENTS)] == [2]

    def test_more_than_one_call_opens(self, world: TxnWorld) -> None:
        ids = range(1, 1502)
        _apply(world, f"db.t:1501:9223372036854775807::{','.join(map(str, ids))}")
        assert len(world.rows(TXN_TO_WRITE_ID)) == 1501
