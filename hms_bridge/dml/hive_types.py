"""Types of columns as a statement declares them, in Hive's spelling; other types are refused."""

from __future__ import annotations

from sqlglot import exp

from hms_bridge.dml.clauses import refuse_more
from hms_bridge.errors import AcidFormatError, DmlError
from hms_bridge.orc.hive_types import hive_type_text, parse_hive_type

_DType = exp.DType
_PLAIN = {
    _DType.BOOLEAN: "boolean",
    _DType.TINYINT: "tinyint",
    _DType.SMALLINT: "smallint",
    _DType.INT: "int",
    _DType.BIGINT: "bigint",
    _DType.FLOAT: "float",
    _DType.DOUBLE: "double",
    _DType.TEXT: "string",
    _DType.BINARY: "binary",
    _DType.DATE: "date",
    _DType.TIMESTAMP: "timestamp",
    _DType.TIMESTAMPLTZ: "timestamp with local time zone",
}
_SIZED = {_DType.DECIMAL: "decimal", _DType.CHAR: "char", _DType.VARCHAR: "varchar"}
_NESTED = {_DType.ARRAY: "array", _DType.MAP: "map"}


def column_type(kind: exp.Expr) -> str:
    """Lower case, no blanks (``decimal(10,2)``, ``struct<a:int,b:string>``).

    Raises DmlError for what is no type of Hive's that ORC can hold: a near one could change values.
    """
    text = _text(kind)
    try:
        return hive_type_text(parse_hive_type(text))
    except AcidFormatError as error:
        raise DmlError(str(error)) from error


def _text(kind: exp.Expr) -> str:
    if not isinstance(kind, exp.DataType):
        raise _unknown(kind)
    refuse_more(kind, "this", "expressions", "nested", what=f"type {kind.sql('hive')}")
    if kind.this in _PLAIN and not kind.expressions:
        return _PLAIN[kind.this]
    if kind.this in _SIZED:
        sizes = [_size(item) for item in kind.expressions]
        return _SIZED[kind.this] + (f"({','.join(sizes)})" if sizes else "")
    if kind.this in _NESTED:
        return f"{_NESTED[kind.this]}<{','.join(_text(item) for item in kind.expressions)}>"
    if kind.this is _DType.STRUCT:
        return f"struct<{','.join(_field(item) for item in kind.expressions)}>"
    raise _unknown(kind)


def _field(item: exp.Expr) -> str:
    if not isinstance(item, exp.ColumnDef) or item.kind is None:
        raise _unknown(item)
    refuse_more(item, "this", "kind", what=f"field {item.name} of a struct")
    return f"{item.name.lower()}:{_text(item.kind)}"


def _size(item: exp.Expr) -> str:
    if not isinstance(item, exp.DataTypeParam) or not isinstance(item.this, exp.Literal):
        raise _unknown(item)
    refuse_more(item, "this", what="a type")
    return str(item.this.name)


def _unknown(item: exp.Expr) -> DmlError:
    known = ", ".join([*_PLAIN.values(), *_SIZED.values(), *_NESTED.values(), "struct"])
    return DmlError(f"'{item.sql(dialect='hive')}' is no type that is supported; {known} are")
