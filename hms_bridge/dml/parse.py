"""SQL text to statements, by sqlglot in Hive's dialect."""

from __future__ import annotations

import re
from collections.abc import Iterable

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from hms_bridge.dml.parse_ddl import parse_create, parse_drop
from hms_bridge.dml.statement import (
    Delete,
    Describe,
    Insert,
    Select,
    Show,
    Statement,
    TableName,
    Update,
    Use,
)
from hms_bridge.errors import DmlError

TEXT_LENGTH_MAX = 1_000_000
_SHOW = re.compile(
    r"\s*show\s+(databases|schemas|tables)(?:\s+(?:in|from)\s+`?(\w+)`?)?\s*;?\s*", re.IGNORECASE
)
_SHOW_PARTITIONS = re.compile(
    r"\s*show\s+partitions\s+(?:`?(\w+)`?\s*\.\s*)?`?(\w+)`?\s*;?\s*", re.IGNORECASE
)
_SUPPORTED = (
    "SELECT, INSERT INTO, UPDATE, DELETE, CREATE/DROP DATABASE and TABLE, USE, SHOW, DESCRIBE"
)


def parse_script(text: str) -> tuple[Statement, ...]:
    """The statements of a text, separated by ``;``.

    Raises DmlError, with the place, for text that is no SQL or a statement not supported.
    """
    if len(text) > TEXT_LENGTH_MAX:
        raise DmlError(f"the text is longer than {TEXT_LENGTH_MAX} characters; split it")
    return tuple(parse_statement(part) for part in split_statements(text))


def split_statements(text: str) -> tuple[str, ...]:
    """Cut at ``;`` outside quotes and comments. Raises DmlError for text that cannot be read."""
    try:
        tokens = sqlglot.tokenize(text, read="hive")
    except SqlglotError as error:
        raise DmlError(_message(error)) from error
    parts, start = [], 0
    for token in tokens:
        if token.token_type is sqlglot.TokenType.SEMICOLON:
            parts.append(text[start : token.start])
            start = token.end + 1
    parts.append(text[start:])
    return tuple(part.strip() for part in parts if _has_words(part))


def _has_words(part: str) -> bool:
    try:
        return bool(sqlglot.tokenize(part, read="hive"))
    except SqlglotError:
        return True


def parse_statement(text: str) -> Statement:
    """One statement. Raises DmlError."""
    if match := _SHOW.fullmatch(text):
        what = "tables" if match.group(1).lower() == "tables" else "databases"
        return Show(what=what, database=match.group(2).lower() if match.group(2) else None)
    if match := _SHOW_PARTITIONS.fullmatch(text):
        database, name = (part.lower() if part else None for part in match.groups())
        return Show(what="partitions", table=TableName(database=database, name=name or ""))
    try:
        tree = sqlglot.parse_one(text, read="hive")
    except SqlglotError as error:
        raise DmlError(_message(error)) from error
    return _statement(tree, text)


def _statement(tree: exp.Expr, text: str) -> Statement:
    match tree:
        case exp.Query():
            return Select(text=_sql(tree), tables=table_names(tree))
        case exp.Insert():
            return _insert(tree)
        case exp.Update():
            return _update(tree)
        case exp.Delete():
            return _delete(tree)
        case exp.Create():
            return parse_create(tree)
        case exp.Drop():
            return parse_drop(tree)
        case exp.Use():
            return Use(database=tree.this.name.lower())
        case exp.Describe() if isinstance(tree.this, exp.Table):
            return Describe(table=table_name(tree.this))
        case _:
            words = " ".join(text.split()[:3])
            raise DmlError(f"'{words} …' is not supported; supported are {_SUPPORTED}")


def _refuse_more(tree: exp.Expr, *known: str) -> None:
    """A clause that the parser knows and nobody here would heed (DELETE … LIMIT 5) must not be
    passed over: more rows would be changed than were meant. Raises DmlError."""
    for name, value in tree.args.items():
        if value and name not in known:
            clause = name.strip("_").replace("_", " ").upper()
            raise DmlError(f"{tree.key.upper()} with {clause} is not supported; leave it out")


