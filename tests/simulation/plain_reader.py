"""Rows of an ACID directory, read by Hive's rules and by nothing of the product.

Source of the rules: AcidUtils.getAcidState, OrcRawRecordMerger (docs/hive/acid.md §5, §6, §7, §16
and §17). Files are decoded by pyarrow.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from pyarrow import orc

from tests.simulation.disk import Directory, File

RowId = tuple[int, int, int]
"""Write id, bucket property, row number."""
Row = tuple[object, ...]
"""Values by the places of their columns, without nulls at the end: a column that was added later
changes no row."""
Rows = dict[RowId, Row]


class CutRow(tuple[object, ...]):
    """A row with values in columns that the catalog lost: it equals every row that begins with the
    `width` values that are left of it. The others may be in its file until a compaction writes the
    row anew, so nobody is promised that they show again, or do not, if a column comes there."""

    width: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple) and tuple(self) == tuple(trimmed(other[: self.width]))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(tuple(self))


def cut_rows(rows: Rows, width: int) -> Rows:
    """What a table of so many columns has of rows; the same dictionary if that is all of it."""
    if all(len(row) <= width for row in rows.values()):
        return rows
    return {key: row if len(row) <= width else _cut(row, width) for key, row in rows.items()}


def _cut(row: Row, width: int) -> CutRow:
    cut = CutRow(trimmed(row[:width]))
    cut.width = width
    return cut


_BASE = re.compile(r"base_(\d+)(?:_v(\d+))?")
_DELTA = re.compile(r"(delete_delta|delta)_(\d+)_(\d+)(?:_(\d+))?(?:_v(\d+))?")
_EVENT_COLUMNS = 5
_FIRST_GREGORIAN = date(1582, 10, 15)


class BrokenTableError(Exception):
    """What is on disk cannot be a table's content."""


@dataclass(frozen=True)
class View:
    """What one snapshot may see of a table. Transactions count for `_v` names only."""

    open: frozenset[int]
    aborted: frozenset[int]
    highest: int
    hidden_txns: frozenset[int]
    txn_highest: int

    def sees(self, write_id: int) -> bool:
        return write_id <= self.highest and write_id not in self.open | self.aborted

    def sees_txn(self, txn_id: int) -> bool:
        return txn_id not in self.hidden_txns and txn_id <= self.txn_highest

    def is_settled(self, write_id: int) -> bool:
        """Whether nothing up to a write id can be committed later."""
        return write_id <= self.highest and not any(one <= write_id for one in self.open)


@dataclass(frozen=True, order=True)
class _Delta:
    low: int
    minus_high: int
    statement: int
    minus_txn: int
    name: str
    is_delete: bool = field(compare=False)

    @property
    def high(self) -> int:
        return -self.minus_high

    @property
    def span(self) -> tuple[int, int, int]:
        return self.low, self.minus_high, self.statement


def read_rows(directory: Directory | None, view: View) -> Rows:
    """The rows that a snapshot sees in a table's or partition's directory."""
    if directory is None:
        return {}
    base, base_name = _best_base(directory, view)
    names = _sweep(directory, view, base)
    found: Rows = {}
    deleted: set[RowId] = set()
    for name in [base_name] if base_name else []:
        _take(directory, name, view, found, deleted)
    for delta in names:
        _take(directory, delta.name, view, found, deleted)
    for victim in deleted:
        found.pop(victim, None)
    return found


def _best_base(directory: Directory, view: View) -> tuple[int, str]:
    best = (0, 0, "")
    for name, node in directory.names.items():
        match = _BASE.fullmatch(name)
        if match is None or not isinstance(node, Directory):
            continue
        number, txn = int(match[1]), int(match[2] or 0)
        is_compacted = bool(txn) or _is_said_to_be_compacted(node)
        usable = view.is_settled(number) if is_compacted else view.sees(number)
        if view.sees_txn(txn) and usable:
            best = max(best, (number, txn, name))
    return best[0], best[2]


