"""CREATE, DROP, USE and DESCRIBE, from sqlglot's tree to records; what is not heeded is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from hms_bridge.dml.clauses import refuse_more, typed
from hms_bridge.dml.hive_types import column_type
from hms_bridge.dml.names import database_name, table_name
from hms_bridge.dml.statement import (
    CreateDatabase,
    CreateTable,
    Describe,
    DropDatabase,
    DropTable,
    Use,
)
from hms_bridge.errors import DmlError
from hms_bridge.model.catalog import Column

_BY_HIVE = "leave it out, or create the table with Hive on this metastore"


def parse_create(tree: exp.Create) -> CreateDatabase | CreateTable:
    """Raises DmlError for anything but a database or a table with columns."""
    if tree.kind in ("DATABASE", "SCHEMA"):
        return _create_database(tree)
    if tree.kind != "TABLE" or not isinstance(tree.this, exp.Schema) or tree.expression:
        raise DmlError(f"CREATE {tree.kind} in this form is not supported; give columns")
    refuse_more(tree, "this", "kind", "exists", "properties", what="CREATE TABLE")
    refuse_more(tree.this, "this", "expressions", what="CREATE TABLE")
    clauses = _table_clauses(tree)
    columns = tuple(_column(item) for item in tree.this.expressions)
    _refuse_repeated([column.name for column in (*columns, *clauses.partition_columns)])
    return CreateTable(
        table=table_name(tree.this.this),
        columns=columns,
        partition_columns=clauses.partition_columns,
        bucket_columns=clauses.bucket_columns,
        bucket_count=clauses.bucket_count,
        properties=clauses.properties,
        location=clauses.location,
        is_if_not_exists=bool(tree.args.get("exists")),
    )


def parse_drop(tree: exp.Drop) -> DropDatabase | DropTable:
    """Raises DmlError for anything but a database or a table."""
    is_if_exists = bool(tree.args.get("exists"))
    dropped = tree.args.get("tables") or []
    if len(dropped) != 1 or not isinstance(dropped[0], exp.Table):
        raise DmlError("DROP takes one database or table")
    if tree.kind in ("DATABASE", "SCHEMA"):
        heeded = ("tables", "kind", "exists", "cascade", "restrict")
        refuse_more(tree, *heeded, what="DROP DATABASE")
        return DropDatabase(
            name=database_name(dropped[0]),
            is_if_exists=is_if_exists,
            is_cascade=bool(tree.args.get("cascade")),
        )
    if tree.kind != "TABLE":
        raise DmlError(f"DROP {tree.kind} is not supported; supported are DATABASE and TABLE")
    refuse_more(tree, "tables", "kind", "exists", "purge", what="DROP TABLE")
    return DropTable(
        table=table_name(dropped[0]),
        is_if_exists=is_if_exists,
        is_purge=bool(tree.args.get("purge")),
    )


def parse_use(tree: exp.Use) -> Use:
    """Raises DmlError for what is not one database."""
    refuse_more(tree, "this")
    return Use(database=database_name(tree.this))


def parse_describe(tree: exp.Describe) -> Describe:
    """Raises DmlError for anything but the columns of a table."""
    style = str(tree.args.get("style") or tree.args.get("kind") or "").upper()
    if style:
        raise DmlError(
            f"DESCRIBE {style} is not supported; DESCRIBE database.table lists the columns, and "
            "Hive on this metastore shows the rest"
        )
    refuse_more(tree, "this")
    return Describe(table=table_name(tree.this))


@dataclass(kw_only=True, slots=True)
class _TableClauses:
    """What stands behind the columns of a table."""

    partition_columns: tuple[Column, ...] = ()
    bucket_columns: tuple[str, ...] = ()
    bucket_count: int = -1
    properties: dict[str, str] = field(default_factory=dict)
    location: str | None = None


def _create_database(tree: exp.Create) -> CreateDatabase:
    refuse_more(tree, "this", "kind", "exists", "properties", what="CREATE DATABASE")
    location = None
    for item in _properties(tree):
        if not isinstance(item, exp.LocationProperty):
            raise DmlError(f"CREATE DATABASE with {typed(item)} is not supported; leave it out")
        location = _text(item.this)
    return CreateDatabase(
        name=database_name(tree.this),
        is_if_not_exists=bool(tree.args.get("exists")),
        location=location,
    )


def _table_clauses(tree: exp.Create) -> _TableClauses:
    clauses = _TableClauses()
    seen = set()
    for item in _properties(tree):
        if type(item) is exp.Property:
            _set(clauses, *_property(item))
            continue
        if type(item) in seen:
            raise DmlError(f"CREATE TABLE has {typed(item)} twice; leave one out")
        seen.add(type(item))
        _heed(clauses, item)
    return clauses


def _heed(clauses: _TableClauses, item: exp.Expr) -> None:
    match item:
        case exp.PartitionedByProperty() if isinstance(item.this, exp.Schema):
            refuse_more(item.this, "expressions", what="PARTITIONED BY")
            clauses.partition_columns = tuple(_column(column) for column in item.this.expressions)
        case exp.ClusteredByProperty():
            refuse_more(item, "expressions", "buckets", what="CLUSTERED BY")
            clauses.bucket_columns = tuple(_bucket_column(column) for column in item.expressions)
            clauses.bucket_count = int(_text(item.args["buckets"]))
        case exp.LocationProperty():
            clauses.location = _text(item.this)
        case exp.SchemaCommentProperty():
            # Hive keeps it as a parameter of the table (CreateTableDesc.toTable).
            _set(clauses, "comment", _text(item.this))
        case exp.FileFormatProperty() if isinstance(item.this, exp.Var):
            if item.name.lower() != "orc":
                raise DmlError(
                    f"STORED AS {item.name} is not supported; ACID tables are STORED AS ORC"
                )
        case exp.ExternalProperty() | exp.TemporaryProperty():
            is_external = isinstance(item, exp.ExternalProperty)
            raise DmlError(_not_managed("EXTERNAL" if is_external else "TEMPORARY"))
        case _:
            raise DmlError(f"CREATE TABLE with {typed(item)} is not supported; {_BY_HIVE}")


def _set(clauses: _TableClauses, name: str, value: str) -> None:
    if name.lower() in {property_name.lower() for property_name in clauses.properties}:
        raise DmlError(f"the property '{name}' is given twice; leave one out")
    if name.lower() == "external" and value.lower() == "true":
        raise DmlError(_not_managed("EXTERNAL"))
    clauses.properties[name] = value


def _not_managed(kind: str) -> str:
    return (
        f"CREATE {kind} TABLE is not supported: tables made here are managed ACID tables, whose "
        "files DROP TABLE deletes; create it with Hive on this metastore"
    )


def _properties(tree: exp.Create) -> Sequence[exp.Expr]:
    clause = tree.args.get("properties")
    return clause.expressions if clause else ()


def _property(item: exp.Property) -> tuple[str, str]:
    if not isinstance(item.this, exp.Literal):
        raise DmlError(f"CREATE TABLE with {typed(item)} is not supported; {_BY_HIVE}")
    return item.this.name, _text(item.args["value"])


def _text(value: exp.Expr | None) -> str:
    if not isinstance(value, exp.Literal):
        raise DmlError(f"'{typed(value) if value else ''}' is no text; write it in quotes")
    return str(value.name)


def _column(item: exp.Expr) -> Column:
    if not isinstance(item, exp.ColumnDef) or item.kind is None:
        raise DmlError(
            f"'{typed(item)}' is no column; write a name and a type. Constraints are not "
            "supported: nobody here would enforce them"
        )
    refuse_more(item, "this", "kind", "constraints", what=f"column {item.name}")
    comment = None
    for constraint in item.constraints:
        if not isinstance(constraint.kind, exp.CommentColumnConstraint):
            raise DmlError(
                f"column {item.name} with {typed(constraint)} is not supported: nobody here "
                "would enforce it; leave it out"
            )
        comment = _text(constraint.kind.this)
    return Column(name=item.name.lower(), type=column_type(item.kind), comment=comment)


def _bucket_column(item: exp.Expr) -> str:
    if not isinstance(item, exp.Column) or item.table:
        raise DmlError(f"'{typed(item)}' cannot stand in CLUSTERED BY; write a column")
    return item.name.lower()


def _refuse_repeated(names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise DmlError(f"column {name} is declared twice")
