import pytest

from hms_bridge.backend.schema.txn_tables import NEXT_WRITE_ID, TXN_COMPONENTS, TXN_TO_WRITE_ID
from hms_bridge.errors import MetaError
from hms_bridge.model.ids import WriteId
from hms_bridge.model.lock import DataOperation
from hms_bridge.model.txn import AllocateWriteIdsRequest, TxnType
from tests.conformance import objects
from tests.support.event_messages import read_message
from tests.support.txns import Txns, component
from tests.support.world import World


def _max(world: World, table: str = "t") -> int:
    return world.metastore.get_max_allocated_write_id("db", table)


def test_ids_ascend_with_transactions_and_tables_count_apart(world: World, txns: Txns) -> None:
    ids = txns.open(3)
    assert txns.allocate(*reversed(ids)) == [1, 2, 3]
    assert txns.allocate(ids[0], table="other") == [1]
    assert _max(world) == 3
    assert _max(world, "never") == 0


def test_again_is_the_same(world: World, txns: Txns) -> None:
    first, second = txns.open(2)
    assert txns.allocate(first) == [1]
    assert txns.allocate(first) == [1]
    request = AllocateWriteIdsRequest(database_name="DB", table_name="T", txn_ids=(first, second))
    last = world.metastore.get_current_event_id()
    pairs = world.metastore.allocate_table_write_ids(request)
    assert [pair.write_id for pair in pairs] == [1, 2]
    (event,) = objects.events_after(world.metastore, last)
    message = read_message(event)
    assert (message["txnIdList"], message["writeIdList"]) == ([second], [2])


def test_a_reallocation_gives_a_later_id(world: World, txns: Txns) -> None:
    first, second = txns.open(2)
    txns.lock(first, component())
    assert txns.allocate(first) == [1]
    assert txns.allocate(second) == [2]
    assert txns.allocate(first, is_reallocation=True) == [3]
    assert {row["T2W_WRITEID"] for row in world.records(TXN_TO_WRITE_ID)} == {2, 3}
    assert [row["TC_WRITEID"] for row in world.records(TXN_COMPONENTS)] == [3]


@pytest.mark.parametrize("how", ["committed", "aborted", "unknown", "reader"])
def test_only_open_writers_get_ids(world: World, txns: Txns, how: str) -> None:
    good = txns.open_one()
    bad = txns.open_one(TxnType.READ_ONLY if how == "reader" else TxnType.DEFAULT)
    if how == "committed":
        txns.commit(bad)
    elif how == "aborted":
        txns.abort(bad)
    elif how == "unknown":
        bad += 1000
    with pytest.raises(MetaError, match=rf"no write ids of db\.t for txnid:{bad}: "):
        txns.allocate(good, bad)
    assert world.records(TXN_TO_WRITE_ID) == []
    assert _max(world) == 0


def test_no_transactions_are_refused(txns: Txns) -> None:
    with pytest.raises(MetaError, match="send txnIds"):
        txns.allocate()


@pytest.mark.parametrize("is_lock_first", [True, False])
def test_locks_know_the_write_id(world: World, txns: Txns, is_lock_first: bool) -> None:
    txn_id = txns.open_one()
    if is_lock_first:
        txns.lock(txn_id, component(), component(table="other"))
    assert txns.allocate(txn_id) == [1]
    if not is_lock_first:
        txns.lock(txn_id, component(), component(table="other"))
    known = {row["TC_TABLE"]: row["TC_WRITEID"] for row in world.records(TXN_COMPONENTS)}
    assert known == {"t": 1, "other": None}


def test_seeding(world: World, txns: Txns) -> None:
    world.metastore.seed_write_id("DB", "Seeded", WriteId(10_000_000))
    assert _max(world, "seeded") == 10_000_000
    assert txns.allocate(txns.open_one(), table="seeded") == [10_000_001]
    with pytest.raises(MetaError, match="ids up to 10000001 already"):
        world.metastore.seed_write_id("db", "seeded", WriteId(5))


@pytest.mark.parametrize("seed", [-5, -1, 2**62 + 1, 2**63 - 1])
def test_a_seed_below_zero_or_after_which_no_ids_follow_is_refused(world: World, seed: int) -> None:
    with pytest.raises(MetaError, match=f"with {seed}; give 0 to"):
        world.metastore.seed_write_id("db", "seeded", WriteId(seed))
    assert world.records(NEXT_WRITE_ID) == []


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"database": "d" * 129}, "database name .* 129 characters; at most 128 fit"),
        ({"table": "t" * 300}, "table name .* 300 characters; at most 256 fit"),
        ({"partition": f"p={'1' * 800}"}, "partition name .* 802 characters; at most 767 fit"),
    ],
)
def test_names_that_do_not_fit_are_refused_on_every_database(
    world: World, txns: Txns, more: dict[str, str], message: str
) -> None:
    txn_id = txns.open_one()
    with pytest.raises(MetaError, match=message):
        txns.lock(txn_id, component(**more))
    if "partition" in more:
        with pytest.raises(MetaError, match=message):
            txns.dynamic(txn_id, 1, more["partition"])
    else:
        with pytest.raises(MetaError, match=message):
            txns.allocate(txn_id, **more)
    assert world.records(TXN_COMPONENTS) == world.records(NEXT_WRITE_ID) == []


def test_the_counter_alone_decides(world: World, txns: Txns) -> None:
    """Not the highest row, which housekeeping may have purged."""
    txns.allocate(txns.open_one())
    world.execute(TXN_TO_WRITE_ID.delete())
    assert txns.allocate(txns.open_one()) == [2]
    assert [row["NWI_NEXT"] for row in world.records(NEXT_WRITE_ID)] == [3]


def test_many_at_once(world: World, txns: Txns) -> None:
    ids = txns.open(1000) + txns.open(500)
    assert txns.allocate(*ids) == list(range(1, 1501))
    txns.lock(ids[700], component(operation=DataOperation.UPDATE))
    assert [row["TC_WRITEID"] for row in world.records(TXN_COMPONENTS)] == [701]
