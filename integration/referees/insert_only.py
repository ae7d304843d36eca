"""Insert-only tables in formats other than ORC, as a real Hive writes and reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from integration.referees.hive42 import HiveSession

FORMATS = {
    "parquet": "stored as parquet",
    "lines": "stored as textfile",
    "delimited": r"row format delimited fields terminated by ',' escaped by '\\' "
    "collection items terminated by '|' map keys terminated by '#' null defined as 'nix' "
    "stored as textfile",
}
_PROPERTIES = "tblproperties('transactional'='true', 'transactional_properties'='insert_only')"
_COLUMNS = (
    "id int, b boolean, ti tinyint, si smallint, bi bigint, f float, db double, de decimal(38,10), "
    "s string, c char(5), v varchar(7), d date, ts timestamp, bn binary, a array<int>, "
    "at array<timestamp>, m map<string,date>, "
    "st struct<x:int,y:string,z:array<struct<t:timestamp>>>, mm map<int,map<string,array<double>>>"
)
_TEXTS = ("plain", "back\\\\slash, and comma", "", "ünïcode 漢", "nix", " lead", "\\\\N", "x|y#z")
_TIMES = (
    "2020-02-29 12:34:56.123456789", "0001-01-01 00:00:00", "1500-03-01 01:02:03.000001",
    "1582-10-10 00:00:00", "1582-10-15 00:00:00", "1969-12-31 23:59:59.5", "2021-03-28 02:30:00",
    "9999-12-31 23:59:59.999999999",
)  # fmt: skip
_VALUES = (
    "cast(b as int), ti, si, bi, cast(f as string), cast(db as string), cast(de as string), "
    "hex(s), c, v, cast(d as string), cast(ts as string), hex(bn), a[0], a[1], "
    "if(a is null, 0, size(a)), "
    "cast(at[0] as string), cast(m['k'] as string), st.x, hex(st.y), cast(st.z[0].t as string), "
    "mm[id]['in'][1]"
)
QUESTIONS = (
    f"select id, {_VALUES} from {{0}} order by id",
    "select id, extra, k from {0}_parts order by id, k",
    "select count(*), count(extra) from {0}_parts where k = '2020-01-01'",
    "select id, item from {0}_packed order by id",
)
"""Of the tables of a format: Hive and Spark have an answer each."""


def make_tables(hive: HiveSession, database: str) -> None:
    """All of them, in a database of their own."""
    hive.sql(f"create database {database}")
    for name, stored in FORMATS.items():
        for statement in _statements(f"{database}.{name}", stored):
            hive.sql(statement)
        hive.sql("set hive.exec.compress.output=false")


def _statements(table: str, stored: str) -> Iterator[str]:
    yield f"create table {table} ({_COLUMNS}) {stored} {_PROPERTIES}"
    yield f"insert into {table} {' union all '.join(map(_row, range(len(_TIMES))))}"
    yield f"insert into {table} (id) values (99)"
    parts = f"{table}_parts"
    yield f"create table {parts} (id int) partitioned by (k date) {stored} {_PROPERTIES}"
    yield f"insert into {parts} values (1, '2020-01-01'), (2, '1500-01-01'), (3, null)"
    cascade = "" if "parquet" in stored else " cascade"
    yield f"alter table {parts} add columns (extra string){cascade}"
    yield f"insert into {parts} values (4, 'not seen', '2020-01-01'), (5, 'seen', '2020-01-02')"
    yield f"insert overwrite table {parts} partition (k = '1500-01-01') select 6, 'new'"
    packed = f"{table}_packed"
    yield f"create table {packed} (id int, item string) {stored} {_PROPERTIES}"
    yield "set hive.exec.compress.output=true"
    yield f"insert into {packed} values (1, 'a'), (2, null)"
    yield f"insert into {packed} select * from {packed} where id > 2"


def _row(at: int) -> str:
    time, text = f"timestamp '{_TIMES[at]}'", f"'{_TEXTS[at]}'"
    day = f"date '{_TIMES[at][:10]}'"
    return (
        f"select {at}, {at % 2 == 0}, cast({at} - 4 as tinyint), cast(-{at} as smallint), "
        f"cast({at} * 1000000007 as bigint), cast({at} / 3.0 as float), {at} / 7.0D, "
        f"cast('-1234567890123456789012345678.000000000{at}' as decimal(38,10)), {text}, "
        f"cast('ab' as char(5)), cast('漢 b' as varchar(7)), {day}, {time}, unhex('00FF{at}{at}'), "
        f"array({at}, cast(null as int)), array({time}), map('k', {day}), "
        f"named_struct('x', {at}, 'y', {text}, 'z', array(named_struct('t', {time}))), "
        f"map({at}, map('in', array(1.5D, 2.5D)))"
    )


def as_texts(rows: Sequence[Sequence[object]]) -> list[tuple[str, ...]]:
    """As Hive prints them, times in microseconds."""
    return [tuple(re.sub(r"(\.\d{6})\d+$", r"\1", _text(value)) for value in row) for row in rows]


def _text(value: object) -> str:
    return "NULL" if value is None else str(value)
