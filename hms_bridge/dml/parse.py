"""SQL text to statements, by sqlglot in Hive's dialect."""

from __future__ import annotations

import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from hms_bridge.dml.clauses import not_supported, refuse_more, typed
from hms_bridge.dml.names import table_name, table_names
from hms_bridge.dml.parse_ddl import parse_create, parse_describe, parse_drop, parse_use
from hms_bridge.dml.statement import (
    Delete,
    Insert,
    NameAsWritten,
    Select,
    Show,
    Statement,
    Update,
)
from hms_bridge.errors import DmlError

TEXT_LENGTH_MAX = 1_000_000
_NAME = r"(`[^`]+`|\w+)"
_SHOW = re.compile(
    rf"\s*show\s+(?:(databases|schemas)|tables(?:\s+(?:in|from)\s+{_NAME})?)\s*;?\s*", re.IGNORECASE
)
_SHOW_PARTITIONS = re.compile(
    rf"\s*show\s+partitions\s+(?:{_NAME}\s*\.\s*)?{_NAME}\s*;?\s*", re.IGNORECASE
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
        return Show(
            what="databases" if match.group(1) else "tables", database=_bare(match.group(2))
        )
    if match := _SHOW_PARTITIONS.fullmatch(text):
        name = NameAsWritten(database=_bare(match.group(1)), name=_bare(match.group(2)) or "")
        return Show(what="partitions", table=name)
    try:
        tree = sqlglot.parse_one(text, read="hive")
    except (SqlglotError, LookupError, TypeError, ValueError) as error:
        raise DmlError(_message(error)) from error
    return _statement(tree, text)


def _bare(name: str | None) -> str | None:
    return name.strip("`").lower() if name else None


def _statement(tree: exp.Expr, text: str) -> Statement:
    match tree:
        case exp.Query():
            return Select(query=tree, tables=table_names(tree))
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
            return parse_use(tree)
        case exp.Describe():
            return parse_describe(tree)
        case _:
            raise not_supported(text)


def _insert(tree: exp.Insert) -> Insert:
    if tree.args.get("overwrite"):
        raise DmlError("INSERT OVERWRITE is not supported; delete the rows, then INSERT INTO")
    refuse_more(tree, "this", "expression")
    target = tree.this
    columns: tuple[str, ...] = ()
    if isinstance(target, exp.Schema):
        refuse_more(target, "this", "expressions", what="INSERT")
        columns = tuple(_column_name(item) for item in target.expressions)
        target = target.this
    source = tree.expression
    table_names(tree)  # the target's name, too, may be one that WITH defines
    if source is None:
        raise DmlError("write INSERT INTO table SELECT … or INSERT INTO table VALUES (…)")
    return Insert(
        table=table_name(target, "partition"),
        columns=columns,
        partition=_partition(target.args.get("partition")),
        source=source,
        source_tables=table_names(source),
    )


def _column_name(item: exp.Expr) -> str:
    if not isinstance(item, exp.Identifier):
        raise DmlError(f"'{typed(item)}' is no name of a column")
    return str(item.name).lower()


def _partition(clause: exp.Expr | None) -> dict[str, str | None]:
    values: dict[str, str | None] = {}
    for item in clause.expressions if clause is not None else ():
        name, value = _partition_value(item)
        if name in values:
            raise DmlError(f"partition column {name} is named twice")
        values[name] = value
    return values


def _partition_value(item: exp.Expr) -> tuple[str, str | None]:
    column = item.this if isinstance(item, exp.EQ) else item
    if isinstance(column, exp.Column) and not column.table:
        if column is item:
            return column.name.lower(), None
        value = item.expression
        if isinstance(value, exp.Literal):
            return column.name.lower(), value.name
        if isinstance(value, exp.Neg) and value.this.is_number:
            return column.name.lower(), f"-{value.name}"
    raise DmlError(f"'{typed(item)}' cannot stand in PARTITION; write column='value'")


def _update(tree: exp.Update) -> Update:
    refuse_more(tree, "this", "expressions", "where")
    table = table_name(tree.this)
    assignments = []
    for item in tree.expressions:
        if not isinstance(item, exp.EQ) or not isinstance(item.this, exp.Column):
            raise DmlError(f"'{typed(item)}' is no assignment; write SET column = value")
        if item.this.table:  # else a field of a struct would be taken for a column of its name
            raise DmlError(f"'{typed(item.this)}' cannot be assigned; write a column's name alone")
        assignments.append((item.this.name.lower(), item.expression))
    return Update(
        table=table,
        assignments=tuple(assignments),
        where=_where(tree),
        source_tables=tuple(name for name in table_names(tree) if name != table),
    )


def _delete(tree: exp.Delete) -> Delete:
    refuse_more(tree, "this", "where")
    table = table_name(tree.this)
    return Delete(
        table=table,
        where=_where(tree),
        source_tables=tuple(name for name in table_names(tree) if name != table),
    )


def _where(tree: exp.Update | exp.Delete) -> exp.Expr | None:
    where = tree.args.get("where")
    return where.this if where else None


def _message(error: Exception) -> str:
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
