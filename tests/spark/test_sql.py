"""``hms-bridge sql``: DML by Spark on full ACID tables, with Hive's identifiers and directories."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from hms_bridge.connect import LocalStore
from hms_bridge.errors import DmlError, HmsBridgeError
from hms_bridge.model.constraint import ConstraintKind
from hms_bridge.model.ids import LockId
from hms_bridge.model.lock import (
    DataOperation,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
)
from hms_bridge.model.target import Scope
from hms_bridge.model.txn import TxnState
from tests.support.hive_constraints import put_constraint

pytestmark = pytest.mark.spark

BUCKET_0 = 536870912


def directories(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


def test_insert_update_delete_and_what_is_on_disk(run: Any, tmp_path: Path) -> None:
    run("CREATE TABLE t (id INT, name STRING)")
    assert run("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)") == [
        "3 rows inserted, write id 1"
    ]
    assert run("UPDATE t SET name = upper(name) WHERE id < 3") == ["2 rows updated, write id 2"]
    assert run("DELETE FROM t WHERE name IS NULL") == ["1 row deleted, write id 3"]
    (rows,) = run("SELECT * FROM t ORDER BY id")
    assert rows == [(1, "A"), (2, "B")]
    assert directories(tmp_path / "warehouse" / "t") == [
        "delete_delta_0000002_0000002_0000",
        "delete_delta_0000003_0000003_0000",
        "delta_0000001_0000001_0000",
        "delta_0000002_0000002_0001",
    ]
    (ids,) = run("SELECT ROW__ID.writeid, t.row__id.rowid, id FROM t ORDER BY id")
    assert [(write_id, row_id) for write_id, row_id, _ in ids] == [(2, 0), (2, 1)]


def test_types_come_back(run: Any) -> None:
    run(
        "CREATE TABLE t (b BOOLEAN, i BIGINT, f DOUBLE, n DECIMAL(10,2), d DATE, ts TIMESTAMP, "
        "c CHAR(3), v VARCHAR(3), a ARRAY<INT>, m MAP<STRING,INT>, s STRUCT<x:INT,y:STRING>, "
        "x BINARY)"
    )
    run(
        "INSERT INTO t SELECT true, 9000000000, 1.5, 12.34, DATE '1582-10-04', "
        "TIMESTAMP '1969-12-31 23:59:58.25', 'a', 'abcdef', array(1, NULL), map('k', 1), "
        "named_struct('x', 1, 'y', 'z'), CAST('bytes' AS BINARY)"
    )
    ((row,),) = run("SELECT * FROM t")
    assert row[:8] == (
        True, 9000000000, 1.5, Decimal("12.34"), date(1582, 10, 4),
        datetime(1969, 12, 31, 23, 59, 58, 250000), "a  ", "abc",
    )  # fmt: skip
    assert row[8:11] == ([1, None], {"k": 1}, {"x": 1, "y": "z"})
    assert bytes(row[11]) == b"bytes"


def test_a_char_is_compared_by_its_value_and_shown_filled_up(run: Any) -> None:
    """As by Hive 4.2, which strips the blanks wherever a CHAR is computed with."""
    run("CREATE TABLE t (id INT, c CHAR(4)); CREATE TABLE u (c CHAR(6), v VARCHAR(6), s STRING)")
    run("INSERT INTO t VALUES (1, 'a'), (2, ' b'), (3, ''), (4, NULL), (5, 'full')")
    run("INSERT INTO u SELECT c, c, c FROM t")
    for condition in ("c = 'a'", "c IN ('a', 'z')", "c LIKE 'a'", "concat(c, 'x') = 'ax'",
                      "length(c) = 1 AND hex(c) = '61'"):  # fmt: skip
        assert run(f"SELECT id FROM t WHERE {condition}") == [[(1,)]], condition
    (rows,) = run("SELECT t.id, u.c, u.v, u.s FROM t JOIN u ON t.c = u.c ORDER BY t.id")
    assert rows == [
        (1, "a     ", "a", "a"), (2, " b    ", " b", " b"), (3, "      ", "", ""),
        (5, "full  ", "full", "full"),
    ]  # fmt: skip
    (rows,) = run("SELECT c AS x, c AS x FROM t WHERE id <= 2 UNION ALL SELECT c, c FROM t "
                  "WHERE id = 4 ORDER BY 1 DESC")  # fmt: skip
    assert rows == [("a   ", "a   "), (" b  ", " b  "), (None, None)]
    assert run("UPDATE t SET id = 10 WHERE c = 'a'") == ["1 row updated, write id 2"]
    assert run("DELETE FROM t WHERE c IN ('full')") == ["1 row deleted, write id 3"]
    (rows,) = run("SELECT c, count(*) FROM t GROUP BY c ORDER BY c NULLS FIRST")
    assert rows == [(None, 1), ("    ", 1), (" b  ", 1), ("a   ", 1)]


def test_results_that_are_of_no_table(run: Any) -> None:
    """A timestamp has no zone, as in Hive; what Python cannot hold is said in a line."""
    ((row,),) = run("SELECT timestamp '0001-01-01 00:00:00', CAST('2024-06-01 12:00' AS TIMESTAMP)")
    assert row == (datetime(1, 1, 1), datetime(2024, 6, 1, 12))
    (rows,) = run("SELECT array(named_struct('k', map('x', named_struct('y', 1)))) AS a")
    assert rows == [([{"k": {"x": {"y": 1}}}],)]
    with pytest.raises(DmlError, match="cannot be shown: .*CAST it AS STRING"):
        run("SELECT date_add(DATE '9999-12-31', 1)")


def test_partitions_are_made_and_found(run: Any, store: LocalStore) -> None:
    run("CREATE TABLE t (id INT) PARTITIONED BY (p STRING, q INT)")
    run("INSERT INTO t VALUES (1, 'a/b', 1), (2, NULL, 2), (3, 'a/b', 1)")
    run("INSERT INTO t PARTITION (p='x', q) VALUES (4, 5)")
    assert store.metastore.get_partition_names("default", "t") == (
        "p=__HIVE_DEFAULT_PARTITION__/q=2", "p=a%2Fb/q=1", "p=x/q=5",
    )  # fmt: skip
    assert run("DELETE FROM t WHERE p = 'a/b' AND id = 3") == ["1 row deleted, write id 3"]
    run("UPDATE t SET id = 40 WHERE q = 5")
    (rows,) = run("SELECT id, p, q FROM t ORDER BY id")
    assert rows == [(1, "a/b", 1), (2, "__HIVE_DEFAULT_PARTITION__", 2), (40, "x", 5)]


def test_rows_of_a_bucketed_table_lie_in_their_buckets(run: Any, tmp_path: Path) -> None:
    run("CREATE TABLE t (id INT, v STRING) CLUSTERED BY (id) INTO 4 BUCKETS")
    run("INSERT INTO t SELECT id, concat('v', id) FROM range(40)")
    run("DELETE FROM t WHERE id % 3 = 0")
    (rows,) = run("SELECT count(*), count(DISTINCT ROW__ID.bucketid) FROM t")
    assert rows == [(26, 4)]
    deletes = tmp_path / "warehouse" / "t" / "delete_delta_0000002_0000002_0000"
    assert [name for name in directories(deletes) if name.startswith("bucket")] == [
        f"bucket_0000{number}" for number in range(4)
    ]


def test_partitions_of_a_bucketed_table_hold_all_buckets(run: Any) -> None:
    """One task gets rows of several buckets and partitions."""
    run("CREATE TABLE t (id INT) PARTITIONED BY (p INT) CLUSTERED BY (id) INTO 4 BUCKETS")
    run("INSERT INTO t SELECT id, id % 3 FROM range(48)")
    (rows,) = run("SELECT p, count(*), count(DISTINCT ROW__ID.bucketid) FROM t GROUP BY p")
    assert sorted(rows) == [(0, 16, 4), (1, 16, 4), (2, 16, 4)]
    run("DELETE FROM t WHERE id % 2 = 0")
    (rows,) = run("SELECT count(*) FROM t")
    assert rows == [(24,)]


def test_insert_select_from_itself_and_another(run: Any) -> None:
    run("CREATE DATABASE d; CREATE TABLE d.a (id INT); CREATE TABLE d.b (id INT, n INT)")
    run("INSERT INTO d.a VALUES (1), (2); INSERT INTO d.b SELECT id, id * 10 FROM d.a")
    run("INSERT INTO d.b SELECT id + 2, n FROM d.b")
    run("UPDATE d.b SET n = 0 WHERE id IN (SELECT id FROM d.a)")
    (rows,) = run("SELECT id, n FROM d.b ORDER BY id")
    assert rows == [(1, 0), (2, 0), (3, 10), (4, 20)]


def test_a_failed_statement_leaves_nothing(run: Any, store: LocalStore, tmp_path: Path) -> None:
    run("CREATE TABLE t (id INT)")
    with pytest.raises(DmlError, match="Spark refused the statement"):
        run("INSERT INTO t SELECT CAST('x' AS INT)")
    assert directories(tmp_path / "warehouse" / "t") == []
    assert {txn.state for txn in store.metastore.get_open_txns_info()} <= {TxnState.ABORTED}
    assert store.metastore.show_locks() == ()


def hold_exclusively(store: LocalStore) -> LockId:
    """A lock of somebody else on the table `t`."""
    held = store.metastore.lock(
        LockRequest(
            components=(
                LockComponent(
                    type=LockType.EXCLUSIVE,
                    level=LockLevel.TABLE,
                    scope=Scope("default", "t"),
                    operation=DataOperation.NO_TXN,
                ),
            ),
            user="ann",
            host="elsewhere",
        )
    )
    return held.lock_id


def test_a_statement_waits_and_says_for_whom(run: Any, store: LocalStore) -> None:
    run("CREATE TABLE t (id INT); INSERT INTO t VALUES (1)")
    hold_exclusively(store)
    for text in ("UPDATE t SET id = 2", "SELECT * FROM t"):
        with pytest.raises(DmlError, match=r"not granted in 0\.5 s: lock 2, held by ann@elsewhere"):
            run(text)


def test_a_table_that_changes_while_a_writer_waits(
    run: Any, patient_run: Any, store: LocalStore, tmp_path: Path
) -> None:
    """The statement writes to the table that it finds when it may, not to the one it asked for."""
    run("CREATE TABLE t (id INT)")
    lock_id = hold_exclusively(store)
    with ThreadPoolExecutor(1) as another:
        writer = another.submit(patient_run, "INSERT INTO t VALUES (1)")
        while not any(lock.state is LockState.WAITING for lock in store.metastore.show_locks()):
            time.sleep(0.05)
        run("DROP TABLE t")
        run("CREATE TABLE t (ident BIGINT) LOCATION '" + str(tmp_path / "elsewhere") + "'")
        store.metastore.unlock(lock_id)
        assert writer.result() == ["1 row inserted, write id 1"]
    assert run("SELECT ident FROM t") == [[(1,)]]
    (written,) = (tmp_path / "elsewhere").rglob("bucket_00000*")
    assert orc.read_table(written).schema.field("row").type == pa.struct([("ident", pa.int64())])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * FROM nowhere", "there is no table default.nowhere"),
        ("SELECT * FROM tt", "did you mean default.t"),
        ("UPDATE t SET nme = 1", "did you mean name"),
        ("SELECT nosuch(id) FROM t", "Spark refused the statement"),
        ("SELECT a.zzz FROM t a JOIN t b ON a.id = b.id", "zzz"),
        ("SELEC 1", "cannot read the SQL"),
        ("USE nowhere", "there is no database nowhere"),
        ("DESCRIBE tt", "did you mean default.t"),
        ("DROP TABLE tt", "did you mean default.t"),
        ("CREATE TABLE nowhere.t (id INT)", "there is no database nowhere"),
        ("SHOW PARTITIONS t", "default.t has no partitions"),
    ],
)
def test_bad_input_is_one_clear_line(run: Any, text: str, message: str) -> None:
    run("CREATE TABLE t (id INT, name STRING)")
    with pytest.raises(HmsBridgeError, match=message) as caught:
        run(text)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_orc(run: Any, tmp_path: Path) -> None:
    run("CREATE TABLE t (id INT); INSERT INTO t VALUES (1)")
    (file,) = tmp_path.glob("warehouse/t/delta_*/bucket_*")
    file.write_text("somebody's notes, long enough to be looked at")
    with pytest.raises(HmsBridgeError, match=f"cannot read .*{file.name}: .*ORC"):
        run("SELECT * FROM t")


def test_definitions(run: Any) -> None:
    run("CREATE DATABASE IF NOT EXISTS d; USE d; CREATE TABLE t (id INT) PARTITIONED BY (p STRING)")
    assert run("SHOW TABLES") == [[("t",)]]
    assert run("DESCRIBE t") == [[("id", "int", None), ("p", "string", "partition column")]]
    run("INSERT INTO t VALUES (1, 'x/y')")
    assert run("SHOW PARTITIONS t") == [[("p=x%2Fy",)]]
    assert run("DROP TABLE t; DROP TABLE IF EXISTS t; SHOW TABLES IN d")[-1] == []
    assert ("d",) in run("SHOW DATABASES")[0]


def test_rows_that_change_between_plan_and_write_abort_the_statement(
    run: Any, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I1: Spark lost what it kept, as when an executor dies, and the query gives other rows."""
    run("CREATE TABLE t (id INT); CREATE TABLE s (id INT)")
    run(f"INSERT INTO s VALUES {', '.join(f'({n})' for n in range(500))}")
    monkeypatch.setattr(type(spark.range(1)), "persist", lambda frame: frame)
    # What setProperty replaces is 'null' the first time that a row is looked at, and never again.
    once = "reflect('java.lang.System', 'setProperty', concat('{}-seen-', id), 'y') = 'null'"
    for statement in (
        f"INSERT INTO t SELECT id FROM s WHERE {once.format('insert')}",
        f"DELETE FROM s WHERE {once.format('delete')}",
        f"UPDATE s SET id = 0 WHERE {once.format('update')}",
    ):
        with pytest.raises(DmlError, match="rows were to be .* Spark ran the query twice"):
            run(statement)
    ordered = "ORDER BY reflect('java.lang.Math', 'random') LIMIT 9"  # as many, but others
    with pytest.raises(DmlError, match="other rows were to be deleted than written again"):
        run(f"UPDATE s SET id = 0 WHERE id IN (SELECT id FROM s {ordered})")
    monkeypatch.undo()
    assert run("SELECT count(*) FROM t; SELECT count(*), sum(id) FROM s") == [
        [(0,)], [(500, sum(range(500)))]
    ]  # fmt: skip


