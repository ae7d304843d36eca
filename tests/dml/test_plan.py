"""Plans: the rows to delete and insert, in Spark's SQL, and refusals before anything runs."""

import pytest
from sqlglot import Parser

from hms_bridge.dml.parse import parse_statement
from hms_bridge.dml.plan import QueryPlan, Write, WritePlan, plan_query, plan_write
from hms_bridge.dml.spark_types import spark_type
from hms_bridge.dml.statement import Delete, Insert, NameAsWritten, Select, Update
from hms_bridge.errors import DmlError
from hms_bridge.model.catalog import Column, Storage, Table

COLUMNS = (
    Column(name="id", type="int"),
    Column(name="name", type="varchar(5)"),
    Column(name="at", type="timestamp"),
    Column(name="s", type="struct<f:int>"),
)
TABLE = Table(
    name="t",
    database_name="d",
    storage=Storage(columns=COLUMNS, bucket_columns=("id",)),
    partition_columns=(Column(name="p", type="string"),),
    parameters={"transactional": "true", "bucketing_version": "2"},
)
TABLES = {
    NameAsWritten(database=None, name="t"): TABLE,
    NameAsWritten(database="d", name="t"): TABLE,
}


def plan(text: str) -> QueryPlan | WritePlan:
    statement = parse_statement(text)
    if isinstance(statement, Select):
        return plan_query(statement, TABLES)
    assert isinstance(statement, Insert | Update | Delete)
    return plan_write(statement, TABLES)


def test_star_leaves_row_ids_out_as_in_hive() -> None:
    planned = plan("select ROW__ID, t.* from d.t where s.f = 1")
    assert planned.query == (
        "SELECT ROW__ID, t.* EXCEPT (`row__id`) FROM `hive_acid__1__d__t` AS `t` WHERE s.f = 1"
    )
    assert [(v.view_name, v.has_row_ids) for v in planned.sources] == [("hive_acid__1__d__t", True)]
    assert not plan("select * from t").sources[0].has_row_ids


def test_update_deletes_then_inserts_whole_rows() -> None:
    planned = plan("update t set name = upper(name) where id > 1")
    assert isinstance(planned, WritePlan)
    assert (planned.kind, planned.delete_statement_id, planned.insert_statement_id) == (
        Write.UPDATE, 0, 1,
    )  # fmt: skip
    assert planned.query == (
        "SELECT `row__id`, `row__partition`, CAST(`id` AS int) AS `id`, "
        "CAST(`name` AS string) AS `name`, CAST(`at` AS timestamp_ntz) AS `at`, "
        "CAST(`s` AS struct<f:int>) AS `s` FROM "
        "(SELECT `t`.`row__id`, `t`.`row__partition`, `t`.`id` AS `id`, UPPER(name) AS `name`, "
        "`t`.`at` AS `at`, `t`.`s` AS `s` FROM `hive_acid__1__d__t` AS `t` WHERE id > 1) AS source"
    )


def test_delete_reads_identifiers_and_partition_only() -> None:
    planned = plan("delete from d.t where d.t.id = 1")
    assert planned.query == (
        "SELECT `t`.`row__id`, `t`.`row__partition` FROM `hive_acid__1__d__t` AS `t` WHERE t.id = 1"
    )


def test_insert_fills_missing_columns_with_null() -> None:
    planned = plan("insert into t partition (p='q') (name) values ('x')")
    assert planned.query == (
        "SELECT CAST(NULL AS int) AS `id`, CAST(`c0` AS string) AS `name`, "
        "CAST(NULL AS timestamp_ntz) AS `at`, CAST(NULL AS struct<f:int>) AS `s`, "
        "CAST('q' AS string) AS `p` FROM (VALUES ('x')) AS source(`c0`)"
    )


