"""The six columns of an ACID file, and what its user metadata say about its rows.

Source of the rules: Hive's OrcRecordUpdater (docs/hive/acid.md §11, §15).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import pyarrow as pa

from hms_bridge.acid.row_id import RowId
from hms_bridge.errors import AcidFormatError
from hms_bridge.orc.types import OrcKind, OrcType, struct_type

OPERATION: Final = "operation"
ORIGINAL_WRITE_ID: Final = "originalTransaction"
BUCKET: Final = "bucket"
ROW_ID: Final = "rowId"
CURRENT_WRITE_ID: Final = "currentTransaction"
ROW: Final = "row"
ACID_COLUMNS: Final = (OPERATION, ORIGINAL_WRITE_ID, BUCKET, ROW_ID, CURRENT_WRITE_ID, ROW)
"""Names and order are part of the format; the case is not (query-based compaction lowers it)."""

EVENT_FIELDS: Final = (
    pa.field(OPERATION, pa.int32()),
    pa.field(ORIGINAL_WRITE_ID, pa.int64()),
    pa.field(BUCKET, pa.int32()),
    pa.field(ROW_ID, pa.int64()),
    pa.field(CURRENT_WRITE_ID, pa.int64()),
)
"""Arrow fields of an event, without its row."""

KEY_INDEX_METADATA: Final = "hive.acid.key.index"
STATS_METADATA: Final = "hive.acid.stats"
VERSION_METADATA: Final = "hive.acid.version"
ACID_VERSION: Final = b"2"

_INT = OrcType(kind=OrcKind.INT)
_LONG = OrcType(kind=OrcKind.LONG)


class Operation(IntEnum):
    """What an event does; the value is what the file stores."""

    INSERT = 0
    UPDATE = 1
    """Of tables before Hive 3 only; never written."""
    DELETE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class AcidLayout:
    """Where an ACID file has what: column ids."""

    operation: int
    original_write_id: int
    bucket: int
    row_id: int
    current_write_id: int
    row: int
    row_type: OrcType

    @property
    def key_ids(self) -> tuple[int, int, int]:
        """Of the columns of the key."""
        return (self.original_write_id, self.bucket, self.row_id)


def acid_layout(schema: OrcType) -> AcidLayout | None:
    """The layout of a file of this schema; None if it is no ACID file."""
    names = tuple(name.lower() for name in schema.names)
    if schema.kind is not OrcKind.STRUCT or sorted(names) != sorted(
        name.lower() for name in ACID_COLUMNS
    ):
        return None
    column_ids = dict(zip(names, schema.child_ids(), strict=True))
    row_type = schema.children[names.index(ROW)]
    if row_type.kind is not OrcKind.STRUCT:
        return None
    return AcidLayout(
        operation=column_ids[OPERATION],
        original_write_id=column_ids[ORIGINAL_WRITE_ID.lower()],
        bucket=column_ids[BUCKET],
        row_id=column_ids[ROW_ID.lower()],
        current_write_id=column_ids[CURRENT_WRITE_ID.lower()],
        row=column_ids[ROW],
        row_type=row_type,
    )


def rows_in(schema: OrcType) -> OrcType:
    """The type of a file's rows: the schema itself, but for an ACID file."""
    layout = acid_layout(schema)
    return schema if layout is None else layout.row_type


def acid_schema(row_type: OrcType) -> OrcType:
    """The schema of an ACID file with rows of this type."""
    return struct_type(ACID_COLUMNS, (_INT, _LONG, _INT, _LONG, _LONG, row_type))


def parse_key_index(value: bytes, path: str = "") -> tuple[RowId, ...]:
    """The last key of every stripe, from `writeId,bucket,rowId;` texts."""
    try:
        return tuple(
            RowId._make(int(number) for number in entry.split(","))
            for entry in value.decode().split(";")
            if entry
        )
    except (ValueError, TypeError) as error:
        raise AcidFormatError(f"key index {value[:100]!r} is malformed", path) from error


def format_key_index(keys: Sequence[RowId]) -> bytes:
    """The text that `parse_key_index` reads."""
    return "".join(f"{key.write_id},{key.bucket},{key.row_id};" for key in keys).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class AcidStats:
    """How many events of each kind a file has."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0

    @staticmethod
    def parse(value: bytes, path: str = "") -> AcidStats:
        """Read `inserts,updates,deletes`. Raises AcidFormatError, naming ``path``."""
        try:
            inserts, updates, deletes = (int(number) for number in value.decode().split(","))
        except ValueError as error:
            raise AcidFormatError(f"event counts {value[:100]!r} are malformed", path) from error
        return AcidStats(inserts=inserts, updates=updates, deletes=deletes)

    def format(self) -> bytes:
        """The text that `parse` reads."""
        return f"{self.inserts},{self.updates},{self.deletes}".encode()

    def plus(self, other: AcidStats) -> AcidStats:
        """The counts of both together."""
        return AcidStats(
            inserts=self.inserts + other.inserts,
            updates=self.updates + other.updates,
            deletes=self.deletes + other.deletes,
        )