def test_names_with_blanks_and_umlauts(run: Any) -> None:
    run("CREATE TABLE `öl fass` (`größe in m` INT, id INT)")
    run("INSERT INTO `öl fass` VALUES (1, 2); UPDATE `öl fass` SET id = 3 WHERE `größe in m` = 1")
    assert run("SELECT * FROM `Öl Fass`; SELECT `öl fass`.id FROM default.`öl fass`") == [
        [(1, 3)], [(3,)]
    ]  # fmt: skip


def test_structs_that_are_called_like_their_table_or_database(run: Any) -> None:
    run("CREATE DATABASE s; CREATE TABLE s.t (id INT, s STRUCT<a:INT>, t STRUCT<b:INT>)")
    run("INSERT INTO s.t SELECT 1, named_struct('a', 2), named_struct('b', 3)")
    assert run("SELECT s.a, t.b, s.t.id, t.s.a FROM s.t") == [[(2, 3, 1, 2)]]


def test_a_column_keeps_its_zone_and_a_table_its_comment(run: Any, store: LocalStore) -> None:
    run("CREATE TABLE t (at TIMESTAMP WITH LOCAL TIME ZONE) COMMENT 'when'")
    run("INSERT INTO t SELECT CAST('2024-01-02 03:04:05' AS TIMESTAMP)")
    ((row,),) = run("SELECT CAST(at AS STRING) FROM t")
    assert row == ("2024-01-02 03:04:05",)
    assert store.metastore.get_table("default", "t").parameters["comment"] == "when"