def _is_said_to_be_compacted(base: Directory) -> bool:
    """And not written by TRUNCATE or DROP, whose bases are seen as any writer's."""
    said = base.names.get("_metadata_acid")
    return isinstance(said, File) and b'"compacted"' in said.data


def _sweep(directory: Directory, view: View, base: int) -> list[_Delta]:
    found = []
    for name, node in directory.names.items():
        match = _DELTA.fullmatch(name)
        if match is None or not isinstance(node, Directory):
            continue
        txn = int(match[5] or 0)
        low, high = int(match[2]), int(match[3])
        statement = -1 if match[4] is None else int(match[4])
        if view.sees_txn(txn) and any(view.sees(one) for one in range(low, high + 1)):
            is_delete = match[1] == "delete_delta"
            found.append(_Delta(low, -high, statement, -txn, name, is_delete))
    used: list[_Delta] = []
    reached, last = base, None
    for delta in sorted(found):
        if delta.high > reached:
            if any(view.sees(one) for one in range(reached + 1, delta.high + 1)):
                used.append(delta)
                reached, last = delta.high, delta
        elif last is not None and _is_beside(delta, last, used):
            used.append(delta)
    return used


def _is_beside(delta: _Delta, last: _Delta, used: list[_Delta]) -> bool:
    """Another statement of one transaction, or the other half of one compaction."""
    if any(one.span == delta.span and one.is_delete == delta.is_delete for one in used):
        return False
    if delta.high == last.high and last.statement >= 0:
        return True
    return delta.span == last.span and delta.is_delete != last.is_delete


_DECODED: dict[bytes, list[tuple[int, int, RowId, Row | None]]] = {}


def events_of(data: bytes) -> list[tuple[int, int, RowId, Row | None]]:
    """Operation, current write id, row id and row of each event of a file; remembered by bytes."""
    if data not in _DECODED:
        if len(_DECODED) > 20_000:
            _DECODED.clear()
        try:
            table = orc.ORCFile(io.BytesIO(data)).read()
        except Exception as error:
            raise BrokenTableError(f"a file of {len(data)} bytes is no ORC file: {error}") from None
        columns = [column.to_pylist() for column in table.columns]
        if len(columns) != _EVENT_COLUMNS + 1:
            raise BrokenTableError(f"a file has {len(columns)} columns")
        _DECODED[data] = [
            (kind, current, (write, bucket, number), _row(row))
            for kind, write, bucket, number, current, row in zip(*columns, strict=True)
        ]
    return _DECODED[data]


def trimmed(values: Iterable[object]) -> Row:
    """A row of these values."""
    found = list(values)
    while found and found[-1] is None:
        del found[-1]
    return tuple(found)


def _row(row: Mapping[str, object] | None) -> Row | None:
    return trimmed(map(_as_written, row.values())) if row else None


def _as_written(value: object) -> object:
    """Days before 1582-10-15 are those of the Julian calendar, which pyarrow does not know: in the
    16th century it shows them ten days late (docs/hive/acid.md §21)."""
    if isinstance(value, date) and not isinstance(value, datetime) and value < _FIRST_GREGORIAN:
        return value - timedelta(days=10)
    return value


def _take(directory: Directory, name: str, view: View, found: Rows, deleted: set[RowId]) -> None:
    place = directory.names[name]
    assert isinstance(place, Directory)
    for file_name, file in _buckets(place):
        try:
            events = events_of(file.data)
        except BrokenTableError as error:
            raise BrokenTableError(f"{name}/{file_name}: {error}") from None
        for kind, current, row_id, row in events:
            if not view.sees(current):
                continue
            if kind == 2 or row is None:
                deleted.add(row_id)
            elif row_id in found:
                raise BrokenTableError(f"{name}/{file_name} has row {row_id} a second time")
            else:
                found[row_id] = row


def _buckets(directory: Directory) -> Iterable[tuple[str, File]]:
    return (
        (name, node)
        for name, node in sorted(directory.names.items())
        if isinstance(node, File) and name.startswith("bucket_")
    )
