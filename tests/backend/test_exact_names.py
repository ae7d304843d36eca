"""On MySQL partitions whose names differ in case are kept apart in Hive's tables of transactions,
also where Hive's own script made these."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy.dialects.mysql.pymysql import dialect

from hms_bridge.backend.schema.exact_names import ColumnOfNames, loose_ones
from hms_bridge.backend.schema.install import check_schema, install, schema_info
from hms_bridge.backend.schema.validation import validate
from hms_bridge.errors import BackendError
from hms_bridge.model.compaction import CompactionType
from hms_bridge.model.lock import DataOperation, LockType
from hms_bridge.service.schema import tables_to_make
from tests.conformance import objects
from tests.support.databases import SERVER_URL
from tests.support.world import World

ON_MARIADB = pytest.mark.skipif(
    not (SERVER_URL or "").startswith(("mysql", "mariadb")), reason="of MariaDB"
)
AS_OF_HIVE = {
    "TXN_COMPONENTS": "TC_PARTITION",
    "COMPLETED_TXN_COMPONENTS": "CTC_PARTITION",
    "COMPACTION_QUEUE": "CQ_PARTITION",
    "COMPLETED_COMPACTIONS": "CC_PARTITION",
}


def column(name: str, collation: str, *, is_nullable: bool = True) -> ColumnOfNames:
    table, _, column = name.partition(".")
    charset = collation.partition("_")[0]
    return ColumnOfNames(
        table=table, column=column, kind="varchar(767)", charset=charset, collation=collation,
        is_nullable=is_nullable,
    )  # fmt: skip


def test_columns_that_are_not_compared_byte_by_byte() -> None:
    loose = column("TXN_COMPONENTS.TC_PARTITION", "latin1_swedish_ci")
    kept_small = column("write_set.ws_partition", "utf8mb4_general_ci", is_nullable=False)
    others = [
        column("COMPACTION_QUEUE.CQ_PARTITION", "latin1_bin"),
        column("TXN_COMPONENTS.TC_TABLE", "latin1_swedish_ci"),
        column("MY_OWN.TC_PARTITION", "latin1_swedish_ci"),
    ]
    assert loose_ones([kept_small, *others, loose]) == (loose, kept_small)
    assert loose.statement(dialect()) == (
        "ALTER TABLE `TXN_COMPONENTS` MODIFY `TC_PARTITION` varchar(767) CHARACTER SET latin1 "
        "COLLATE latin1_bin NULL"
    )
    assert kept_small.statement(dialect()).endswith("SET utf8mb4 COLLATE utf8mb4_bin NOT NULL")


def write(world: World, row: tuple[int, str], partition: str, *, is_aborted: bool = False) -> None:
    txn = world.begin()
    part = objects.component("db", "t", LockType.SHARED_READ, DataOperation.INSERT, partition)
    world.metastore.lock(objects.request(part, txn=txn.id))
    txn.insert("t", [row], partition)
    txn.abort() if is_aborted else txn.commit()


@ON_MARIADB
def test_what_is_cleaned_of_one_stays_of_the_other(fast_folder: Path) -> None:
    world = World(fast_folder)
    with world.engine.transaction(write=True) as connection:
        for table, name in AS_OF_HIVE.items():
            connection.exec_driver_sql(
                f"ALTER TABLE {table} MODIFY {name} VARCHAR(767) COLLATE latin1_swedish_ci"
            )
    try:
        with pytest.raises(BackendError, match=r"run 'hms-bridge schema init': .*TC_PARTITION"):
            check_schema(world.engine)
        assert "schema init" in str(schema_info(world.engine).next_step())
        assert len(tables_to_make(world.engine, None).loose_columns) == len(AS_OF_HIVE)
        assert any("CQ_PARTITION" in problem.what for problem in validate(world.engine))
    finally:
        install(world.engine)
    assert check_schema(world.engine).is_complete
    world.create_table(is_partitioned=True)
    for value in ("a", "A"):
        world.add_partition("t", value)
    write(world, (1, "aborted"), "p=a", is_aborted=True)
    world.clock.advance_ms(100_000_000)
    for number in (2, 3):
        write(world, (number, "kept"), "p=A")
    world.compact("t", CompactionType.MAJOR, "p=A")
    world.clean()
    world.open()
    world.clock.advance_ms(100_000_000)
    world.metastore.run_housekeeping()
    assert [row["id"] for row in world.rows()] == [2, 3]
    world.close()