def _insert(tree: exp.Insert) -> Insert:
    if tree.args.get("overwrite"):
        raise DmlError("INSERT OVERWRITE is not supported; delete the rows, then INSERT INTO")
    _refuse_more(tree, "this", "expression")
    target, columns = tree.this, ()
    if isinstance(target, exp.Schema):
        columns = tuple(identifier.name.lower() for identifier in target.expressions)
        target = target.this
    source = tree.expression
    if not isinstance(target, exp.Table) or source is None:
        raise DmlError("write INSERT INTO table SELECT … or INSERT INTO table VALUES (…)")
    return Insert(
        table=table_name(target),
        columns=columns,
        partition=dict(_partition(target.args.get("partition"))),
        source=_sql(source),
        source_tables=table_names(source),
        value_counts=frozenset(
            len(row.expressions) if isinstance(row, exp.Tuple) else 1 for row in source.expressions
        )
        if isinstance(source, exp.Values)
        else frozenset(),
    )


def _partition(clause: exp.Expr | None) -> Iterable[tuple[str, str | None]]:
    for item in clause.expressions if clause is not None else ():
        if isinstance(item, exp.EQ) and isinstance(item.expression, exp.Literal | exp.Neg):
            value = item.expression
            is_literal = isinstance(value, exp.Literal)
            yield item.this.name.lower(), value.name if is_literal else _sql(value)
        elif isinstance(item, exp.Column):
            yield item.name.lower(), None
        else:
            raise DmlError(f"'{_sql(item)}' cannot stand in PARTITION; write column='value'")


def _update(tree: exp.Update) -> Update:
    _refuse_more(tree, "this", "expressions", "where")
    _refuse_more(tree.this, "this", "db", "catalog", "alias")
    assignments = []
    for item in tree.expressions:
        if not isinstance(item, exp.EQ) or not isinstance(item.this, exp.Column):
            raise DmlError(f"'{_sql(item)}' is no assignment; write SET column = value")
        assignments.append((item.this.name.lower(), _sql(item.expression)))
    where = tree.args.get("where")
    return Update(
        table=table_name(tree.this),
        assignments=tuple(assignments),
        where=_sql(where.this) if where else None,
        source_tables=tuple(name for name in table_names(tree) if name != table_name(tree.this)),
    )


def _delete(tree: exp.Delete) -> Delete:
    _refuse_more(tree, "this", "where")
    where = tree.args.get("where")
    if not isinstance(tree.this, exp.Table):
        raise DmlError("write DELETE FROM table WHERE …")
    _refuse_more(tree.this, "this", "db", "catalog", "alias")
    return Delete(
        table=table_name(tree.this),
        where=_sql(where.this) if where else None,
        source_tables=tuple(name for name in table_names(tree) if name != table_name(tree.this)),
    )


def table_name(table: exp.Table) -> TableName:
    """The name of a table expression. Raises DmlError for a three-part name."""
    if table.catalog:
        raise DmlError(f"'{_sql(table)}' names a catalog; write database.table")
    return TableName(database=table.db.lower() or None, name=table.name.lower())


def table_names(tree: exp.Expr) -> tuple[TableName, ...]:
    """Tables that a query reads: not the names that its WITH clauses define."""
    defined = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    names = {
        table_name(table)
        for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier)
        and (table.db or table.name.lower() not in defined)
    }
    return tuple(sorted(names, key=str))


def _sql(tree: exp.Expr) -> str:
    """Hive SQL. sqlglot would drop the names of NAMED_STRUCT."""
    copy: exp.Expr = tree.copy()
    for node in reversed(list(copy.find_all(exp.Struct))):
        named = _named_struct(node)
        if node is copy:
            copy = named
        else:
            node.replace(named)
    return copy.sql(dialect="hive")


def _named_struct(node: exp.Struct) -> exp.Expr:
    arguments: list[exp.Expr] = []
    for number, item in enumerate(node.expressions, start=1):
        is_named = isinstance(item, exp.PropertyEQ)
        name = item.this.name if is_named else f"col{number}"
        arguments += [exp.Literal.string(name), item.expression if is_named else item]
    return exp.Anonymous(this="NAMED_STRUCT", expressions=arguments)


def _message(error: SqlglotError) -> str:
    """What is wrong, where, and the words around it."""
    details = error.errors[0] if isinstance(error, ParseError) and error.errors else None
    if details is None:
        first = re.sub(r"\x1b\[\d*m", "", str(error)).strip().splitlines()[0]
        return f"cannot read the SQL: {first}"
    what = str(details.get("description")).partition(" for <class")[0]
    before = " ".join(str(details.get("start_context") or "").split())[-30:]
    return (
        f"cannot read the SQL at line {details.get('line')}, column {details.get('col')}: "
        f"'{details.get('highlight')}' after '{before}': {what}"
    )
