"""Which columns of its tables a query may use: never fewer than it does, mostly no more.

A reader of columns pays for each one. Names decide: a column is used if the query names it, behind
the table's own name or behind none. ``*`` uses all columns of the tables beside it, but
``count(*)`` none. Where a name cannot be followed (NATURAL JOIN, PIVOT, columns renamed by an
alias) all columns are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from hms_bridge.model.catalog import Table


@dataclass(slots=True)
class UsedNames:
    """Names that a query uses of one table, in lower case, or all of its columns."""

    names: set[str] = field(default_factory=set)
    is_all: bool = False

    def uses(self, name: str) -> bool:
        """Whether a column, or an identifier that all tables have, is named by the query."""
        return name.lower() in self.names


def used_names(
    tree: exp.Expr, tables: Iterable[tuple[exp.Table, Table]]
) -> Mapping[str, UsedNames]:
    """By the tables' full names; ``tables`` are the places of a query that name one."""
    found = list(tables)
    used = {table.full_name: UsedNames() for _, table in found}
    by_alias: dict[str, set[str]] = {}
    for node, table in found:
        for alias in {node.alias_or_name.lower(), node.name.lower()}:
            by_alias.setdefault(alias, set()).add(table.full_name)
        if node.args.get("alias") and node.args["alias"].args.get("columns"):
            used[table.full_name].is_all = True
    for column in tree.find_all(exp.Column):
        _count_column(column, by_alias, used)
    for identifier in tree.find_all(exp.Identifier):
        if not _is_a_naming(identifier):
            _add([identifier.name], used.values())
    for star in tree.find_all(exp.Star):
        _count_star(star, found, used)
    if _has_implied_columns(tree):
        for one in used.values():
            one.is_all = True
    return used


def _count_column(
    column: exp.Column, by_alias: Mapping[str, set[str]], used: Mapping[str, UsedNames]
) -> None:
    parts = [part.name.lower() for part in column.parts if not isinstance(part, exp.Star)]
    is_star = isinstance(column.this, exp.Star)
    before = parts if is_star else parts[:-1]
    named = {table for part in before for table in by_alias.get(part, ())}
    if is_star:
        for name in named or used:
            used[name].is_all = True
        return
    _add(parts, [used[name] for name in named] or used.values())
    _add(parts[:1], used.values())  # a struct's column may be called like a table
    if len(parts) == 1:
        for name in by_alias.get(parts[0], ()):  # the whole row, as a value
            used[name].is_all = True


def _add(names: Iterable[str], used: Iterable[UsedNames]) -> None:
    lower = [name.lower() for name in names]
    for one in used:
        one.names.update(lower)


def _is_a_naming(identifier: exp.Identifier) -> bool:
    """Whether it names a table, an output or a part of a column, which is counted as a column."""
    parent = identifier.parent
    if isinstance(parent, exp.Alias):
        return identifier.arg_key == "alias"
    return isinstance(parent, exp.Column | exp.Table | exp.TableAlias)


def _count_star(
    star: exp.Star, tables: list[tuple[exp.Table, Table]], used: Mapping[str, UsedNames]
) -> None:
    if isinstance(star.parent, exp.Count | exp.Column):  # count(*); t.* is counted as a column
        return
    select = star.find_ancestor(exp.Select)
    for node, table in tables:
        if select is None or node.find_ancestor(exp.Select) is select:
            used[table.full_name].is_all = True


def _has_implied_columns(tree: exp.Expr) -> bool:
    is_natural = any(
        str(join.args.get("method") or "").upper() == "NATURAL" for join in tree.find_all(exp.Join)
    )
    return is_natural or tree.find(exp.Pivot, exp.MatchRecognize, exp.QueryTransform) is not None
