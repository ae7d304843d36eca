"""A listing is what Core alone would give, on each database."""

import pytest
from sqlalchemy import bindparam, event, insert, select, union_all

from hms_bridge.backend.engine import Database
from hms_bridge.backend.listing_sql import ListingSql
from hms_bridge.backend.schema.catalog_tables import CDS, SDS
from hms_bridge.backend.schema.txn_tables import AUX_TABLE

A = AUX_TABLE.c
NUMBERS = ListingSql(
    lambda is_one_of: select(A.MT_KEY1, A.MT_KEY2).where(
        is_one_of(A.MT_KEY2, "keys"), bindparam("one") == A.MT_KEY1
    )
)
TOGETHER = ListingSql(
    lambda is_one_of: union_all(
        *(select(A.MT_KEY2.label("number")).where(is_one_of(A.MT_KEY2, name)) for name in "ab")
    )
)
FLAGS = ListingSql(lambda _: select(SDS.c.IS_COMPRESSED.label("flag")).order_by(SDS.c.SD_ID))


@pytest.mark.parametrize("is_heard", [False, True])
@pytest.mark.parametrize("count", [0, 1, 8, 9, 1500])
def test_any_number_of_keys_may_be_asked_for(
    database: Database, count: int, *, is_heard: bool
) -> None:
    with database.transaction(write=True) as connection:
        connection.execute(insert(AUX_TABLE), [{"MT_KEY1": "k", "MT_KEY2": n} for n in range(2000)])
        wanted = list(range(3, 3 + count))
        heard: list[str] = []
        if is_heard:
            event.listen(connection, "before_cursor_execute", lambda *args: heard.append(args[2]))
        rows = NUMBERS.all(connection, keys=wanted, one="k")
        assert sorted(tuple(row) for row in rows) == [("k", number) for number in wanted]
        assert not NUMBERS.all(connection, keys=wanted, one="other")
        assert len(heard) == (2 if is_heard else 0)


def test_rows_have_the_names_of_their_columns(database: Database) -> None:
    with database.transaction(write=True) as connection:
        connection.execute(insert(AUX_TABLE), [{"MT_KEY1": "k", "MT_KEY2": n} for n in range(9)])
        (row,) = NUMBERS.named(connection, keys=[7], one="k")
        assert (row.MT_KEY1, row.MT_KEY2) == ("k", 7)
        numbers = TOGETHER.named(connection, a=[1, 2], b=[2, 3])
        assert sorted(row.number for row in numbers) == [1, 2, 2, 3]


def test_truth_values_are_true_and_false(database: Database) -> None:
    """On PostgreSQL nobody converts them any more."""
    with database.transaction(write=True) as connection:
        connection.execute(insert(CDS), {"CD_ID": 1})
        for key, is_compressed in ((1, True), (2, False)):
            connection.execute(
                insert(SDS),
                {"SD_ID": key, "CD_ID": 1, "IS_COMPRESSED": is_compressed, "NUM_BUCKETS": -1,
                 "IS_STOREDASSUBDIRECTORIES": False},
            )  # fmt: skip
        flags = [flag for (flag,) in FLAGS.all(connection)]
        assert [flag is True for flag in flags] == [True, False]
        assert [flag is False for flag in flags] == [False, True]