def test_a_not_null_column_of_hive_stays_without_nulls(run: Any, url: str) -> None:
    """As Hive, which fails the whole statement."""
    run("CREATE TABLE t (id INT, name STRING, s STRUCT<x:INT>)")
    put_constraint(url, "t", "nn_name", ConstraintKind.NOT_NULL, 1)
    put_constraint(url, "t", "nn_s", ConstraintKind.NOT_NULL, 2)
    whole = "named_struct('x', 1)"
    run(f"INSERT INTO t SELECT 1, 'a', {whole}")
    refused = r"column name of default\.t is NOT NULL \(constraint nn_name\)"
    for text in (
        f"INSERT INTO t SELECT 2, 'b', {whole} UNION ALL SELECT 3, NULL, {whole}",
        f"INSERT INTO t (id, s) SELECT 2, {whole}",
        "UPDATE t SET name = NULL WHERE id = 1",
    ):
        with pytest.raises(DmlError, match=refused):
            run(text)
    with pytest.raises(DmlError, match="constraint nn_s"):
        run("UPDATE t SET s = NULL")
    # Each refused INSERT has taken a write id, as in Hive.
    assert run("UPDATE t SET id = 5") == ["1 row updated, write id 4"]
    assert run("SELECT id, name, s.x FROM t") == [[(5, "a", 1)]]
    put_constraint(url, "t", "ck", ConstraintKind.CHECK, None, expression="id < 9")
    with pytest.raises(DmlError, match="constraint ck, CHECK id < 9"):
        run("UPDATE t SET id = 6")
    assert run("DELETE FROM t") == ["1 row deleted, write id 5"]


def test_an_insert_reads_its_source_once(run: Any, spark: Any, monkeypatch: Any) -> None:
    """Its files are no more than what it reads is worth; without rows nothing is written."""
    run("CREATE TABLE s (id INT); CREATE TABLE t (id INT); CREATE TABLE b (id INT)")
    run(f"INSERT INTO s VALUES {', '.join(f'({n})' for n in range(9))}; INSERT INTO s VALUES (9)")

    def kept(_: Any) -> Any:
        raise AssertionError("the result is kept")

    monkeypatch.setattr(type(spark.range(1)), "persist", kept)
    assert run("INSERT INTO t SELECT id FROM s WHERE id > 99") == [
        "0 rows inserted, nothing was written"
    ]
    assert run("INSERT INTO t SELECT id FROM s") == ["10 rows inserted, write id 2"]
    (ids,) = run("SELECT ROW__ID.writeid, ROW__ID.bucketid, ROW__ID.rowid FROM t")
    assert sorted(ids) == [(2, 1 << 29, number) for number in range(10)]
    with pytest.raises(AssertionError, match="kept"):  # rows may be more than what is read
        run("INSERT INTO b SELECT s.id FROM s JOIN t ON s.id = t.id")
