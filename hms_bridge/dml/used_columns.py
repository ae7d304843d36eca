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
    return _Count(tree, list(tables)).used


class _Count:
    """One walk over a query."""

    def __init__(self, tree: exp.Expr, tables: list[tuple[exp.Table, Table]]) -> None:
        self.used = {table.full_name: UsedNames() for _, table in tables}
        self._homes = [(node.find_ancestor(exp.Select), table.full_name) for node, table in tables]
        self._by_alias: dict[str, set[str]] = {}
        for node, table in tables:
            for alias in {node.alias_or_name.lower(), node.name.lower()}:
                self._by_alias.setdefault(alias, set()).add(table.full_name)
            if node.args.get("alias") and node.args["alias"].args.get("columns"):
                self.used[table.full_name].is_all = True
        for column in tree.find_all(exp.Column):
            self._count_column(column)
        for identifier in tree.find_all(exp.Identifier):
            if not _is_a_naming(identifier):
                self._add([identifier.name], self._within_reach(identifier))
        for star in tree.find_all(exp.Star):
            self._count_star(star)
        if _has_implied_columns(tree):
            self._take_all(self.used)

    def _within_reach(self, node: exp.Expr) -> Iterable[str]:
        """Tables of the SELECT that a name stands in, and of those around it."""
        around: list[exp.Expr] = []
        select = node.find_ancestor(exp.Select)
        while select is not None:
            around.append(select)
            select = select.find_ancestor(exp.Select)
        if not around:
            return self.used
        return {
            name
            for home, name in self._homes
            if home is None or any(home is outer for outer in around)
        }

    def _count_column(self, column: exp.Column) -> None:
        parts = [part.name.lower() for part in column.parts if not isinstance(part, exp.Star)]
        is_star = isinstance(column.this, exp.Star)
        before = parts if is_star else parts[:-1]
        named = {table for part in before for table in self._by_alias.get(part, ())}
        if is_star:
            self._take_all(named or self.used)
            return
        reach = self._within_reach(column)
        self._add(parts, named or reach)
        self._add(parts[:1], reach)  # a struct's column may be called like a table
        if len(parts) == 1:
            self._take_all(self._by_alias.get(parts[0], ()))  # the whole row, as a value

    def _count_star(self, star: exp.Star) -> None:
        """``count(*)`` uses none; ``t.*`` is counted as a column."""
        if isinstance(star.parent, exp.Count | exp.Column):
            return
        select = star.find_ancestor(exp.Select)
        self._take_all(name for home, name in self._homes if select is None or home is select)

    def _take_all(self, tables: Iterable[str]) -> None:
        for name in tables:
            self.used[name].is_all = True

    def _add(self, names: Iterable[str], tables: Iterable[str]) -> None:
        for name in tables:
            self.used[name].names.update(column.lower() for column in names)


def _is_a_naming(identifier: exp.Identifier) -> bool:
    """Whether it names a table, an output or a part of a column, which is counted as a column."""
    parent = identifier.parent
    if isinstance(parent, exp.Alias):
        return identifier.arg_key == "alias"
    return isinstance(parent, exp.Column | exp.Table | exp.TableAlias)


def _has_implied_columns(tree: exp.Expr) -> bool:
    is_natural = any(
        str(join.args.get("method") or "").upper() == "NATURAL" for join in tree.find_all(exp.Join)
    )
    return is_natural or tree.find(exp.Pivot, exp.MatchRecognize, exp.QueryTransform) is not None
