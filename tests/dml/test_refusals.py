"""What a statement says and nobody here carries out refuses it by name."""

from __future__ import annotations

import pytest
from sqlglot import exp

from hms_bridge.dml.clauses import refuse_more
from hms_bridge.dml.parse import parse_script, parse_statement
from hms_bridge.dml.plan import plan_query, plan_write
from hms_bridge.dml.statement import (
    CreateTable,
    Delete,
    DropTable,
    Insert,
    NameAsWritten,
    Select,
    Show,
    Update,
    Use,
)
from hms_bridge.errors import DmlError
from hms_bridge.model.catalog import Column, Storage, Table


def refused(text: str) -> str:
    with pytest.raises(DmlError) as caught:
        parse_script(text)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("clause", "named"),
    [
        ("create external table e (a int) location '/x'", "CREATE EXTERNAL TABLE"),
        ("create temporary table e (a int)", "CREATE TEMPORARY TABLE"),
        ("create or replace table t (a int)", "CREATE TABLE with REPLACE"),
        ("create table t (a int) row format serde 'x.Y'", "ROW FORMAT SERDE"),
        ("create table t (a int) row format delimited fields terminated by ','", "ROW FORMAT"),
        ("create table t (a int) stored by iceberg", "STORED BY"),
        ("create table t (a int) stored by 'org.Handler'", "STORED BY"),
        ("create table t (a int) stored as inputformat 'x' outputformat 'y'", "INPUTFORMAT"),
        ("create table t (a int) clustered by (a) sorted by (a) into 2 buckets", "SORTED BY"),
        ("create table t (a int) partitioned by spec (p)", "PARTITIONED BY SPEC"),
        ("create table t (a int) with (x = 1)", "TABLE with 'x'=1"),
        ("create table t (a int) tblproperties ('EXTERNAL'='TRUE')", "CREATE EXTERNAL TABLE"),
        ("create table t (a int) tblproperties ('a'='1', 'A'='2')", "'A' is given twice"),
        ("create table t (a int) comment 'x' tblproperties ('comment'='y')", "'comment' is given"),
        ("create table t (a int) skewed by (a) on (1)", "create table t"),
        ("create table t (a int) location '/x' location '/y'", "LOCATION '/y' twice"),
        ("create table t (a int, A string)", "column a is declared twice"),
        ("create table t (a int) partitioned by (a int)", "column a is declared twice"),
        ("create transactional table t (a int)", "create transactional table"),
        ("create table t like u", "CREATE TABLE in this form"),
        ("create table t as select 1", "CREATE TABLE in this form"),
        ("create table t (a int not null)", "column a with NOT NULL"),
        ("create table t (a int default 5)", "column a with DEFAULT 5"),
        ("create table t (a int check (a > 0))", "column a with CHECK"),
        ("create table t (a int unique)", "column a with UNIQUE"),
        ("create table t (a int primary key)", "column a with PRIMARY KEY"),
        ("create table t (a int, primary key (a))", "PRIMARY KEY.*Constraints are not"),
        ("create table t (a int, constraint c check (a > 0))", "Constraints are not"),
        ("create table t (a struct<b:int comment 'x'>)", "field b of a struct with CONSTRAINTS"),
        ("create table t (a uuid)", "'UUID' is no type that is supported; boolean"),
        ("create table t (a timestamptz)", "is no type that is supported"),
        ("create table t (a array<datetime>)", "is no type that is supported"),
        ("create table t (a interval)", "is no type that is supported"),
        ("create table t (a varchar)", "varchar wants a length"),
        ("create table t (a decimal(39,0))", "out of bounds"),
        ("create database d comment 'x'", "create database d|COMMENT"),
        ("create database d managedlocation '/x'", "create database d"),
        ("create view v as select 1", "CREATE VIEW"),
        ("drop table t cascade", "DROP TABLE with CASCADE"),
        ("drop database d purge", "DROP DATABASE with PURGE|cannot read"),
        ("drop temporary table t", "DROP TABLE with TEMPORARY"),
        ("describe formatted t", "DESCRIBE FORMATTED"),
        ("describe extended t", "DESCRIBE EXTENDED"),
        ("describe database d", "DESCRIBE DATABASE"),
        ("describe t partition (p = 1)", "DESCRIBE with PARTITION"),
    ],
)
def test_a_clause_that_is_not_carried_out_is_named(clause: str, named: str) -> None:
    with pytest.raises(DmlError, match=named):
        parse_script(clause)