def test_structs_keep_their_names() -> None:
    query = "SELECT array(named_struct('k', map('x', named_struct('y z', id)))) AS q FROM t"
    assert plan(query).query.startswith("SELECT ARRAY(STRUCT(MAP('x', STRUCT(id AS `y z`)) AS k))")
    update = plan("UPDATE t SET s = named_struct('a', 1, 'b', struct(2, 3))")
    assert "STRUCT(1 AS a, STRUCT(2 AS col1, 3 AS col2) AS b) AS `s`" in update.query


@pytest.mark.parametrize(
    "call",
    [
        "MONTHS_BETWEEN(at, at, FALSE)",
        "ARRAY_JOIN(ARRAY(name, NULL), ',', '-')",
        "LPAD(name, 3)",
        "name ILIKE 'x%'",
        "DATE_ADD(at, 'b')",
    ],
)
def test_a_function_reaches_spark_as_it_was_typed(call: str) -> None:
    assert plan(f"select {call} from t").query.startswith(f"SELECT {call} FROM ")


@pytest.mark.parametrize(
    "text",
    [
        "select id from t where p in (select p from d.t)",
        "insert into t partition (p='q') (name) select name from t",
        "update t set name = upper(name) where id > 1",
        "delete from t where id = 1",
    ],
)
def test_sql_is_read_once(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan is made of the statement's trees, which stay as they are: it is made twice, before
    the locks and under them."""
    statement = parse_statement(text)
    before = repr(statement)
    monkeypatch.delattr(Parser, "parse")
    planned = [
        plan_query(statement, TABLES)
        if isinstance(statement, Select)
        else plan_write(statement, TABLES)  # type: ignore[arg-type]
        for _ in range(2)
    ]
    assert planned[0] == planned[1]
    assert repr(statement) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("select regexp_replace(name, 'b') from t", "cannot write the statement for Spark"),
        ("select map(select 'a', 1) from t", "cannot read the SQL"),
        ("select nam from t", "nam is no column of d.t; did you mean name"),
        ("select t.row__id.bogus from t", "ROW__ID has no field bogus"),
        ("update t set nam = 1", "nam is no column of d.t; did you mean name"),
        ("update t set name = nope(1), name = 2", "assigned twice"),
        ("update t set p = 'x'", "cannot be updated"),
        ("update t set name = '2020-01-01 00:00:00.1234567'", "more digits than microseconds"),
        ("delete from t where at = n'2020-01-01 00:00:00.1234567'", "more digits than micro"),
        (
            "insert into t select 1, 'x', timestamp '2020-01-01 0:0:0.123456001', null, 'p'",
            "digits",
        ),
        ("update t set id = 2", "cannot be updated"),
        ("delete from t where zzz = 1", "zzz is no column of d.t; it has id, name"),
        ("insert into t values (1, 'x')", r"takes 5 values here \(id, name, at, s, p\)"),
        ("insert into t (id) values (1)", "no value for partition column p"),
        ("insert into t (id, id, p) values (1, 1, 'x')", "named twice"),
        ("insert into t partition (z='1') select 1", "z is no partition column"),
    ],
)
def test_refusals_come_before_spark_starts(text: str, message: str) -> None:
    with pytest.raises(DmlError, match=message):
        plan(text)


def test_a_table_without_row_identifiers_is_refused() -> None:
    plain = Table(name="t", database_name="d", storage=Storage(columns=COLUMNS))
    statement = parse_statement("delete from t")
    assert isinstance(statement, Delete)
    with pytest.raises(DmlError, match="no full ACID table"):
        plan_write(statement, {statement.table: plain})


@pytest.mark.parametrize(
    ("hive", "spark"),
    [
        ("char(5)", "string"),
        ("array<varchar(3)>", "array<string>"),
        ("timestamp", "timestamp_ntz"),
        ("timestamp with local time zone", "timestamp_ltz"),
        ("struct<timestamp_col:timestamp,b:int>", "struct<timestamp_col:timestamp_ntz,b:int>"),
        ("decimal(10,2)", "decimal(10,2)"),
    ],
)
def test_types(hive: str, spark: str) -> None:
    assert spark_type(hive) == spark
