import pytest

from hms_bridge.backend.schema.txn_tables import NEXT_WRITE_ID, TXN_TO_WRITE_ID, TXNS
from hms_bridge.errors import MetaError
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.txn import TxnType
from hms_bridge.model.valid_ids import ValidTxnList
from hms_bridge.txn.valid_write_ids import judge
from tests.support.golden import GoldenStage, golden_stages
from tests.support.txns import Txns
from tests.support.world import World


def _put_state(world: World, stage: GoldenStage) -> None:
    rows = stage.state["metastore"]
    for table in (TXN_TO_WRITE_ID, NEXT_WRITE_ID, TXNS):
        for row in rows.get(table.name) or []:
            world.put(table, **row)
    highest = stage.txns.high_watermark
    if not any(row["TXN_ID"] == highest for row in rows.get(TXNS.name) or []):
        last = {"TXN_ID": highest, "TXN_STATE": "c", "TXN_STARTED": 0, "TXN_LAST_HEARTBEAT": 0}
        world.put(TXNS, **last, TXN_USER="", TXN_HOST="")


def _clear(world: World) -> None:
    for statement in (
        TXN_TO_WRITE_ID.delete(),
        NEXT_WRITE_ID.delete(),
        TXNS.delete().where(TXNS.c.TXN_ID > 0),
    ):
        world.execute(statement)


@pytest.mark.golden
def test_lists_of_every_golden_table_state_as_in_hive(world: World, txns: Txns) -> None:
    world.clock.advance_ms(10**12)  # all golden transactions are old
    stages = [
        stage
        for stage in golden_stages("full_acid", "insert_only")
        if "metastore" in stage.state and stage.state.get("valid_write_id_list")
    ]
    assert len(stages) >= 10
    for stage in stages:
        _put_state(world, stage)
        found = txns.snapshot()
        assert found.format() == stage.txns.format(), stage
        assert txns.valid(stage.table).format() == stage.state["valid_write_id_list"], stage
        under = txns.valid(stage.table, stage.txns).format()
        assert under == stage.state["valid_write_id_list_under_txn_list"], stage
        _clear(world)


def test_a_table_that_nobody_wrote(txns: Txns) -> None:
    assert txns.valid("a.b").format() == "a.b:0:9223372036854775807::"


def test_names_are_in_lower_case(txns: Txns) -> None:
    (txn_id,) = txns.open()
    txns.allocate(txn_id, table="Tab", database="Dat")
    assert txns.valid("DAT.tAB").format() == "dat.tab:1:1:1:"


@pytest.mark.parametrize("name", ["bad", ".t", "d.", ""])
def test_a_name_without_database_is_refused(txns: Txns, name: str) -> None:
    with pytest.raises(MetaError, match=r"write it as database\.table"):
        txns.valid(name)


def test_open_aborted_and_committed(txns: Txns) -> None:
    ids = txns.open(4)
    txns.allocate(*ids)
    txns.commit(ids[0])
    txns.abort(ids[1])
    txns.commit(ids[3])
    assert txns.valid().format() == "db.t:4:3:3:2"


def test_under_an_older_snapshot(txns: Txns) -> None:
    first, second = txns.open(2)
    txns.allocate(first)
    before = txns.snapshot()
    txns.allocate(second)
    txns.commit(first)
    txns.commit(second)
    (later,) = txns.open()
    txns.allocate(later)
    assert txns.valid(txns=before).format() == "db.t:2:1:1,2:"
    assert txns.valid().format() == "db.t:3:3:3:"


def test_the_snapshot_of_a_writer_sees_its_own_write(txns: Txns) -> None:
    first, second, third = txns.open(3)
    txns.allocate(first, second, third)
    found = txns.valid(write_id=2)
    assert found.is_valid(WriteId(2))
    assert not found.is_valid(WriteId(1))
    assert not found.is_valid(WriteId(3))


def test_a_write_id_of_nobody_is_refused(txns: Txns) -> None:
    with pytest.raises(MetaError, match="invalid write id 7"):
        txns.valid(write_id=7)


def test_read_only_transactions_do_not_count(txns: Txns) -> None:
    writer, _ = txns.write()
    reader = txns.open_one(TxnType.READ_ONLY)
    txns.commit(writer)
    assert txns.valid().format() == "db.t:1:9223372036854775807::"
    assert txns.snapshot(reader).format() == f"{reader}:9223372036854775807::"


def test_the_counter_gives_the_watermark_when_all_owners_are_forgotten(
    world: World, txns: Txns
) -> None:
    world.metastore.seed_write_id("db", "t", WriteId(41))
    assert txns.valid().format() == "db.t:41:9223372036854775807::"


@pytest.mark.parametrize(
    ("rows", "txns", "expected"),
    [
        # Nothing valid: Hive's lists end at 3 here, and a base that ends at 4 is of no use then.
        ([(5, 3), (6, 4)], "9:5:5,6:", "d.t:4:3:3,4:"),
        ([(5, 3), (6, 4)], "9:9223372036854775807::5,6", "d.t:4:9223372036854775807::3,4"),
        ([(5, 3), (6, 4)], "9:6:6:5", "d.t:4:4:4:3"),
        ([(5, 3), (6, 4)], "9:5:5:6", "d.t:4:3:3:4"),
        ([(4, 2), (5, 3), (6, 4)], "9:6:6:5", "d.t:4:4:4:3"),
        ([(5, 3), (6, 4)], "9:5:5:", "d.t:4:3:3:"),
        # Owners above the snapshot count as open.
        ([(5, 3), (12, 4)], "9:9223372036854775807::", "d.t:4:4:4:"),
        ([], "9:9223372036854775807::", "d.t:4:9223372036854775807::"),
    ],
)
def test_a_list_never_ends_early(rows: list[tuple[int, int]], txns: str, expected: str) -> None:
    assert judge("d.t", WriteId(4), rows, ValidTxnList.parse(txns)).format() == expected


def test_nothing_that_was_compacted_is_hidden(world: World, txns: Txns) -> None:
    for _ in range(3):
        txn_id, _ = txns.write()
        txns.commit(txn_id)
    txns.grow_old()
    pinned, _ = txns.write()
    txns.grow_old()
    txns.housekeep()
    assert [row["T2W_WRITEID"] for row in world.records(TXN_TO_WRITE_ID)] == [4]
    found = txns.valid()
    assert [one for one in range(1, 6) if found.is_valid(WriteId(one))] == [1, 2, 3]
    txns.commit(pinned)
    assert txns.valid().is_valid(WriteId(4))


def test_a_later_write_id_of_an_earlier_transaction_is_never_hidden(txns: Txns) -> None:
    """Write ids need not ascend with transactions: 1 has write id 2, 2 has write id 1. When 1 is
    forgotten first, the list would end at 1 and hide 2, as it does in Hive."""
    first, second = txns.open(2)
    assert txns.allocate(second) == [1]
    assert txns.allocate(first) == [2]
    txns.commit(first)
    txns.grow_old()
    txns.housekeep()
    found = txns.valid()
    assert found.is_valid(WriteId(2))
    assert not found.is_valid(WriteId(1))


def test_snapshot_of_a_transaction_ends_at_it(txns: Txns) -> None:
    first, second, _ = txns.open(3)
    txns.commit(first)
    assert txns.snapshot(second).format() == f"{second}:9223372036854775807::"
    assert txns.snapshot().format() == f"3:{second}:{second},3:"
    assert TxnId(0) not in txns.snapshot().open_ids
