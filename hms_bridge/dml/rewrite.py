"""Hive queries over tables to Spark queries over views of their snapshots."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from hms_bridge.dml.names import ROW_ID, ROW_PARTITION, VIEW_PREFIX
from hms_bridge.dml.statement import NameAsWritten
from hms_bridge.dml.used_columns import UsedNames, used_names
from hms_bridge.errors import DmlError
from hms_bridge.model.catalog import Column, Table

_ROW_ID_FIELDS = frozenset({"writeid", "bucketid", "rowid"})


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceView:
    """A temporary view that a query reads: one table at one snapshot.

    ``columns`` are those that the query may use, in the table's order: none for ``count(*)``.
    ``has_row_ids`` adds the columns ``row__id`` and, for writes, ``row__partition`` (the name of
    the partition as the metastore has it, empty for none) behind them.
    """

    view_name: str
    table: Table
    columns: tuple[Column, ...]
    has_row_ids: bool


def view_for(table: Table) -> str:
    """The name of a table's view; the length says where the database's name ends."""
    return f"{VIEW_PREFIX}{len(table.database_name)}__{table.database_name}__{table.name}"


def quote(name: str) -> str:
    """An identifier in Spark's quotes."""
    return exp.to_identifier(name, quoted=True).sql(dialect="spark")


def rewrite_query(
    query: exp.Expr,
    tables: Mapping[NameAsWritten, Table],
    identity: Sequence[str] = (ROW_ID, ROW_PARTITION),
) -> tuple[exp.Expr, tuple[SourceView, ...]]:
    """The query for Spark and the views that it reads. ROW__ID, ``identity``, is offered only to
    queries that name it, and, as in Hive, is not among the columns of ``*``.

    Raises DmlError for a column that no table of a plain query has.
    """
    tree = query.copy()
    try:
        _check_columns(tree, tables, identity)
        views = _use_views(tree, tables, identity)
        return tree, views
    except SqlglotError as error:
        raise DmlError(f"cannot read the SQL: {str(error).splitlines()[0]}") from error


def _name_of(table: exp.Table) -> NameAsWritten:
    return NameAsWritten(database=table.db.lower() or None, name=table.name.lower())


def _use_views(
    tree: exp.Expr, tables: Mapping[NameAsWritten, Table], identity: Sequence[str]
) -> tuple[SourceView, ...]:
    named = [
        (node, tables[_name_of(node)])
        for node in tree.find_all(exp.Table)
        if _name_of(node) in tables
    ]
    used = used_names(tree, named)
    views = {table.full_name: _view(table, used[table.full_name], identity) for _, table in named}
    identified = {name for name, view in views.items() if view.has_row_ids}
    if identified:
        # While the tables still have the names by which it finds them.
        _hide_row_ids_from_stars(tree, tables, identified, identity)
    for node, table in named:
        alias = node.alias or node.name
        database = node.db
        view_name = views[table.full_name].view_name
        node.set("this", exp.to_identifier(view_name, quoted=True))
        node.set("db", None)
        _name_source(node, alias)
        if database:
            _drop_database(tree, database, alias)
    return tuple(sorted(views.values(), key=lambda view: view.view_name))


def _view(table: Table, used: UsedNames, identity: Sequence[str]) -> SourceView:
    columns = (*table.storage.columns, *table.partition_columns)
    return SourceView(
        view_name=view_for(table),
        table=table,
        columns=tuple(c for c in columns if used.is_all or used.uses(c.name)),
        has_row_ids=any(map(used.uses, identity)),
    )


def _name_source(node: exp.Table, name: str) -> None:
    given = node.args.get("alias")
    columns = given.args.get("columns") if given else None
    alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True), columns=columns)
    node.set("alias", alias)


def _drop_database(tree: exp.Expr, database: str, alias: str) -> None:
    """``d.t.c`` is written ``t.c``: the view has no database."""
    for column in tree.find_all(exp.Column):
        if column.db.lower() == database.lower() and column.table.lower() == alias.lower():
            column.set("db", None)


def _hide_row_ids_from_stars(
    tree: exp.Expr,
    tables: Mapping[NameAsWritten, Table],
    identified: Collection[str],
    identity: Sequence[str],
) -> None:
    """``identified`` are the full names of the tables whose views have row identifiers."""
    for scope in traverse_scope(tree):
        select = scope.expression
        if not isinstance(select, exp.Select):
            continue
        sources = [
            name for name, source in scope.sources.items()
            if isinstance(source, exp.Table) and _name_of(source) in tables
            and tables[_name_of(source)].full_name in identified
        ]  # fmt: skip
        hidden = [
            exp.column(column, table=name, quoted=True) for name in sources for column in identity
        ]
        for item in select.expressions:
            if isinstance(item, exp.Star) and hidden:
                item.set("except_", hidden)
            elif (
                isinstance(item, exp.Column)
                and isinstance(item.this, exp.Star)
                and item.table in sources
            ):
                item.this.set(
                    "except_",
                    [exp.column(column, quoted=True) for column in identity],
                )


def _check_columns(
    tree: exp.Expr, tables: Mapping[NameAsWritten, Table], identity: Sequence[str]
) -> None:
    """Names in a query that reads one table and nothing else. Others are left to Spark."""
    for scope in traverse_scope(tree):
        sources = list(scope.sources.items())
        if len(sources) != 1 or scope.is_subquery or scope.subquery_scopes:
            continue
        alias, source = sources[0]
        if not isinstance(source, exp.Table) or source.alias_column_names:
            continue
        table = tables.get(_name_of(source))
        if table is not None and not scope.expression.args.get("laterals"):
            _check_scope(scope, alias, table, identity)


def _check_scope(scope: Scope, alias: str, table: Table, identity: Sequence[str]) -> None:
    names = [c.name for c in (*table.storage.columns, *table.partition_columns)]
    given = {item.alias.lower() for item in scope.expression.expressions if item.alias}
    known = {*names, *given, *identity}
    for column in scope.columns:
        parts = [part.name.lower() for part in column.parts if not isinstance(part, exp.Star)]
        written_first = parts[0] if parts else ""  # a struct may be called like its table
        if len(parts) > 1 and parts[0] == table.database_name:
            parts = parts[1:]
        if len(parts) > 1 and parts[0] in (alias.lower(), table.name):
            parts = parts[1:]
        if not parts or isinstance(column.this, exp.Star):
            continue
        if {parts[0], written_first} & known:
            _check_row_id_field(parts)
            continue
        near = difflib.get_close_matches(parts[0], names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(names)}"
        raise DmlError(f"{parts[0]} is no column of {table.full_name}; {hint}")


def _check_row_id_field(parts: list[str]) -> None:
    if parts[0] == ROW_ID and len(parts) > 1 and parts[1] not in _ROW_ID_FIELDS:
        raise DmlError(f"ROW__ID has no field {parts[1]}; it has writeid, bucketid, rowid")
