import pytest

from hms_bridge.backend.schema.txn_tables import NEXT_WRITE_ID, TXN_TO_WRITE_ID, TXNS
from hms_bridge.errors import MetaError
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.txn import TxnType
from hms_bridge.model.valid_ids import ValidTxnList
from hms_bridge.txn.valid_write_ids import judge
from hms_bridge.txn.write_ids import seed_write_id
from tests.support.golden import GoldenStage, golden_stages
from tests.support.txn_world import TxnWorld


def _put_state(world: TxnWorld, stage: GoldenStage) -> None:
    rows = stage.state["metastore"]
    for table in (TXN_TO_WRITE_ID, NEXT_WRITE_ID):
        found = rows.get(table.name) or []
        if found:
            world.put(table, *found)
    txns = rows.get(TXNS.name) or []
    highest = stage.txns.high_watermark
    if txns:
        world.put(TXNS, *txns)
    if not any(row["TXN_ID"] == highest for row in txns):
        last = {"TXN_ID": highest, "TXN_STATE": "c", "TXN_STARTED": 0, "TXN_LAST_HEARTBEAT": 0}
        world.put(TXNS, last | {"TXN_USER": "", "TXN_HOST": ""})


def _clear(world: TxnWorld) -> None:
    def clear(connection):
        for table in (TXN_TO_WRITE_ID, NEXT_WRITE_ID):
            connection.execute(table.delete())
        connection.execute(TXNS.delete().where(TXNS.c.TXN_ID > 0))

    world.do(clear)


@pytest.mark.golden
def test_lists_of_every_golden_table_state_as_in_hive(world: TxnWorld) -> None:
    world.time.advance_ms(10**12)  # all golden transactions are old
    stages = [
        stage
        for stage in golden_stages("full_acid", "insert_only")
        if "metastore" in stage.state and stage.state.get("valid_write_id_list")
    ]
    assert len(stages) >= 10
    for stage in stages:
        _put_state(world, stage)
        found = world.snapshot()
        assert found.format() == stage.txns.format(), stage
        assert world.valid(stage.table).format() == stage.state["valid_write_id_list"], stage
        under = world.valid(stage.table, stage.txns).format()
        assert under == stage.state["valid_write_id_list_under_txn_list"], stage
        _clear(world)


def test_a_table_that_nobody_wrote(world: TxnWorld) -> None:
    assert world.valid("a.b").format() == "a.b:0:9223372036854775807::"


def test_names_are_in_lower_case(world: TxnWorld) -> None:
    (txn_id,) = world.open()
    world.allocate(txn_id, table="Tab", database="Dat")
    assert world.valid("DAT.tAB").format() == "dat.tab:1:1:1:"


@pytest.mark.parametrize("name", ["bad", ".t", "d.", ""])
def test_a_name_without_database_is_refused(world: TxnWorld, name: str) -> None:
    with pytest.raises(MetaError, match=r"write it as database\.table"):
        world.valid(name)


def test_open_aborted_and_committed(world: TxnWorld) -> None:
    txns = world.open(4)
    world.allocate(*txns)
    world.commit(txns[0])
    world.abort(txns[1])
    world.commit(txns[3])
    assert world.valid().format() == "db.t:4:3:3:2"


def test_under_an_older_snapshot(world: TxnWorld) -> None:
    first, second = world.open(2)
    world.allocate(first)
    before = world.snapshot()
    world.allocate(second)
    world.commit(first)
    world.commit(second)
    (later,) = world.open()
    world.allocate(later)
    assert world.valid(txns=before).format() == "db.t:2:1:1,2:"
    assert world.valid().format() == "db.t:3:3:3:"


def test_the_snapshot_of_a_writer_sees_its_own_write(world: TxnWorld) -> None:
    first, second, third = world.open(3)
    world.allocate(first, second, third)
    found = world.valid(write_id=2)
    assert found.is_valid(WriteId(2))
    assert not found.is_valid(WriteId(1))
    assert not found.is_valid(WriteId(3))


def test_a_write_id_of_nobody_is_refused(world: TxnWorld) -> None:
    with pytest.raises(MetaError, match="invalid write id 7"):
        world.valid(write_id=7)


def test_read_only_transactions_do_not_count(world: TxnWorld) -> None:
    writer, _ = world.write()
    reader = world.open_one(TxnType.READ_ONLY)
    world.commit(writer)
    assert world.valid().format() == "db.t:1:9223372036854775807::"
    assert world.snapshot(reader).format() == f"{reader}:9223372036854775807::"


def test_the_counter_gives_the_watermark_when_all_owners_are_forgotten(world: TxnWorld) -> None:
    world.do(lambda c: seed_write_id(c, "db", "t", WriteId(41)))
    assert world.valid().format() == "db.t:41:9223372036854775807::"


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


def test_nothing_that_was_compacted_is_hidden(world: TxnWorld) -> None:
    for _ in range(3):
        txn_id, _ = world.write()
        world.commit(txn_id)
    world.grow_old()
    pinned, _ = world.write()
    world.grow_old()
    world.housekeep()
    assert [row["T2W_WRITEID"] for row in world.rows(TXN_TO_WRITE_ID)] == [4]
    found = world.valid()
    assert [one for one in range(1, 6) if found.is_valid(WriteId(one))] == [1, 2, 3]
    world.commit(pinned)
    assert world.valid().is_valid(WriteId(4))


def test_a_later_write_id_of_an_earlier_transaction_is_never_hidden(world: TxnWorld) -> None:
    """Write ids need not ascend with transactions: 1 has write id 2, 2 has write id 1. When 1 is
    forgotten first, the list would end at 1 and hide 2, as it does in Hive."""
    first, second = world.open(2)
    assert world.allocate(second) == [1]
    assert world.allocate(first) == [2]
    world.commit(first)
    world.grow_old()
    world.housekeep()
    found = world.valid()
    assert found.is_valid(WriteId(2))
    assert not found.is_valid(WriteId(1))


def test_snapshot_of_a_transaction_ends_at_it(world: TxnWorld) -> None:
    first, second, _ = world.open(3)
    world.commit(first)
    assert world.snapshot(second).format() == f"{second}:9223372036854775807::"
    assert world.snapshot().format() == f"3:{second}:{second},3:"
    assert TxnId(0) not in world.snapshot().open_ids
