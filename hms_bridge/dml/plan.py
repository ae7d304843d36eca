"""Statements against tables: what to read, which rows to delete and insert, under which locks.

The result of a plan's query has, in this order: for UPDATE and DELETE ``row__id`` and
``row__partition``; for INSERT and UPDATE the values of the table's columns; for INSERT the values
of its partition columns.
Statement ids are Hive 4.2's: an UPDATE deletes in 0 and inserts in 1 (docs/hive/acid.md §2).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from sqlglot import exp

from hms_bridge.dml.clauses import spark_sql
from hms_bridge.dml.constraints import kept_value, require_known
from hms_bridge.dml.names import ROW_ID, ROW_PARTITION
from hms_bridge.dml.rewrite import SourceView, rewrite_query
from hms_bridge.dml.spark_types import spark_type
from hms_bridge.dml.statement import Delete, Insert, NameAsWritten, Select, Update
from hms_bridge.errors import DmlError
from hms_bridge.model.catalog import Column, Table
from hms_bridge.model.constraint import ColumnConstraint
from hms_bridge.model.lock import DataOperation, LockType
from hms_bridge.rows.writable import require_known_buckets, require_one_name_a_value

_MULTIPLYING = (exp.Join, exp.UDTF, exp.Anonymous, exp.Cube, exp.Rollup, exp.GroupingSets)
_NANOSECONDS = re.compile(r"\s*\d+-\d+-\d+[ T]\d+:\d+:\d+\.\d{6}0*[1-9]")
_VARCHAR = re.compile(r"varchar\((\d+)\)")


class Write(Enum):
    """What a statement does to its table, and under which lock (hive.txn.xlock.write=true)."""

    INSERT = (DataOperation.INSERT, LockType.SHARED_READ)
    UPDATE = (DataOperation.UPDATE, LockType.EXCL_WRITE)
    DELETE = (DataOperation.DELETE, LockType.EXCL_WRITE)

    @property
    def operation(self) -> DataOperation:
        """What the lock request says."""
        return self.value[0]

    @property
    def lock_type(self) -> LockType:
        """The lock on the table."""
        return self.value[1]


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryPlan:
    """A query in Spark's SQL over views of snapshots."""

    query: str
    sources: tuple[SourceView, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class WritePlan:
    """A write. ``query`` yields the rows, as the module says. ``is_bounded``: no more of them than
    the sources have."""

    kind: Write
    table: Table
    query: str
    sources: tuple[SourceView, ...]
    delete_statement_id: int | None
    insert_statement_id: int | None
    is_bounded: bool = False


def plan_query(statement: Select, tables: Mapping[NameAsWritten, Table]) -> QueryPlan:
    """Raises DmlError for a column that a table lacks."""
    query, sources = rewrite_query(statement.query, tables, (ROW_ID,))
    return QueryPlan(query=spark_sql(query), sources=sources)


def plan_write(
    statement: Insert | Update | Delete,
    tables: Mapping[NameAsWritten, Table],
    constraints: Sequence[ColumnConstraint] = (),
) -> WritePlan:
    """``constraints`` are the written table's. Raises DmlError for a table that is not full ACID,
    wrong columns, wrong counts, and a constraint that cannot be kept."""
    table = tables[statement.table]
    if not table.is_full_acid:
        raise DmlError(
            f"{table.full_name} is no full ACID table, so rows cannot be written to it here; "
            "create it with TBLPROPERTIES ('transactional'='true')"
        )
    if any("timestamp" in column.type.lower() for column in table.storage.columns):
        _refuse_nanoseconds(statement)
    match statement:
        case Insert():
            return _plan_insert(statement, table, tables, constraints)
        case Update():
            return _plan_update(statement, table, tables, constraints)
        case Delete():
            return _plan_delete(statement, table, tables)


def _refuse_nanoseconds(statement: Insert | Update | Delete) -> None:
    """Spark would cut the last digits off and write the rest."""
    trees = [statement.source if isinstance(statement, Insert) else statement.where]
    if isinstance(statement, Update):
        trees += [value for _, value in statement.assignments]
    for literal in (
        text for tree in trees if tree for text in tree.find_all(exp.Literal, exp.National)
    ):
        if _NANOSECONDS.match(literal.name):
            raise DmlError(
                f"{literal.name} has more digits than microseconds, which Spark would cut off; "
                "write at most six digits, or insert with Hive"
            )


def _plan_insert(
    statement: Insert,
    table: Table,
    tables: Mapping[NameAsWritten, Table],
    constraints: Sequence[ColumnConstraint],
) -> WritePlan:
    require_known_buckets(table)
    require_one_name_a_value(table)
    given = _insert_columns(statement, table)
    require_known(table, constraints, (*given, *statement.partition))
    _require_counts(statement, table, given)
    source, views = rewrite_query(statement.source, tables)
    # By place, as in Hive: what the source calls its columns means nothing.
    aliases = [f"c{at}" for at in range(len(given))]
    sources = {name: _column(alias) for name, alias in zip(given, aliases, strict=True)}
    constants = {
        name: exp.Literal.string(constant)
        for name, constant in statement.partition.items()
        if constant is not None
    }
    values = [
        _value(sources.get(column.name, exp.Null()), column, table, constraints)
        for column in table.storage.columns
    ]
    values += [
        _value(_cut((sources | constants)[column.name], column), column, table, ())
        for column in table.partition_columns
    ]
    return WritePlan(
        kind=Write.INSERT,
        table=table,
        query=spark_sql(_select_from(values, source, aliases)),
        sources=views,
        delete_statement_id=None,
        insert_statement_id=0,
        is_bounded=_is_bounded(statement.source),
    )


def _is_bounded(source: exp.Expr) -> bool:
    """Whether a query makes no more rows than it reads: no joins, nothing that makes several rows
    of one, and no function that may be such a one without being known here."""
    return not any(
        isinstance(node, _MULTIPLYING) and not isinstance(node, exp.Values)
        for node in source.walk()
    )


def _require_counts(statement: Insert, table: Table, given: Sequence[str]) -> None:
    """Each row of VALUES has a value for each column that is given."""
    rows = statement.source.expressions if isinstance(statement.source, exp.Values) else ()
    for row in rows:
        count = len(row.expressions) if isinstance(row, exp.Tuple) else 1
        if count != len(given):
            raise DmlError(
                f"{table.full_name} takes {len(given)} values here "
                f"({', '.join(given)}) but a row has {count}"
            )


def _cut(value: exp.Expr, column: Column) -> exp.Expr:
    """As Hive casts to varchar; the columns of rows are cut where they are written."""
    length = _VARCHAR.fullmatch(column.type.lower())
    if not length:
        return value
    text, first = exp.cast(value, exp.DType.TEXT), exp.Literal.number(1)
    return exp.Substring(this=text, start=first, length=exp.Literal.number(length[1]))


def _insert_columns(statement: Insert, table: Table) -> tuple[str, ...]:
    """Names of what the source's columns are, in their order."""
    keys = [column.name for column in table.partition_columns]
    for name in statement.partition:
        _known(name, keys, f"partition column of {table.full_name}")
    dynamic = [key for key in keys if statement.partition.get(key) is None]
    if not statement.columns:
        return (*(column.name for column in table.storage.columns), *dynamic)
    allowed = [column.name for column in table.storage.columns] + dynamic
    for name in statement.columns:
        _known(name, allowed, f"column of {table.full_name}")
    repeated = {name for name in statement.columns if statement.columns.count(name) > 1}
    if repeated:
        raise DmlError(f"column {min(repeated)} is named twice")
    missing = [key for key in dynamic if key not in statement.columns]
    if missing:
        raise DmlError(f"no value for partition column {missing[0]} of {table.full_name}")
    return statement.columns


def _plan_update(
    statement: Update,
    table: Table,
    tables: Mapping[NameAsWritten, Table],
    constraints: Sequence[ColumnConstraint],
) -> WritePlan:
    columns = {column.name: column for column in table.storage.columns}
    keys = {column.name for column in table.partition_columns}
    require_known(table, constraints, [*columns, *keys])
    new: dict[str, exp.Expr] = {}
    for name, expression in statement.assignments:
        if name in keys or name in table.storage.bucket_columns:
            raise DmlError(
                f"column {name} of {table.full_name} says where rows are stored and cannot be "
                "updated; delete the rows and insert them again"
            )
        _known(name, list(columns), f"column of {table.full_name}")
        if name in new:
            raise DmlError(f"column {name} is assigned twice")
        new[name] = expression.copy()  # a node has one parent, and the statement stays as it is
    # Two selects: the inner one names the new values, so that constraints read them by column.
    values = [_named(new.get(name, _column(name, statement.table.name)), name) for name in columns]
    rows, views = _rows_of(statement.table, values, statement.where, tables)
    casts = [_value(_column(name), column, table, constraints) for name, column in columns.items()]
    outputs = [_column(ROW_ID), _column(ROW_PARTITION), *casts]
    return WritePlan(
        kind=Write.UPDATE,
        table=table,
        query=spark_sql(_select_from(outputs, rows)),
        sources=views,
        delete_statement_id=0,
        insert_statement_id=1,
    )


def _plan_delete(
    statement: Delete, table: Table, tables: Mapping[NameAsWritten, Table]
) -> WritePlan:
    rows, views = _rows_of(statement.table, [], statement.where, tables)
    return WritePlan(
        kind=Write.DELETE,
        table=table,
        query=spark_sql(rows),
        sources=views,
        delete_statement_id=0,
        insert_statement_id=None,
    )


def _rows_of(
    name: NameAsWritten,
    values: Sequence[exp.Expr],
    where: exp.Expr | None,
    tables: Mapping[NameAsWritten, Table],
) -> tuple[exp.Expr, tuple[SourceView, ...]]:
    """A query for the identifiers and ``values`` of the rows that ``where`` selects."""
    identity = [_column(ROW_ID, name.name), _column(ROW_PARTITION, name.name)]
    source = exp.table_(name.name, db=name.database, quoted=True)
    rows = exp.select(*identity, *values).from_(source)
    return rewrite_query(rows.where(where) if where else rows, tables)


def _select_from(
    values: Sequence[exp.Expr], source: exp.Expr, columns: Sequence[str] = ()
) -> exp.Select:
    names = [exp.to_identifier(name, quoted=True) for name in columns]
    alias = exp.TableAlias(this=exp.to_identifier("source"), columns=names)
    return exp.select(*values).from_(exp.Subquery(this=source, alias=alias))


def _named(value: exp.Expr, name: str) -> exp.Alias:
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


def _column(name: str, table: str | None = None) -> exp.Column:
    return exp.column(name, table=table, quoted=True)


def _value(
    value: exp.Expr, column: Column, table: Table, constraints: Sequence[ColumnConstraint]
) -> exp.Expr:
    kind = exp.DataType(this=exp.DType.USERDEFINED, kind=spark_type(column.type))
    kept = kept_value(table, constraints, column.name, exp.Cast(this=value, to=kind))
    return _named(kept, column.name)


def _known(name: str, names: list[str], what: str) -> None:
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; it has {', '.join(names)}"
        raise DmlError(f"{name} is no {what}{hint}")
