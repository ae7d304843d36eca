"""What a person types becomes the right record, or a clear refusal."""

import pytest
import sqlglot
from sqlglot import exp

from hms_bridge.dml.parse import parse_script, parse_statement
from hms_bridge.dml.statement import (
    CreateTable,
    Delete,
    DropTable,
    Insert,
    NameAsWritten,
    Select,
    Show,
    Update,
)
from hms_bridge.errors import DmlError

T = NameAsWritten(database=None, name="t")


def tree(text: str) -> exp.Expr:
    """As sqlglot reads an expression of Hive's."""
    return sqlglot.parse_one(text, read="hive")


def test_a_script_is_cut_at_semicolons_outside_quotes_and_comments() -> None:
    first, second = parse_script(
        "delete from t where y = ';'; -- a; b\n insert into t values (1);;"
    )
    assert first == Delete(table=T, where=tree("y = ';'"))
    assert second == Insert(table=T, source=tree("VALUES (1)"))


def test_update_with_subquery_names_what_it_reads() -> None:
    statement = parse_statement("UPDATE D.T SET A = a + 1 WHERE id IN (SELECT id FROM s)")
    assert statement == Update(
        table=NameAsWritten(database="d", name="t"),
        assignments=(("a", tree("a + 1")),),
        where=tree("id IN (SELECT id FROM s)"),
        source_tables=(NameAsWritten(database=None, name="s"),),
    )


def test_insert_with_static_and_dynamic_partition() -> None:
    statement = parse_statement("insert into t partition (p='x', q) (a) select 1, 2")
    assert isinstance(statement, Insert)
    assert statement.partition == {"p": "x", "q": None}
    assert statement.columns == ("a",)


def test_names_of_with_clauses_are_no_tables() -> None:
    statement = parse_statement("with c as (select * from a) select * from c join d.c on true")
    assert isinstance(statement, Select)
    assert [str(name) for name in statement.tables] == ["a", "d.c"]


def test_create_table() -> None:
    statement = parse_statement(
        "create table if not exists d.t (a int, b decimal(10,2) comment 'x', c struct<a:int>) "
        "partitioned by (p string) clustered by (a) into 4 buckets stored as orc "
        "tblproperties ('transactional'='true')"
    )
    assert isinstance(statement, CreateTable)
    assert [column.type for column in statement.columns] == [
        "int",
        "decimal(10,2)",
        "struct<a:int>",
    ]
    assert statement.columns[1].comment == "x"
    assert [column.name for column in statement.partition_columns] == ["p"]
    assert (statement.bucket_columns, statement.bucket_count) == (("a",), 4)
    assert statement.properties == {"transactional": "true"}
    assert statement.is_if_not_exists


def test_show_and_drop() -> None:
    assert parse_statement("show tables in g") == Show(what="tables", database="g")
    assert parse_statement("drop table if exists t purge") == DropTable(
        table=T, is_if_exists=True, is_purge=True
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("selec 1", "cannot read the SQL at line 1, column 7"),
        ("select 'x", "cannot read the SQL"),
        ("insert overwrite table t select 1", "INSERT OVERWRITE is not supported"),
        ("truncate table t", "'truncate table t …' is not supported; DELETE FROM"),
        ("vacuum t", "'vacuum t …' is not supported; supported are SELECT"),
        ("grant select on t to x", "'grant select on …' is not supported; supported are SELECT"),
        ("update t set f(a) = 1", "cannot read the SQL|no assignment"),
        ("insert into t partition (p > 1) select 1", "PARTITION|cannot read"),
        ("select * from a.b.c", "names a catalog"),
        ("create table t stored as parquet as select 1", "is not supported"),
        ("create table t (a int) stored as parquet", "STORED AS parquet is not supported"),
        ("drop view v", "DROP VIEW is not supported"),
        ("delete from t where id > 1 limit 5", "DELETE with LIMIT is not supported"),
        ("delete from t using s where t.id = s.id", "DELETE with USING is not supported"),
        ("update t set a = 1 from s", "UPDATE with FROM is not supported"),
        ("update t set a = 1 order by id limit 3", "UPDATE with ORDER is not supported"),
        ("delete from t partition (p = 1) where id = 1", "cannot read the SQL"),
        ("update t join s on t.id = s.id set a = 1", "TABLE with JOINS is not supported"),
        ("insert into t by name select 1 as b", "INSERT with BY NAME is not supported"),
        ("with c as (select 1) insert into t select * from c", "INSERT with WITH is not"),
    ],
)
def test_refusals_say_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(DmlError, match=message):
        parse_script(text)


def test_a_very_long_text_is_refused() -> None:
    with pytest.raises(DmlError, match="longer than"):
        parse_script("select 1" + " " * 1_000_001)
