"""What makes one version of Hive's schema of another: decided from what is there, without I/O."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlalchemy import Dialect, Table

from hms_bridge.backend.schema.data_steps import (
    WRITE_LOG_SEQUENCE,
    AddSequence,
    NumberTxns,
    RenameClasses,
)
from hms_bridge.backend.schema.shape import (
    ColumnShape,
    IndexShape,
    Kind,
    SchemaShape,
    TableShape,
)
from hms_bridge.backend.schema.steps import (
    AddColumn,
    AddIndex,
    DropColumns,
    DropIndex,
    DropTable,
    Fill,
    MakeTable,
    RenameColumn,
    RenameTable,
    SetKey,
    SetVersion,
    Step,
    Widen,
)
from hms_bridge.backend.schema.versions import (
    GIVEN_UP_TABLES,
    SOURCES,
    TARGETS,
    given_up_columns,
    hive_tables,
    is_given_up,
    is_old,
    is_since,
    wanted_shape,
)
from hms_bridge.errors import BackendError

_OLD_COUNTER, _OLD_COLUMN = "NEXT_TXN_ID", "NTXN_NEXT"
_LOCK_TABLE, _LOCK_COLUMN = "TXN_LOCK_TBL", "TXN_LOCK"

_FILLS = {
    ("WM_RESOURCEPLAN", "NS"): "default",
    ("TAB_COL_STATS", "ENGINE"): "hive",
    ("PART_COL_STATS", "ENGINE"): "hive",
}
"""What rows from before a column get in it."""


@dataclass(frozen=True, slots=True)
class UpgradePlan:
    """Steps in their order; none if the schema is what it should be."""

    present: str
    wanted: str
    steps: tuple[Step, ...]


def plan_upgrade(present: str, shape: SchemaShape, wanted: str, dialect: Dialect) -> UpgradePlan:
    """From the version and the tables that were found to those of the version ``wanted``.

    Raises BackendError for a version that is unknown, newer than the one that is wanted, or older
    than 3.1.0.
    """
    refuse_versions(present, wanted)
    is_crossing = is_old(present) and not is_old(wanted)
    renames = tuple(_renames(shape, dialect)) if is_crossing else ()
    renamed = _renamed(shape, renames)
    steps: list[Step] = [*renames, *differences(renamed, wanted, dialect)]
    if is_crossing:
        steps += _towards_4_0(renamed)
    if present != wanted:
        steps.append(SetVersion(wanted))
    return UpgradePlan(present, wanted, tuple(steps))


def refuse_versions(present: str, wanted: str) -> None:
    """Raise BackendError unless there is a way from one version to the other."""
    if wanted not in TARGETS:
        raise BackendError(f"'{wanted}' is no version to upgrade to; use {', '.join(TARGETS)}")
    if present not in SOURCES:
        raise BackendError(
            f"schema version '{present}' is not known here ({', '.join(SOURCES)} are): it is newer "
            "than this program, a preview, or older than 3.1.0; use Hive's own 'schematool "
            "-upgradeSchema' of the release that it is for"
        )
    if not is_since(wanted, present):
        raise BackendError(
            f"the schema is of version {present}, newer than {wanted}; there is no way back"
        )


def differences(shape: SchemaShape, version: str, dialect: Dialect) -> Iterator[Step]:
    """What tables of Hive's lack or have too much, in names of the version."""
    described = {table.name: table for table in hive_tables(version, dialect)}
    wanted = wanted_shape(version, dialect)
    for name, table in described.items():
        if name not in shape:
            yield MakeTable(table)
    for name, want in wanted.items():
        if name in shape:
            yield from _columns(described[name], want, shape[name], dialect)
            yield from _keys(want, shape[name], dialect)
            yield from _indexes(want, shape[name], version)
    for name, table_shape in shape.items():
        gone = given_up_columns(name, version)
        present = tuple(c.name for c in table_shape.columns if c.name in gone)
        if present:
            yield DropColumns(name, present)


