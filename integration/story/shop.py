"""A shop in Hive's SQL: three shapes of full ACID tables, and what happens to them day by day."""

from __future__ import annotations

from collections.abc import Callable

Sql = Callable[[str], object]

ACID = "stored as orc tblproperties('transactional'='true')"


def open_shop(sql: Sql, database: str, properties: str = "") -> None:
    """A plain table with decimal, timestamp and date, a partitioned and a bucketed one."""
    sql(f"create database {database} {properties}")
    sql(
        f"create table {database}.orders (id int, item string, price decimal(12,2), "
        f"at timestamp, due date) {ACID}"
    )
    sql(
        f"create table {database}.visits (id int, who string) "
        f"partitioned by (day date, shop string) {ACID}"
    )
    sql(
        f"create table {database}.stock (id int, amount bigint) "
        f"clustered by (id) into 2 buckets {ACID}"
    )


def first_day(sql: Sql, database: str) -> None:
    """Inserts, an update and a delete in each table."""
    sql(
        f"insert into {database}.orders values "
        "(1, 'tea', 12.50, timestamp '2026-03-01 09:15:00.123456', date '2026-03-05'), "
        "(2, 'salt', -0.01, timestamp '1969-12-31 23:59:58', date '1582-10-15'), "
        "(3, null, null, null, null)"
    )
    sql(
        f"insert into {database}.orders values "
        "(4, 'sugar', 9999999999.99, timestamp '9999-12-31 23:59:59.999999', date '9999-12-31')"
    )
    sql(f"update {database}.orders set item = 'green tea', price = price * 2 where id = 1")
    sql(
        f"insert into {database}.visits partition (day, shop) values "
        "(1, 'ann', date '2026-03-01', 'north'), (2, 'bob', date '2026-03-01', 'south'), "
        "(3, 'eve', date '2026-03-02', 'a b/c=d')"
    )
    sql(
        f"insert into {database}.visits partition (day, shop) values "
        "(4, 'gil', date '2026-03-01', 'north')"
    )
    sql(f"delete from {database}.visits where id = 2")
    sql(f"insert into {database}.stock values (1, 10), (2, 20), (3, 30), (4, 40)")
    sql(f"update {database}.stock set amount = 21 where id = 2")


def second_day(sql: Sql, database: str) -> None:
    """MERGE, CTAS, INSERT OVERWRITE, partitions dropped and added."""
    sql(
        f"merge into {database}.orders o using "
        "(select stack(3, 1, 'oolong', 3, 'drop', 9, 'new') as (id, item)) s "
        "on o.id = s.id when matched and s.item = 'drop' then delete "
        "when matched then update set item = s.item "
        "when not matched then insert values (s.id, s.item, 1.00, null, date '2026-03-09')"
    )
    sql(f"create table {database}.dear {ACID} as select id, price from {database}.orders "
        "where price > 10")  # fmt: skip
    sql(f"insert overwrite table {database}.stock select id, amount * 2 from {database}.stock")
    sql(f"alter table {database}.visits drop partition (day = '2026-03-02')")
    sql(f"alter table {database}.visits add partition (day = '2026-03-03', shop = 'west')")
    sql(
        f"insert into {database}.visits partition (day, shop) values "
        "(7, 'dan', date '2026-03-03', 'west'), (5, 'fay', date '2026-03-01', 'north')"
    )
    sql(f"delete from {database}.stock where id = 3")


def third_day(sql: Sql, database: str) -> None:
    """RENAME, ADD COLUMNS, TRUNCATE, DROP TABLE, and writes after each of them."""
    sql(f"alter table {database}.dear rename to {database}.precious")
    sql(f"insert into {database}.precious values (77, 777.77)")
    sql(f"alter table {database}.orders add columns (note string)")
    sql(
        f"insert into {database}.orders values "
        "(10, 'cocoa', 3.10, timestamp '2026-03-10 00:00:00', date '2026-03-10', 'with a note')"
    )
    sql(f"update {database}.orders set note = 'late' where id = 4")
    sql(f"truncate table {database}.stock")
    sql(f"insert into {database}.stock values (5, 50), (6, 60)")
    sql(f"create table {database}.gone (id int) {ACID}")
    sql(f"insert into {database}.gone values (1)")
    sql(f"drop table {database}.gone")
