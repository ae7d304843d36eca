import pytest

from hms_bridge.backend.schema.txn_tables import NEXT_WRITE_ID, TXN_COMPONENTS, TXN_TO_WRITE_ID
from hms_bridge.errors import MetaError
from hms_bridge.model.ids import WriteId
from hms_bridge.model.lock import DataOperation
from hms_bridge.model.txn import AllocateWriteIdsRequest, TxnType
from hms_bridge.txn import write_ids
from tests.support.txn_world import TxnWorld, component


def _max(world: TxnWorld, table: str = "t") -> int:
    return world.do(lambda c: write_ids.get_max_allocated_write_id(c, "db", table))


def test_ids_ascend_with_transactions_and_tables_count_apart(world: TxnWorld) -> None:
    txns = world.open(3)
    assert world.allocate(*reversed(txns)) == [1, 2, 3]
    assert world.allocate(txns[0], table="other") == [1]
    assert _max(world) == 3
    assert _max(world, "never") == 0


def test_again_is_the_same(world: TxnWorld) -> None:
    first, second = world.open(2)
    assert world.allocate(first) == [1]
    assert world.allocate(first) == [1]
    request = AllocateWriteIdsRequest(database_name="DB", table_name="T", txn_ids=(first, second))
    done = world.do(lambda c: write_ids.allocate_table_write_ids(c, request))
    assert [pair.write_id for pair in done.pairs] == [1, 2]
    assert [pair.write_id for pair in done.new] == [2]


def test_a_reallocation_gives_a_later_id(world: TxnWorld) -> None:
    first, second = world.open(2)
    world.lock(first, component())
    assert world.allocate(first) == [1]
    assert world.allocate(second) == [2]
    assert world.allocate(first, is_reallocation=True) == [3]
    assert {row["T2W_WRITEID"] for row in world.rows(TXN_TO_WRITE_ID)} == {2, 3}
    assert [row["TC_WRITEID"] for row in world.rows(TXN_COMPONENTS)] == [3]


@pytest.mark.parametrize("how", ["committed", "aborted", "unknown", "reader"])
def test_only_open_writers_get_ids(world: TxnWorld, how: str) -> None:
    good = world.open_one()
    bad = world.open_one(TxnType.READ_ONLY if how == "reader" else TxnType.DEFAULT)
    if how == "committed":
        world.commit(bad)
    elif how == "aborted":
        world.abort(bad)
    elif how == "unknown":
        bad += 1000
    with pytest.raises(MetaError, match=rf"no write ids of db\.t for txnid:{bad}: "):
        world.allocate(good, bad)
    assert world.rows(TXN_TO_WRITE_ID) == []
    assert _max(world) == 0


def test_no_transactions_are_refused(world: TxnWorld) -> None:
    with pytest.raises(MetaError, match="send txnIds"):
        world.allocate()


@pytest.mark.parametrize("is_lock_first", [True, False])
def test_locks_know_the_write_id(world: TxnWorld, is_lock_first: bool) -> None:
    txn_id = world.open_one()
    if is_lock_first:
        world.lock(txn_id, component(), component(table="other"))
    assert world.allocate(txn_id) == [1]
    if not is_lock_first:
        world.lock(txn_id, component(), component(table="other"))
    known = {row["TC_TABLE"]: row["TC_WRITEID"] for row in world.rows(TXN_COMPONENTS)}
    assert known == {"t": 1, "other": None}


def test_seeding(world: TxnWorld) -> None:
    world.do(lambda c: write_ids.seed_write_id(c, "DB", "Seeded", WriteId(10_000_000)))
    assert _max(world, "seeded") == 10_000_000
    assert world.allocate(world.open_one(), table="seeded") == [10_000_001]
    with pytest.raises(MetaError, match="ids up to 10000001 already"):
        world.do(lambda c: write_ids.seed_write_id(c, "db", "seeded", WriteId(5)))


@pytest.mark.parametrize("seed", [-5, -1, 2**62 + 1, 2**63 - 1])
def test_a_seed_below_zero_or_after_which_no_ids_follow_is_refused(
    world: TxnWorld, seed: int
) -> None:
    with pytest.raises(MetaError, match=f"with {seed}; give 0 to"):
        world.do(lambda c: write_ids.seed_write_id(c, "db", "seeded", WriteId(seed)))
    assert world.rows(NEXT_WRITE_ID) == []


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"database": "d" * 129}, "database name .* 129 characters; at most 128 fit"),
        ({"table": "t" * 300}, "table name .* 300 characters; at most 256 fit"),
        ({"partition": f"p={'1' * 800}"}, "partition name .* 802 characters; at most 767 fit"),
    ],
)
def test_names_that_do_not_fit_are_refused_on_every_database(
    world: TxnWorld, more: dict[str, str], message: str
) -> None:
    txn_id = world.open_one()
    with pytest.raises(MetaError, match=message):
        world.lock(txn_id, component(**more))
    if "partition" in more:
        with pytest.raises(MetaError, match=message):
            world.dynamic(txn_id, 1, more["partition"])
    else:
        with pytest.raises(MetaError, match=message):
            world.allocate(txn_id, **more)
    assert world.rows(TXN_COMPONENTS) == world.rows(NEXT_WRITE_ID) == []


def test_the_counter_alone_decides(world: TxnWorld) -> None:
    """Not the highest row, which housekeeping may have purged."""
    world.allocate(world.open_one())
    world.do(lambda c: c.execute(TXN_TO_WRITE_ID.delete()))
    assert world.allocate(world.open_one()) == [2]
    assert [row["NWI_NEXT"] for row in world.rows(NEXT_WRITE_ID)] == [3]


def test_many_at_once(world: TxnWorld) -> None:
    txns = world.open(1000) + world.open(500)
    assert world.allocate(*txns) == list(range(1, 1501))
    world.lock(txns[700], component(operation=DataOperation.UPDATE))
    assert [row["TC_WRITEID"] for row in world.rows(TXN_COMPONENTS)] == [701]