def is_narrower(present: ColumnShape, wanted: ColumnShape, dialect: Dialect) -> bool:
    """Whether a column holds less than Hive's. SQLite knows no lengths; on MySQL many numbers of
    Hive's, all but ids, have 32 bits."""
    if dialect.name == "sqlite" or present.kind is not wanted.kind:
        return False
    if present.kind is Kind.INTEGER and dialect.name in ("mysql", "mariadb"):
        return False
    return present.capacity < wanted.capacity


def _columns(
    described: Table,
    wanted: TableShape,
    present: TableShape,
    dialect: Dialect,
) -> Iterator[Step]:
    for want in wanted.columns:
        have = present.column(want.name)
        fill = _FILLS.get((wanted.name, want.name))
        if have is None:
            yield AddColumn(described.columns[want.name], fill)
        elif is_narrower(have, want, dialect):
            yield Widen(
                table=present.name,
                column=have.name,
                capacity=want.capacity,
                is_nullable=have.is_nullable,
                charset=have.charset,
            )


def _keys(wanted: TableShape, present: TableShape, dialect: Dialect) -> Iterator[Step]:
    if present.key != wanted.key and dialect.name != "sqlite":
        yield SetKey(present.name, wanted.key, present.key_name if present.key else None)


def _indexes(wanted: TableShape, present: TableShape, version: str) -> Iterator[Step]:
    have = {index.columns for index in present.indexes}
    for want in wanted.indexes:
        if want.columns not in have:
            named = (index for index in present.indexes if index.name.upper() == want.name)
            yield AddIndex(present.name, want, next(named, None))
    for index in present.indexes:
        if is_given_up(present.name, index, version):
            yield DropIndex(present.name, index)


def _renames(shape: SchemaShape, dialect: Dialect) -> Iterator[Step]:
    """Until 4.0 PostgreSQL had names of transactions' tables in lower case (HIVE-22546)."""
    wanted = wanted_shape("4.0.0", dialect)
    for present in shape.values():
        name = present.name.upper()
        to = _LOCK_TABLE if name == _OLD_COUNTER else name
        if to not in wanted:
            continue
        if to != present.name:
            yield RenameTable(present.name, to)
        known = {column.name for column in wanted[to].columns}
        for column in present.columns:
            upper = column.name.upper()
            upper = _LOCK_COLUMN if (to, upper) == (_LOCK_TABLE, _OLD_COLUMN) else upper
            if upper != column.name and upper in known:
                yield RenameColumn(to, column.name, upper)


def _renamed(shape: SchemaShape, renames: tuple[Step, ...]) -> SchemaShape:
    """The shape after the renames."""
    tables = {step.table: step.to for step in renames if isinstance(step, RenameTable)}
    columns = {
        (step.table, step.column): step.to for step in renames if isinstance(step, RenameColumn)
    }

    def named(table: str, name: str) -> str:
        return columns.get((table, name), name)

    return {
        to: replace(
            present,
            name=to,
            columns=tuple(replace(c, name=named(to, c.name)) for c in present.columns),
            key=tuple(named(to, name) for name in present.key),
            indexes=tuple(
                IndexShape(
                    name=index.name,
                    columns=tuple(named(to, name) for name in index.columns),
                    is_unique=index.is_unique,
                    is_constraint=index.is_constraint,
                )
                for index in present.indexes
            ),
        )
        for present in shape.values()
        for to in (tables.get(present.name, present.name),)
    }


def _towards_4_0(shape: SchemaShape) -> Iterator[Step]:
    """What Hive's upgrade to 4.0 changes besides tables; each may be done twice."""
    txns = shape.get("TXNS")
    txn_id = txns.column("TXN_ID") if txns is not None else None
    for (table, column), value in _FILLS.items():
        if table in shape and shape[table].column(column) is not None:
            yield Fill(table=table, column=column, value=value)
    yield NumberTxns(is_generating=txn_id is not None and txn_id.has_default)
    yield AddSequence(WRITE_LOG_SEQUENCE)
    yield RenameClasses()
    for name in GIVEN_UP_TABLES:
        if name in shape:
            yield DropTable(name)