@pytest.mark.parametrize(
    "text",
    [
        "create database a.b",
        "drop database a.b cascade",
        "drop database a.b.c cascade",
        "use a.b",
        "drop table c.a.b",
        "create table c.a.b (x int)",
        "create table w.c.a.b (x int)",
        "insert into c.a.b values (1)",
        "delete from c.a.b",
        "update c.a.b set x = 1",
        "describe c.a.b",
        "select * from c.a.b",
        "select * from w.c.a.b",
        "delete from t where a in (select a from w.c.a.b)",
    ],
)
def test_a_name_with_more_parts_than_are_heeded(text: str) -> None:
    message = refused(text)
    assert "names a catalog" in message or "no name of a" in message


@pytest.mark.parametrize(
    ("text", "verb"),
    [
        ("show compactions", "hms-bridge compactions"),
        ("SHOW TRANSACTIONS;", "hms-bridge txns"),
        ("show locks t", "hms-bridge locks"),
        ("alter table t compact 'major'", "hms-bridge compact"),
        ("merge into t using s on t.a = s.a when matched then delete", "UPDATE, DELETE and INSERT"),
        ("truncate table t", "DELETE FROM"),
        ("msck repair table t", "hms-bridge table adopt"),
        ("set x = 1", "--set KEY=VALUE"),
        ("commit", "a transaction of its own"),
    ],
)
def test_what_does_it_instead_is_named(text: str, verb: str) -> None:
    assert verb in refused(text)


def test_a_part_that_the_parser_learns_tomorrow_is_refused() -> None:
    tree = exp.Delete(this=exp.to_table("t"))
    refuse_more(tree, "this")
    tree.args["some_new_clause"] = exp.true()
    with pytest.raises(DmlError, match="DELETE with SOME NEW CLAUSE is not supported"):
        refuse_more(tree, "this")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("select * from t for update", "FOR UPDATE.*not supported"),
        ("select * into s from t", "SELECT INTO is not supported"),
        ("insert into t select * into s from t", "SELECT INTO is not supported"),
        ("update t x set a = 1 where x.a = 2", "TABLE with ALIAS"),
        ("delete from t x where x.a = 2", "TABLE with ALIAS"),
        ("update t set s.a = 1", "s.a.* cannot be assigned"),
        ("insert into t partition (p = 1, p = 2) select 1", "p is named twice"),
        ("insert into t partition (p = upper('x')) select 1", "cannot stand in PARTITION"),
        ("select * from t version as of 5", "TABLE with VERSION"),
        ("delete from t where a in (select a from s version as of 5)", "TABLE with VERSION"),
    ],
)
def test_dml_that_says_more_than_is_done(text: str, named: str) -> None:
    with pytest.raises(DmlError, match=named):
        (statement,) = parse_script(text)
        if isinstance(statement, Select):
            plan_query(statement, TABLES)


@pytest.mark.parametrize(
    "text",
    [
        "delete from t where id in (with t as (select 2 as id) select id from t)",
        "insert into t with t as (select 2 as id) select id from t",
        "insert into t select id from (with t as (select 2 as id) select id from t) x",
        "select * from t join (with t as (select 2 as id) select id from t) x on true",
        "with t as (select * from t) select * from t",
        "with hive_acid__1__d__t as (select 2 as id) select * from t",
    ],
)
def test_a_name_of_with_never_stands_for_a_table_or_the_other_way_round(text: str) -> None:
    assert "WITH" in refused(text)


def test_names_of_with_that_are_clear() -> None:
    statement = parse_statement(
        "with a as (select 1 as id), b as (select * from a) select * from b join d.a on true"
    )
    assert isinstance(statement, Select)
    assert [str(name) for name in statement.tables] == ["d.a"]


