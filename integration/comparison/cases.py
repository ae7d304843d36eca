"""The cases that every engine runs: each a way in which tables come to look as they do."""

from __future__ import annotations

from integration.comparison.compare import Case

ACID = "stored as orc tblproperties('transactional'='true')"
INSERT_ONLY = (
    "stored as textfile "
    "tblproperties('transactional'='true', 'transactional_properties'='insert_only')"
)

INSERT_UPDATE_DELETE = Case(
    name="insert, update, delete, minor, major",
    steps=(
        f"create table ${{db}}.t (id int, v string) {ACID}",
        "insert into ${db}.t values (1, 'a'), (2, 'b'), (3, null)",
        "insert into ${db}.t values (4, 'd')",
        "update ${db}.t set v = 'x' where id = 1",
        "delete from ${db}.t where id = 2",
        "select count(*) from ${db}.t",
        "alter table ${db}.t compact 'minor'",
        "!Worker",
        "!Cleaner",
        "insert into ${db}.t values (5, 'e')",
        "alter table ${db}.t compact 'major'",
        "!Worker",
        "!Cleaner",
    ),
    acid_tables=("t",),
)

PARTITIONS = Case(
    name="dynamic partitions, one compacted",
    steps=(
        f"create table ${{db}}.p (id int) partitioned by (d string, n int) {ACID}",
        "insert into ${db}.p partition (d, n) values (1, 'x', 1), (2, 'y z', 2), (3, null, 3)",
        "insert into ${db}.p partition (d = 'x', n = 1) values (4)",
        "update ${db}.p set id = 40 where id = 4",
        "alter table ${db}.p partition (d = 'x', n = 1) compact 'major'",
        "!Worker",
        "!Cleaner",
        "alter table ${db}.p drop partition (d = 'y z', n = 2)",
        "show partitions ${db}.p",
    ),
    acid_tables=("p",),
)

PARTITIONS_BY_CONDITION = Case(
    name="partitions pruned, dropped, renamed",
    steps=(
        f"create table ${{db}}.c (id int) partitioned by (d date, n int, s string) {ACID}",
        # One partition a statement: Hive tells the events of several in the order of a HashMap.
        *(
            f"insert into ${{db}}.c partition (d, n, s) values ({number}, {values})"
            for number, values in enumerate(
                (
                    "date '2024-01-01', 1, 'a'",
                    "date '2024-01-02', 2, 'b'",
                    "date '2024-01-03', 10, 'c d'",
                    "date '2024-01-04', 20, null",
                    "date '2024-01-05', 30, 'e'",
                    "date '2024-01-06', 40, 'f/g'",
                    "date '2024-01-07', 50, 'h'",
                    "date '2024-01-08', 60, 'i'",
                ),
                start=1,
            )
        ),
        "select id from ${db}.c where d > '2024-01-02' and n in (10, 20, 50) order by id",
        "select id from ${db}.c where d between '2024-01-02' and '2024-01-04' order by id",
        "select id from ${db}.c where s like '%g' or n < 3 order by id",
        "select id from ${db}.c where s is null or upper(s) = 'E' order by id",
        "select id from ${db}.c where cast(n as string) = '50' order by id",
        "show partitions ${db}.c where n > 9 and s in ('c d', 'h', 'x')",
        "show partitions ${db}.c order by n desc limit 3",
        "delete from ${db}.c where n = 40",
        "update ${db}.c set id = 80 where d = '2024-01-08'",
        "alter table ${db}.c drop partition (n = 1)",
        "alter table ${db}.c drop partition (d < '2024-01-03')",
        "alter table ${db}.c drop partition (n = 77)",
        "alter table ${db}.c drop if exists partition (n = 77)",
        "alter table ${db}.c drop partition (s = '__HIVE_DEFAULT_PARTITION__'), "
        "partition (s like 'c%', n <= 10) purge",
        "alter table ${db}.c drop partition (m = 1)",
        "alter table ${db}.c partition (d = '2024-01-05', n = 30, s = 'e') "
        "rename to partition (d = '2025-01-05', n = 31, s = 'e e')",
        "alter table ${db}.c partition (d = '2024-01-05', n = 30, s = 'e') "
        "rename to partition (d = '2025-01-05', n = 32, s = 'x')",
        "insert into ${db}.c partition (d = '2025-01-05', n = 31, s = 'e e') values (55)",
        "show partitions ${db}.c",
    ),
    acid_tables=("c",),
)

