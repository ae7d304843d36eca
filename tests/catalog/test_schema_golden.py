"""Our tables have the columns, lengths and keys of Hive's own schema (4.0.1 on PostgreSQL)."""

from __future__ import annotations

import csv
import re
from collections import defaultdict

import pytest
from sqlalchemy import Table
from sqlalchemy.dialects import postgresql

from hms_bridge.backend.schema.all_tables import TABLES
from tests.support.golden_wire import FOLDER
from tests.support.rules import holds_for

pytestmark = pytest.mark.golden

OURS = {name: table for name, table in TABLES.tables.items() if not name.startswith("HMSB_")}


def hive_columns() -> dict[str, dict[str, dict[str, str]]]:
    found: dict[str, dict[str, dict[str, str]]] = defaultdict(dict)
    with (FOLDER / "schema-columns-4.0.1.tsv").open() as stream:
        for row in csv.DictReader(stream, delimiter="\t"):
            found[row["table"]][row["column"]] = row
    return found


HIVE = hive_columns()


def plain(text: str) -> str:
    text = text.lower().replace("character varying", "varchar").replace("character(", "char(")
    return re.sub(r"\s+", " ", text)


@holds_for(OURS.values())
def test_columns_are_hives(table: Table) -> None:
    hive = HIVE[table.name]
    assert {column.name for column in table.columns} == set(hive)
    dialect = postgresql.dialect()
    for column in table.columns:
        row = hive[column.name]
        assert column.nullable == (row["nullable"] == "YES"), column.name
        made = plain(dialect.type_compiler_instance.process(column.type))
        wanted = plain(row["type"])
        # PostgreSQL's own words for the rest (bigserial, timestamp, double) say the same.
        if "(" in wanted or wanted in ("bigint", "integer", "boolean", "text", "bytea"):
            assert made == wanted, column.name


@holds_for(OURS.values())
def test_primary_keys_are_hives(table: Table) -> None:
    hive = {name for name, row in HIVE[table.name].items() if row["pk"]}
    assert {column.name for column in table.primary_key.columns} == hive


def test_the_catalog_is_compared() -> None:
    assert set(OURS) >= {"DBS", "TBLS", "SDS", "PARTITIONS", "NOTIFICATION_LOG", "TXNS"}