COLUMNS = (Column(name="a", type="int"), Column(name="s", type="struct<a:int,s:int>"))
TABLE = Table(
    name="s",
    database_name="d",
    storage=Storage(columns=(*COLUMNS, Column(name="d", type="struct<a:int>"))),
    parameters={"transactional": "true"},
)
TABLES = {
    NameAsWritten(database=None, name="t"): TABLE,
    NameAsWritten(database=None, name="s"): TABLE,
    NameAsWritten(database="d", name="s"): TABLE,
}


@pytest.mark.parametrize(
    "text", ["select s.a from s", "select d.a from d.s", "select s.s from s", "select d.a from s"]
)
def test_a_struct_may_be_called_like_its_table_or_database(text: str) -> None:
    statement = parse_statement(text)
    assert isinstance(statement, Select)
    plan_query(statement, TABLES)


def test_what_is_carried_out_stays() -> None:
    created = parse_statement(
        "create table `meine tabelle`.`öl fass` (A INT comment 'x', b timestamp with local time "
        "zone, c struct<F:array<int>,g:map<string,decimal(4,1)>>) comment 'all of it' "
        "partitioned by (p string) clustered by (a) into 2 buckets stored as orc "
        "location '/x' tblproperties ('k'='v')"
    )
    assert isinstance(created, CreateTable)
    assert created.table == NameAsWritten(database="meine tabelle", name="öl fass")
    assert [column.type for column in created.columns] == [
        "int",
        "timestamp with local time zone",
        "struct<f:array<int>,g:map<string,decimal(4,1)>>",
    ]
    assert created.properties == {"comment": "all of it", "k": "v"}
    assert (created.location, created.bucket_count) == ("/x", 2)
    assert parse_statement("drop table `a b`") == DropTable(
        table=NameAsWritten(database=None, name="a b")
    )
    assert parse_statement("use `a b`") == Use(database="a b")
    assert parse_statement("show tables in `a b`") == Show(what="tables", database="a b")
    assert parse_statement("show schemas") == Show(what="databases")
    assert parse_statement("update t set a = 1 where t.a = 2") == Update(
        table=NameAsWritten(database=None, name="t"),
        assignments=(("a", exp.Literal.number(1)),),
        where=exp.column("a", "t").eq(2),
    )


def test_rows_of_old_buckets_are_not_inserted() -> None:
    """Hive hashes by the version that the table names; without one it is the first."""
    for parameters in ({}, {"bucketing_version": "1"}):
        table = Table(
            name="t",
            database_name="d",
            storage=Storage(columns=COLUMNS, bucket_columns=("a",), bucket_count=2),
            parameters={"transactional": "true", **parameters},
        )
        statement = parse_statement("insert into t values (1, null)")
        assert isinstance(statement, Insert)
        with pytest.raises(DmlError, match="bucketing_version"):
            plan_write(statement, {NameAsWritten(database=None, name="t"): table})


@pytest.mark.parametrize(
    "kind", ["double", "float", "decimal(10,2)", "timestamp", "char(3)", "binary"]
)
def test_no_partition_beside_the_one_that_hive_would_make(kind: str) -> None:
    """1 and 1.0, 1.50 and 1.5, with and without fractions of a second, with and without blanks."""
    table = Table(
        name="t",
        database_name="d",
        storage=Storage(columns=COLUMNS),
        partition_columns=(Column(name="p", type=kind),),
        parameters={"transactional": "true"},
    )
    tables = {NameAsWritten(database=None, name="t"): table}
    for text in ("insert into t values (1, null, 1)", "insert into t partition (p=1) select 1, 2"):
        statement = parse_statement(text)
        assert isinstance(statement, Insert)
        with pytest.raises(DmlError, match=r"partitioned by p, a .*several texts"):
            plan_write(statement, tables)
    for text in ("update t set a = 1", "delete from t"):  # partitions stay as they are
        statement = parse_statement(text)
        assert isinstance(statement, Update | Delete)
        plan_write(statement, tables)
