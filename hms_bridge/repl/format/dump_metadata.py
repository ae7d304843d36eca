"""`_dumpmetadata`: kind of a dump or of one of its events, event range, archive, payload.

One line of tab-separated columns, then (at the top of a dump) a line with the policy's scope.
Hive 4 writes seven columns and needs six; Hive 3.1 wrote five, without the execution id
(DumpMetaData; docs/hive/replication.md §11).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hms_bridge.errors import ReplError
from hms_bridge.model.ids import EventId
from hms_bridge.model.repl_scope import ReplScope

_NULL = "NULL"
_COLUMNS = 7
_COLUMNS_OF_HIVE_3 = 5


class DumpType(StrEnum):
    """Kinds of dumps and of dumped events; the text stands in the first column."""

    BOOTSTRAP = "BOOTSTRAP"
    INCREMENTAL = "INCREMENTAL"
    OPEN_TXN = "EVENT_OPEN_TXN"
    ALLOC_WRITE_ID = "EVENT_ALLOC_WRITE_ID"
    COMMIT_TXN = "EVENT_COMMIT_TXN"
    ABORT_TXN = "EVENT_ABORT_TXN"
    CREATE_DATABASE = "EVENT_CREATE_DATABASE"
    ALTER_DATABASE = "EVENT_ALTER_DATABASE"
    DROP_DATABASE = "EVENT_DROP_DATABASE"
    CREATE_FUNCTION = "EVENT_CREATE_FUNCTION"
    DROP_FUNCTION = "EVENT_DROP_FUNCTION"
    ADD_PRIMARY_KEY = "EVENT_ADD_PRIMARYKEY"
    ADD_FOREIGN_KEY = "EVENT_ADD_FOREIGNKEY"
    ADD_UNIQUE = "EVENT_ADD_UNIQUECONSTRAINT"
    ADD_NOT_NULL = "EVENT_ADD_NOTNULLCONSTRAINT"
    ADD_DEFAULT = "EVENT_ADD_DEFAULTCONSTRAINT"
    ADD_CHECK = "EVENT_ADD_CHECKCONSTRAINT"
    DROP_CONSTRAINT = "EVENT_DROP_CONSTRAINT"
    CREATE_TABLE = "EVENT_CREATE_TABLE"
    ALTER_TABLE = "EVENT_ALTER_TABLE"
    RENAME_TABLE = "EVENT_RENAME_TABLE"
    RENAME_DROP_TABLE = "EVENT_RENAME_DROP_TABLE"
    TRUNCATE_TABLE = "EVENT_TRUNCATE_TABLE"
    DROP_TABLE = "EVENT_DROP_TABLE"
    ADD_PARTITION = "EVENT_ADD_PARTITION"
    ALTER_PARTITION = "EVENT_ALTER_PARTITION"
    RENAME_PARTITION = "EVENT_RENAME_PARTITION"
    TRUNCATE_PARTITION = "EVENT_TRUNCATE_PARTITION"
    DROP_PARTITION = "EVENT_DROP_PARTITION"
    INSERT = "EVENT_INSERT"
    UNKNOWN = "EVENT_UNKNOWN"


@dataclass(frozen=True, kw_only=True, slots=True)
class DumpMetadata:
    """One `_dumpmetadata` file.

    ``type`` is text, so that kinds of other versions pass through. A bootstrap dump is replayed
    from ``from_event_id`` on, an incremental one has the events after it, up to ``to_event_id``;
    an event has its own id in both.
    """

    type: str
    from_event_id: EventId
    to_event_id: EventId
    cm_root: str | None = None
    execution_id: int = 0
    payload: str | None = None
    is_scope_modified: bool = False
    scope: ReplScope | None = None

    @property
    def last_event_id(self) -> EventId:
        """The source event that a target stands at once this dump is loaded."""
        if self.type == DumpType.BOOTSTRAP.value:
            return self.from_event_id
        return self.to_event_id

    def format(self) -> str:
        """The file's text, with seven columns. Raises ReplError if a text cannot stand in one."""
        columns = [
            self.type,
            str(self.from_event_id),
            str(self.to_event_id),
            _column(self.cm_root),
            str(self.execution_id),
            _column(self.payload),
            "true" if self.is_scope_modified else "false",
        ]
        lines = ["\t".join(columns)]
        if self.scope is not None:
            lines.append("\t".join(_scope_columns(self.scope)))
        return "".join(f"{line}\n" for line in lines)

    @classmethod
    def parse(cls, text: str, path: str = "_dumpmetadata") -> DumpMetadata:
        """Read the file's text. Raises ReplError, naming ``path``, if it is malformed."""
        lines = text.split("\n")
        columns = lines[0].split("\t", _COLUMNS - 1)
        if len(columns) < _COLUMNS_OF_HIVE_3:
            raise ReplError(
                f"{path}: {len(columns)} columns where a dump has {_COLUMNS_OF_HIVE_3} to "
                f"{_COLUMNS}; it is damaged or no dump: dump again"
            )
        is_hive_3 = len(columns) == _COLUMNS_OF_HIVE_3
        return cls(
            type=columns[0],
            from_event_id=EventId(_number(columns[1], path)),
            to_event_id=EventId(_number(columns[2], path)),
            cm_root=_text(columns[3]),
            execution_id=0 if is_hive_3 or columns[4] == _NULL else _number(columns[4], path),
            payload=_text(columns[4 if is_hive_3 else 5]),
            is_scope_modified=len(columns) == _COLUMNS and columns[6].lower() == "true",
            scope=_parse_scope(lines[1], path) if len(lines) > 1 and lines[1] else None,
        )


def _column(text: str | None) -> str:
    if text is None:
        return _NULL
    if "\t" in text or "\n" in text or "\r" in text:
        raise ReplError(f"a tab or line end cannot stand in a column of _dumpmetadata: {text!r}")
    return text


def _text(column: str) -> str | None:
    return None if column == _NULL else column


def _number(column: str, path: str) -> int:
    try:
        return int(column)
    except ValueError:
        raise ReplError(
            f"{path}: {column!r} stands where a number is due; it is damaged: dump again"
        ) from None


def _scope_columns(scope: ReplScope) -> list[str]:
    columns = [_column(scope.database_name)]
    if scope.included_pattern is not None:
        columns.append(_column(scope.included_pattern))
        if scope.excluded_pattern is not None:
            columns.append(_column(scope.excluded_pattern))
    return columns


def _parse_scope(line: str, path: str) -> ReplScope:
    names = line.split("\t")
    if len(names) > 3:
        raise ReplError(f"{path}: the policy has {len(names)} parts where Hive writes up to three")
    return ReplScope(
        database_name=names[0].lower(),
        included_pattern=names[1] if len(names) > 1 else None,
        excluded_pattern=names[2] if len(names) > 2 else None,
    )
