"""Names of tables in a statement: which are the metastore's, and which a WITH clause defines."""

from __future__ import annotations

from sqlglot import exp

from hms_bridge.dml.clauses import refuse_more, typed
from hms_bridge.dml.statement import NameAsWritten
from hms_bridge.errors import DmlError

VIEW_PREFIX = "hive_acid__"
"""Begins the names of the views that stand for tables while a statement runs."""
ROW_ID, ROW_PARTITION = "row__id", "row__partition"
"""What such a view has besides: which row it is, and the name of its partition."""


def table_name(table: exp.Expr, *more: str) -> NameAsWritten:
    """The name of a table expression, of which ``more`` parts are heeded elsewhere.

    Raises DmlError for a name of three parts, and for whatever else stands at the name.
    """
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise DmlError(f"'{typed(table)}' is no name of a table; write database.table")
    if table.catalog:
        raise DmlError(f"'{typed(table)}' names a catalog; write database.table")
    refuse_more(table, "this", "db", *more)
    return NameAsWritten(database=table.db.lower() or None, name=table.name.lower())


def database_name(table: exp.Expr) -> str:
    """Raises DmlError for a name of two parts: half of it would be passed over."""
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier) or table.db:
        raise DmlError(f"'{typed(table)}' is no name of a database; write one name")
    refuse_more(table, "this", what="DATABASE")
    return str(table.name).lower()


_IN_QUERY = ("alias", "joins", "laterals", "sample", "pivots", "hints")
"""What may stand at a table in a query: Spark carries it out on the view."""


def table_names(tree: exp.Expr) -> tuple[NameAsWritten, ...]:
    """Tables that a statement names: not the names that its WITH clauses define.

    Raises DmlError for a name that is one thing here and the other there, for a clause of a table
    that no reader heeds, and for INTO, with which Spark would make a table of its own.
    """
    clauses = list(tree.find_all(exp.CTE))
    defined = {clause.alias.lower() for clause in clauses}
    tables = [
        node
        for node in tree.find_all(exp.Table)
        if isinstance(node.this, exp.Identifier | exp.Dot)  # not range(5) and the like
    ]
    for clause in clauses:
        _refuse_shadowing(clause, tables)
    if any(isinstance(table.parent, exp.Into) for table in tables):
        raise DmlError("SELECT INTO is not supported; write INSERT INTO table SELECT …")
    names = {
        table_name(table, "partition", *_IN_QUERY)
        if table.parent is not None and isinstance(table.parent, exp.Insert | exp.Schema)
        else table_name(table, *_IN_QUERY)
        for table in tables
        if table.db or table.name.lower() not in defined
    }
    return tuple(sorted(names, key=str))


def _refuse_shadowing(clause: exp.CTE, tables: list[exp.Table]) -> None:
    """Where a name is a WITH clause's in one place and a table's in another, rows of the wrong one
    could be read, or changed."""
    name = clause.alias.lower()
    if name.startswith(VIEW_PREFIX):
        raise DmlError(f"WITH cannot define {name}: such names are kept for tables' views")
    owner = clause.parent.parent if clause.parent is not None else None
    is_recursive = clause.parent is not None and bool(clause.parent.args.get("recursive"))
    for table in tables:
        if table.db or table.name.lower() != name:
            continue
        around = list(_ancestors(table))
        is_inside = any(ancestor is owner for ancestor in around)
        is_own = not is_recursive and any(ancestor is clause for ancestor in around)
        if not is_inside or is_own:
            raise DmlError(
                f"{name} is defined by WITH and names a table elsewhere in the statement; give the "
                "WITH clause a name of its own, or write database.table"
            )


def _ancestors(node: exp.Expr) -> list[exp.Expr]:
    ancestors: list[exp.Expr] = []
    parent = node.parent
    while parent is not None:
        ancestors.append(parent)
        parent = parent.parent
    return ancestors
