"""CREATE and DROP, from sqlglot's tree to records."""

from __future__ import annotations

from sqlglot import exp

from hms_bridge.dml.statement import (
    CreateDatabase,
    CreateTable,
    DropDatabase,
    DropTable,
    TableName,
)
from hms_bridge.errors import DmlError
from hms_bridge.model.catalog import Column


def parse_create(tree: exp.Create) -> CreateDatabase | CreateTable:
    """Raises DmlError for anything but a database or a table with columns."""
    is_if_not_exists = bool(tree.args.get("exists"))
    if tree.kind in ("DATABASE", "SCHEMA"):
        return CreateDatabase(
            name=_database_name(tree.this),
            is_if_not_exists=is_if_not_exists,
            location=_location(tree),
        )
    if tree.kind != "TABLE" or not isinstance(tree.this, exp.Schema) or tree.expression:
        raise DmlError(f"CREATE {tree.kind} in this form is not supported; give columns")
    buckets = tree.find(exp.ClusteredByProperty)
    return CreateTable(
        table=_name(tree.this.this),
        columns=tuple(_column(item) for item in tree.this.expressions),
        partition_columns=_partition_columns(tree),
        bucket_columns=tuple(item.name.lower() for item in buckets.expressions) if buckets else (),
        bucket_count=int(buckets.args["buckets"].name) if buckets else -1,
        properties=_properties(tree),
        location=_location(tree),
        is_if_not_exists=is_if_not_exists,
    )


def parse_drop(tree: exp.Drop) -> DropDatabase | DropTable:
    """Raises DmlError for anything but a database or a table."""
    is_if_exists = bool(tree.args.get("exists"))
    dropped = tree.args.get("tables") or []
    if len(dropped) != 1 or not isinstance(dropped[0], exp.Table):
        raise DmlError("DROP takes one database or table")
    if tree.kind in ("DATABASE", "SCHEMA"):
        return DropDatabase(
            name=_database_name(dropped[0]),
            is_if_exists=is_if_exists,
            is_cascade=bool(tree.args.get("cascade")),
        )
    if tree.kind != "TABLE":
        raise DmlError(f"DROP {tree.kind} is not supported; supported are DATABASE and TABLE")
    return DropTable(
        table=_name(dropped[0]), is_if_exists=is_if_exists, is_purge=bool(tree.args.get("purge"))
    )


def _name(table: exp.Table) -> TableName:
    return TableName(database=table.db.lower() or None, name=table.name.lower())


def _database_name(table: exp.Table) -> str:
    return str(table.db or table.name).lower()


def _column(item: exp.Expr) -> Column:
    if not isinstance(item, exp.ColumnDef) or item.kind is None:
        raise DmlError(f"'{item.sql(dialect='hive')}' is no column; write a name and a type")
    comment = item.find(exp.CommentColumnConstraint)
    return Column(
        name=item.name.lower(), type=_type(item.kind), comment=comment.name if comment else None
    )


def _type(kind: exp.Expr) -> str:
    """Hive's spelling: lower case, no blanks (``decimal(10,2)``, ``struct<a:int,b:string>``)."""
    return kind.sql(dialect="hive").lower().replace(", ", ",").replace(": ", ":")


def _partition_columns(tree: exp.Create) -> tuple[Column, ...]:
    clause = tree.find(exp.PartitionedByProperty)
    if clause is None:
        return ()
    return tuple(_column(item) for item in clause.this.expressions)


def _properties(tree: exp.Create) -> dict[str, str]:
    properties = tree.args.get("properties")
    found = {}
    for item in properties.expressions if properties else ():
        if type(item) is exp.Property:
            found[item.this.name if isinstance(item.this, exp.Expr) else str(item.this)] = (
                item.args["value"].name
            )
        elif isinstance(item, exp.FileFormatProperty) and item.name.lower() != "orc":
            raise DmlError(f"STORED AS {item.name} is not supported; ACID tables are STORED AS ORC")
    return found


def _location(tree: exp.Create) -> str | None:
    clause = tree.find(exp.LocationProperty)
    return clause.this.name if clause else None