PLAIN_PARTITIONS = Case(
    name="partitions of plain tables dropped, renamed, exchanged",
    steps=(
        "create external table ${db}.x (id int) partitioned by (p int, s string) stored as orc "
        "tblproperties('external.table.purge'='true')",
        "create external table ${db}.y (id int) partitioned by (p int, s string) stored as orc",
        "create external table ${db}.z (id bigint) partitioned by (p int, s string) stored as orc",
        "alter table ${db}.x add partition (p = 1, s = 'a') partition (p = 1, s = 'b') "
        "partition (p = 2, s = 'a') partition (p = 3, s = 'a') partition (p = 4, s = 'a')",
        "alter table ${db}.x drop partition (p = 3)",
        "alter table ${db}.y exchange partition (p = 1) with table ${db}.x",
        "alter table ${db}.y exchange partition (p = 2, s = 'a') with table ${db}.x",
        "alter table ${db}.y exchange partition (p = 2, s = 'a') with table ${db}.x",
        "alter table ${db}.y exchange partition (s = 'a') with table ${db}.x",
        "alter table ${db}.z exchange partition (p = 4) with table ${db}.x",
        "alter table ${db}.x partition (p = 4, s = 'a') rename to partition (p = 5, s = 'n')",
        "alter table ${db}.x drop if exists partition (p < 9) purge",
        "show partitions ${db}.x",
        "show partitions ${db}.y",
    ),
    plain_tables=("x", "y"),
)

MERGE = Case(
    name="merge with all three clauses",
    steps=(
        f"create table ${{db}}.m (id int, v string) {ACID}",
        f"create table ${{db}}.s (id int, v string) {ACID}",
        "insert into ${db}.m values (1, 'a'), (2, 'b'), (3, 'c')",
        "insert into ${db}.s values (2, 'new'), (3, 'gone'), (4, 'added')",
        "merge into ${db}.m using ${db}.s on m.id = s.id when matched and s.v = 'gone' then delete "
        "when matched then update set v = s.v when not matched then insert values (s.id, s.v)",
    ),
    acid_tables=("m", "s"),
)

OVERWRITE_AND_TRUNCATE = Case(
    name="insert overwrite, truncate, insert again",
    steps=(
        f"create table ${{db}}.o (id int) {ACID}",
        "insert into ${db}.o values (1), (2)",
        "insert overwrite table ${db}.o select id + 10 from ${db}.o",
        "truncate table ${db}.o",
        "insert into ${db}.o values (3)",
        "alter table ${db}.o compact 'major'",
        "!Worker",
        "!Cleaner",
    ),
    acid_tables=("o",),
)

BUCKETS = Case(
    name="bucketed by two columns",
    steps=(
        f"create table ${{db}}.b (id int, v string) clustered by (id, v) into 3 buckets {ACID}",
        "insert into ${db}.b values (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e')",
        "delete from ${db}.b where id in (2, 5)",
        "insert into ${db}.b values (6, 'f'), (7, 'g')",
        "alter table ${db}.b compact 'minor'",
        "!Worker",
        "!Cleaner",
    ),
    acid_tables=("b",),
)

INSERT_ONLY_TABLE = Case(
    name="insert-only table",
    steps=(
        f"create table ${{db}}.i (id int, v string) {INSERT_ONLY}",
        "insert into ${db}.i values (1, 'a')",
        "insert into ${db}.i values (2, 'b')",
        "alter table ${db}.i compact 'major'",
        "!Worker",
        "!Cleaner",
    ),
    plain_tables=("i",),
)

REFUSALS = Case(
    name="what is refused, and a minor that is not worth it",
    steps=(
        f"create table ${{db}}.r (id int) {ACID}",
        f"create table ${{db}}.r (id int) {ACID}",
        "insert into ${db}.r values (1)",
        "insert into ${db}.r select nope from ${db}.r",
        "alter table ${db}.r compact 'sideways'",
        "alter table ${db}.r compact 'minor'",
        "!Worker",
    ),
    acid_tables=("r",),
)

CASES = (
    INSERT_UPDATE_DELETE,
    PARTITIONS,
    PARTITIONS_BY_CONDITION,
    PLAIN_PARTITIONS,
    MERGE,
    OVERWRITE_AND_TRUNCATE,
    BUCKETS,
    INSERT_ONLY_TABLE,
    REFUSALS,
)

