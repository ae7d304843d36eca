"""How a table's rows are stored, and what Spark's Java has to know of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hms_bridge.model.catalog import ORC_INPUT_FORMAT, Storage, Table
from hms_bridge.model.properties import parameter
from hms_bridge.orc.hive_types import parse_hive_type
from hms_bridge.orc.types import OrcKind, OrcType
from hms_bridge.plans.requests import PlanError, Refusal

ORC, PARQUET, TEXT = "orc", "parquet", "text"
_FORMATS: Final = {
    ORC_INPUT_FORMAT: ORC,
    "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat": PARQUET,
    "org.apache.hadoop.mapred.TextInputFormat": TEXT,
}
_SERDES: Final = {
    PARQUET: "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    TEXT: "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
}
_COLLECTION_DELIM, _OLD_COLLECTION_DELIM = "collection.delim", "colelction.delim"
"""The second is the name before Hive 3, and in the SerDe that Spark brings."""
_NOT_OBEYED: Final = {
    ORC: (),
    PARQUET: ("parquet.column.index.access",),
    TEXT: ("skip.header.line.count", "skip.footer.line.count", "timestamp.formats"),
}
_OBEYED: Final = (
    "field.delim", "serialization.format", _COLLECTION_DELIM, "mapkey.delim", "escape.delim",
    "serialization.null.format", "serialization.last.column.takes.rest", "serialization.encoding",
    "serialization.escape.crlf", "hive.serialization.extend.nesting.levels",
    "hive.serialization.extend.additional.nesting.levels",
)  # fmt: skip
_TEXT_NAMES: Final = {
    OrcKind.BYTE: "tinyint",
    OrcKind.SHORT: "smallint",
    OrcKind.LONG: "bigint",
    OrcKind.DATE: "string",
    OrcKind.TIMESTAMP: "string",
    OrcKind.TIMESTAMP_INSTANT: "string",
}
_WHOLE_SUFFIXES = (".gz", ".deflate", ".bz2", ".snappy", ".lz4", ".lzo", ".zst", ".zstd")


def format_of(table: Table) -> str:
    """Raises PlanError for a format, or a setting of it, that is not read here."""
    storage = table.storage
    name = _FORMATS.get(storage.input_format or ORC_INPUT_FORMAT)
    if name is None or (name != ORC and not table.is_insert_only):
        files = _short(storage.input_format)
        raise _refused(table, f"has files of {files}, and {_readable(table)}")
    if name in _SERDES and storage.serde.library != _SERDES[name]:
        raise _refused(table, f"has rows of {_short(storage.serde.library)} in files of {name}")
    for setting in _NOT_OBEYED[name]:
        value = parameter(_settings(table, storage), setting)
        if value is not None and value.strip().lower() not in ("", "0", "false"):
            raise _refused(table, f"has {setting} = {value}, which is not obeyed here")
    return name


def require_alike(table: Table, partition: Storage) -> None:
    """Raises PlanError for a partition that is stored otherwise than its table."""
    own, name = table.storage, format_of(table)
    place = f"the partition at {partition.location}"
    if partition.input_format and partition.input_format != own.input_format:
        raise _refused(table, f"is of {name}, but {place} of {_short(partition.input_format)}")
    if name == ORC:
        return
    if partition.serde.library != own.serde.library or (
        name == TEXT and _obeyed(table, partition) != _obeyed(table, own)
    ):
        raise _refused(table, f"has other settings of its SerDe than {place}")
    for mine, other in zip(own.columns, partition.columns, strict=False):
        if mine.type.lower() != other.type.lower():
            raise _refused(
                table, f"has column {mine.name} as {mine.type}, but {place} as {other.type}"
            )
    if name == TEXT and len(partition.columns) < len(own.columns):
        raise _refused(
            table, f"has columns that {place} has not (ADD COLUMNS without CASCADE): they are NULL"
        )


def text_settings(table: Table) -> dict[str, str]:
    """What the SerDe of lines is started with; a date or a timestamp comes as its text."""
    kinds = [_text_type(parse_hive_type(column.type)) for column in table.storage.columns]
    return {
        **_obeyed(table, table.storage),
        "columns": ",".join(f"c{at}" for at in range(len(kinds))),
        "columns.types": ":".join(kinds),
    }


def _obeyed(table: Table, storage: Storage) -> dict[str, str]:
    settings = _settings(table, storage)
    obeyed = {name: value for name in _OBEYED if (value := parameter(settings, name)) is not None}
    delimiter = obeyed.pop(_COLLECTION_DELIM, None) or parameter(settings, _OLD_COLLECTION_DELIM)
    return obeyed if delimiter is None else {**obeyed, _OLD_COLLECTION_DELIM: delimiter}


def is_divisible(path: str) -> bool:
    """Whether ranges of a file can be read: not of what is compressed as a whole."""
    return not path.lower().endswith(_WHOLE_SUFFIXES)


def _settings(table: Table, storage: Storage) -> Mapping[str, str]:
    return {**table.parameters, **storage.serde.parameters}


def _text_type(node: OrcType) -> str:
    children = [_text_type(child) for child in node.children]
    match node.kind:
        case OrcKind.STRUCT:
            return f"struct<{','.join(f'f{at}:{kind}' for at, kind in enumerate(children))}>"
        case OrcKind.LIST:
            return f"array<{children[0]}>"
        case OrcKind.MAP:
            return f"map<{children[0]},{children[1]}>"
        case OrcKind.DECIMAL:
            return f"decimal({node.precision},{node.scale})"
        case OrcKind.CHAR | OrcKind.VARCHAR:
            return f"varchar({node.maximum_length})"
        case _:
            return _TEXT_NAMES.get(node.kind, node.kind.name.lower())


def _readable(table: Table) -> str:
    if table.is_insert_only:
        return "of insert-only tables only ORC, Parquet and text are read here"
    return "only ORC is read here"


def _short(name: str | None) -> str:
    return (name or "no format").rpartition(".")[2]


def _refused(table: Table, what: str) -> PlanError:
    return PlanError(Refusal.REFUSED, f"{table.full_name} {what}; read it with Hive or Trino")
