"""What the versions of Hive's schema have that others have not.

Our tables are described as 4.0.0 has them; here is what later ones add, change and give up
(:mod:`hive_3_1`: what the one before has otherwise). Found
by running the scripts of each release on PostgreSQL and MariaDB (docs/hive/metastore.md §12).
"""

from __future__ import annotations

import re
from dataclasses import replace

from sqlalchemy import Column, Dialect, ForeignKey, MetaData, String, Table

from hms_bridge.backend.schema.all_tables import TABLES
from hms_bridge.backend.schema.catalog_tables import CTLGS
from hms_bridge.backend.schema.hive_3_1 import Tables31
from hms_bridge.backend.schema.metadata import ID, OPTIONS
from hms_bridge.backend.schema.shape import IndexShape, SchemaShape, TableShape, wanted_table

OURS = "HMSB_"
"""How names of our own tables and indexes begin."""

SOURCES = ("3.1.0", "3.2.0", "4.0.0", "4.1.0", "4.2.0")
"""Versions that an upgrade can begin with; what is in between of Hive's previews is not."""

TARGETS = ("3.1.0", "4.0.0", "4.1.0", "4.2.0")
"""Versions that an installation or upgrade can end with, the newest last."""

OLDEST_USED = "4.0"
"""Before it transaction ids came from a table of their own, and names were lower case: hms-bridge
does not work on such a schema."""

LATER_TABLES = MetaData()
"""Tables that 4.0.0 has not."""

CATALOG_PARAMS = Table(
    "CATALOG_PARAMS",
    LATER_TABLES,
    Column("CTLG_ID", ID, ForeignKey(CTLGS.c.CTLG_ID, ondelete="CASCADE"), primary_key=True),
    Column("PARAM_KEY", String(180), primary_key=True),
    Column("PARAM_VALUE", String(4000)),
    info={"since": "4.2.0"},
    **OPTIONS,
)

_CHANGED_INDEXES: dict[str, dict[str, IndexShape]] = {
    "TBLS": {
        "UNIQUETABLE": IndexShape(
            name="UNIQUETABLE", columns=("DB_ID", "TBL_NAME"), is_unique=True, is_constraint=True
        )
    },
    "TXNS": {
        "TXN_STATE_IDX": IndexShape(
            name="TXN_STATE_IDX", columns=("TXN_STATE", "TXN_ID"), is_unique=True
        )
    },
    "TAB_COL_STATS": {
        "TAB_COL_STATS_IDX": IndexShape(name="TAB_COL_STATS_IDX", columns=("TBL_ID", "COLUMN_NAME"))
    },
    "PART_COL_STATS": {
        "PCS_STATS_IDX": IndexShape(name="PCS_STATS_IDX", columns=("PART_ID", "COLUMN_NAME"))
    },
}
"""Of 4.1.0, by table and name."""

_GIVEN_UP: dict[str, tuple[tuple[str, str], ...]] = {
    "4.0.0": (("PARTITIONS", "TBL_ID"),),
    "4.1.0": (("TBLS", "DB_ID"), ("TAB_COL_STATS", "TBL_ID"), ("PART_COL_STATS", "PART_ID")),
}
"""(table, column): plain indexes of one column that another one serves since a version."""

GIVEN_UP_TABLES = ("INDEX_PARAMS", "IDXS")
"""Of 3.1, those that refer to others first. Hive's indexes ended with Hive 3.0."""


def version_number(version: str) -> tuple[int, ...]:
    """``4.1.0`` or ``4.1.0-SNAPSHOT`` as numbers that compare; () if it starts with none."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in match.group().split(".")) if match else ()


def is_since(version: str, since: str) -> bool:
    """Whether ``version`` is ``since`` or a later one."""
    return version_number(version) >= version_number(since)


def is_old(version: str) -> bool:
    """Whether it is before the oldest that can be used."""
    return not is_since(version, OLDEST_USED)


def is_newer(version: str) -> bool:
    """Whether it is of a later Hive than any that is known here; a third number counts for none."""
    return version_number(version)[:2] > version_number(TARGETS[-1])[:2]


def tables_of_3_1(dialect: Dialect) -> Tables31:
    """Hive's tables of 3.1.0 in one kind of database."""
    return Tables31((t for t in TABLES.sorted_tables if not t.name.startswith(OURS)), dialect)


def hive_tables(version: str, dialect: Dialect) -> tuple[Table, ...]:
    """Descriptions of Hive's tables in a version, those that others refer to first. From 4.0.0 on
    their columns are those of 4.0.0: :func:`wanted_shape` says which are gone."""
    if is_old(version):
        return tuple(tables_of_3_1(dialect).metadata.sorted_tables)
    return (
        *(table for table in TABLES.sorted_tables if not table.name.startswith(OURS)),
        *(t for t in LATER_TABLES.sorted_tables if is_since(version, t.info["since"])),
    )


def wanted_shape(version: str, dialect: Dialect) -> SchemaShape:
    """What Hive's tables look like in a version."""
    return {
        table.name: _as_of(version, table, wanted_table(table, dialect), dialect)
        for table in hive_tables(version, dialect)
    }


def is_given_up(table: str, index: IndexShape, version: str) -> bool:
    """Whether an index of that table has no use any more in a version. Where MySQL keeps one for a
    foreign key, under the key's name, it stays, as Hive leaves it."""
    return (
        not index.is_unique
        and not index.name.endswith("_FK")
        and any(
            is_since(version, since) and index.columns == (column,)
            for since, pairs in _GIVEN_UP.items()
            for owner, column in pairs
            if owner == table
        )
    )


def given_up_columns(table: str, version: str) -> frozenset[str]:
    """Columns of a table that a version has no more."""
    described = TABLES.tables.get(table)
    return frozenset(
        column.name
        for column in (described.columns if described is not None else ())
        if "until" in column.info and is_since(version, column.info["until"])
    )


def _as_of(version: str, table: Table, shape: TableShape, dialect: Dialect) -> TableShape:
    gone = given_up_columns(table.name, version)
    changed = _CHANGED_INDEXES.get(table.name, {}) if is_since(version, "4.1.0") else {}
    indexes = [
        index
        for index in shape.indexes
        if index.name not in changed and not is_given_up(table.name, index, version)
    ]
    if dialect.name in ("mysql", "mariadb"):
        changed = {name: replace(index, is_constraint=False) for name, index in changed.items()}
    return replace(
        shape,
        columns=tuple(column for column in shape.columns if column.name not in gone),
        indexes=(*indexes, *changed.values()),
    )