STATISTICS = Case(
    name="statistics of ACID tables",
    steps=(
        f"create table ${{db}}.t (id int, v string) {ACID}",
        "insert into ${db}.t values (1, 'a'), (2, 'b')",
        "insert into ${db}.t values (3, 'c')",
        "describe formatted ${db}.t id",
        "insert overwrite table ${db}.t select id + 10, v from ${db}.t",
        f"create table ${{db}}.c {ACID} as select * from ${{db}}.t",
        "update ${db}.t set v = 'xyz' where id = 11",
        "delete from ${db}.t where id = 12",
        "describe formatted ${db}.t v",
        "analyze table ${db}.t compute statistics",
        "analyze table ${db}.t compute statistics for columns",
        "describe formatted ${db}.t v",
        "select count(*), min(id), max(id) from ${db}.t",
        "merge into ${db}.t using ${db}.c on t.id = c.id when matched then update set v = 'm' "
        "when not matched then insert values (c.id, c.v)",
        f"create table ${{db}}.p (id int) partitioned by (d string) {ACID}",
        "insert into ${db}.p partition (d) values (1, 'x')",
        "insert into ${db}.p partition (d = 'x') values (2), (3)",
        "analyze table ${db}.p partition (d = 'x') compute statistics for columns",
        "describe formatted ${db}.p partition (d = 'x') id",
        "truncate table ${db}.t",
        "select count(*), max(id) from ${db}.t",
        "alter table ${db}.t change v w string",
        "alter table ${db}.t rename to ${db}.u",
        "describe formatted ${db}.u id",
    ),
    acid_tables=("u", "c", "p"),
)

PLAIN_TABLES = Case(
    name="plain tables: all kinds of columns, DML events, functions",
    steps=(
        "create external table ${db}.e (i int, s string, f double, b boolean, d date, "
        "t timestamp, n decimal(10,2), y binary) stored as orc",
        "insert into ${db}.e values (1, 'a', 1.5, true, date '2020-01-02', "
        "timestamp '2020-01-02 03:04:05', 2.57, 'xx')",
        "insert into ${db}.e values (2, 'abc', -2.5, false, date '1999-01-02', "
        "timestamp '2030-01-02 03:04:05', -12.50, 'y')",
        *(f"describe formatted ${{db}}.e {column}" for column in "isfbdtny"),
        "insert overwrite table ${db}.e values (7, 'z', 0, true, date '2021-01-01', "
        "timestamp '2021-01-01 00:00:00', 1, 'z')",
        "analyze table ${db}.e compute statistics for columns i, n",
        "create external table ${db}.p (i int) partitioned by (d string) stored as orc",
        "insert into ${db}.p partition (d) values (1, 'x')",
        "insert into ${db}.p partition (d = 'x') values (2)",
        "describe formatted ${db}.p partition (d = 'x') i",
        "create function ${db}.up as 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFUpper'",
        "create function ${db}.up as 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFUpper'",
        "select ${db}.up('a')",
        "drop function ${db}.up",
        "drop function ${db}.up",
        "create database ${db}_other",
        "create external table ${db}_other.e (i int) stored as orc",
        *(
            f"create function ${{db}}_other.{name} "
            "as 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFUpper'"
            for name in ("up", "above")
        ),
        "drop database ${db}_other",
        "drop database ${db}_other cascade",
    ),
    plain_tables=("e", "p"),
)

MATERIALIZED_VIEW = Case(
    name="materialized view, rebuilt from what changed and as a whole",
    steps=(
        f"create table ${{db}}.t (id int, v string) {ACID}",
        "insert into ${db}.t values (1, 'a'), (2, 'b')",
        f"create materialized view ${{db}}.m {ACID} as select id, v from ${{db}}.t where id > 0",
        "insert into ${db}.t values (3, 'c')",
        "alter materialized view ${db}.m rebuild",
        "select * from ${db}.m order by id",
        "delete from ${db}.t where id = 1",
        "alter materialized view ${db}.m rebuild",
        "select * from ${db}.m order by id",
        "show materialized views in ${db}",
        "drop table ${db}.t",
        "alter materialized view ${db}.m disable rewrite",
        "drop materialized view ${db}.m",
    ),
    acid_tables=("t",),
)

METASTORE_CASES = (*CASES, STATISTICS, PLAIN_TABLES, MATERIALIZED_VIEW)
"""More that Hive does over two metastores; our own SQL has none of it yet."""
