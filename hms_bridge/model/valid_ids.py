"""Which transactions and which write ids a snapshot may see, in Hive's own texts.

Source of the rules: Hive's ValidReadTxnList, ValidReaderWriteIdList, ValidCompactorWriteIdList
(docs/hive/transactions.md §1, §2).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Generic, TypeVar

from hms_bridge.errors import MetaError
from hms_bridge.model.id_ranges import IdRanges
from hms_bridge.model.ids import MAX_ID, NO_TXN, TxnId, WriteId
from hms_bridge.model.shortened import shortened

IdT = TypeVar("IdT", bound=int)


class RangeResponse(Enum):
    """How many ids of a range fulfil a condition."""

    NONE = "none"
    SOME = "some"
    ALL = "all"


class WriteIdView(Enum):
    """Whose eyes a write-id list is for; decides how ranges that straddle its end are judged."""

    READER = "reader"
    COMPACTOR = "compactor"
    CLEANER = "cleaner"


@dataclass(frozen=True, slots=True, kw_only=True)
class _ValidIds(Generic[IdT]):
    """The ids that a snapshot sees: up to the high watermark, without the exceptions.

    `min_open` is the lowest open id, MAX_ID if none. Ids are kept sorted and unique; an id that is
    called both open and aborted counts as open. Aborted ids may lie above the high watermark (they
    are final whatever the snapshot).
    """

    high_watermark: IdT
    min_open: IdT = MAX_ID  # type: ignore[assignment]
    open_ids: Sequence[IdT] = ()
    aborted_ids: Sequence[IdT] = ()

    def __post_init__(self) -> None:
        if isinstance(self.open_ids, IdRanges) and isinstance(self.aborted_ids, IdRanges):
            if self.open_ids:
                object.__setattr__(self, "min_open", min(self.min_open, self.open_ids[0]))
            return
        # Hive's arrays may carry a stray 0, which is no id.
        opened = set(self.open_ids) - {0}
        aborted = set(self.aborted_ids) - {0} - opened
        object.__setattr__(self, "open_ids", tuple(sorted(opened)))
        object.__setattr__(self, "aborted_ids", tuple(sorted(aborted)))
        if opened:
            object.__setattr__(self, "min_open", min(self.min_open, self.open_ids[0]))

    def is_valid(self, number: IdT) -> bool:
        """Whether the snapshot sees it. 0 always is seen: no transaction, or rows from before the
        table was ACID."""
        return number == 0 or (
            number <= self.high_watermark
            and not self.is_open(number)
            and not self.is_aborted(number)
        )

    def is_open(self, number: IdT) -> bool:
        """Whether it is listed as open."""
        return _contains(self.open_ids, number)

    def is_aborted(self, number: IdT) -> bool:
        """Whether it is listed as aborted."""
        return _contains(self.aborted_ids, number) and not self.is_open(number)

    def members(self) -> tuple[Container[IdT], Container[IdT]]:
        """Open and aborted ids for thousands of looks; an id may stand in both, and is open then.
        Sets answer sooner than :meth:`is_open`."""
        opened, aborted = (
            ids if isinstance(ids, IdRanges) else frozenset(ids)
            for ids in (self.open_ids, self.aborted_ids)
        )
        return opened, aborted

    def _numbers(self) -> str:
        opened, aborted = (",".join(map(str, ids)) for ids in (self.open_ids, self.aborted_ids))
        return f"{self.high_watermark}:{self.min_open}:{opened}:{aborted}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidTxnList(_ValidIds[TxnId]):
    """The transactions that a snapshot sees."""

    @classmethod
    def everything(cls) -> ValidTxnList:
        """The list that finds every transaction valid."""
        return cls(high_watermark=TxnId(MAX_ID))

    @classmethod
    def parse(cls, text: str | None) -> ValidTxnList:
        """Read `hwm:minOpen:open,..:aborted,..`; the lists may be absent, no text is all valid.

        Five ids in a row or more may be a range, as ValidReadTxnList of storage-api 2.8.1 and
        later writes them: `20:2:2-6:9,11-17` (docs/hive/transactions.md §1). Ranges are not
        expanded. Raises MetaError if a part is neither number nor range, or a number lacks.
        """
        if not text:
            return cls.everything()
        parts = text.split(":")
        if not any("-" in part for part in parts[2:4]):
            return cls(**_numbers(text, parts))
        opened, aborted = (_ranges(text, part) for part in (*parts[2:4], "")[:2])
        ends = _numbers(text, parts[:2])
        return cls(**ends | {"open_ids": opened, "aborted_ids": aborted})

    def format(self) -> str:
        """``highest:lowest open:open ids:aborted ids``, as ValidReadTxnList writes it."""
        return self._numbers()

    def with_open(self, *txn_ids: TxnId) -> ValidTxnList:
        """The same list with these transactions open.

        A compactor's own transaction must be among them, or it reads its own unfinished output.
        """
        return replace(self, open_ids=(*self.open_ids, *txn_ids))

    def cleaner_view(
        self, oldest_reader: TxnId | None, not_seen: Iterable[TxnId] = ()
    ) -> ValidTxnList:
        """What every reader sees: nothing at or above the oldest open transaction that may read.

        `oldest_reader` None: no transaction that may read is open. `not_seen`: transactions below
        it that ended after it began, so that it may still count them as open (they are committed
        now, but not for everyone).
        """
        high_watermark = self.high_watermark
        if oldest_reader is not None:
            high_watermark = min(high_watermark, TxnId(oldest_reader - 1))
        return replace(
            self, high_watermark=high_watermark, open_ids=(*self.open_ids, *tuple(not_seen))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidWriteIdList(_ValidIds[WriteId]):
    """The write ids of one table that a snapshot sees. `table` is `db.table`, None if unknown."""

    table: str | None
    open_ids: tuple[WriteId, ...] = ()
    aborted_ids: tuple[WriteId, ...] = ()
    view: WriteIdView = WriteIdView.READER

    @classmethod
    def everything(cls, table: str | None = None) -> ValidWriteIdList:
        """The list that finds every write id valid."""
        return cls(table=table, high_watermark=WriteId(MAX_ID))

    @classmethod
    def parse(cls, text: str | None) -> ValidWriteIdList:
        """Read `db.table:hwm:minOpen:open,..:aborted,..`; no text is all valid.

        ValidReaderWriteIdList neither writes nor reads ranges. Raises MetaError if a part is no
        number, or the high watermark or the lowest open id lacks.
        """
        if not text:
            return cls.everything()
        parts = text.split(":")
        table = None if parts[0].lower() in ("", "null") else parts[0]
        return cls(table=table, **_numbers(text, parts[1:]))

    def format(self) -> str:
        """``db.table:`` and the numbers, as ValidReaderWriteIdList writes it."""
        return f"{self.table or 'null'}:{self._numbers()}"

    def is_base_valid(self, write_id: WriteId) -> bool:
        """Whether a compacted base of this number holds nothing that the snapshot must not see.

        Strictly below the lowest open id: a base that ends at an open id would show its rows
        (docs/hive/acid.md §5).
        """
        return write_id < self.min_open and write_id <= self.high_watermark

    def range_valid(self, min_write_id: WriteId, max_write_id: WriteId) -> RangeResponse:
        """How many ids of the range (both ends included) are seen.

        Compactor and cleaner never see a range that goes beyond their high watermark.
        """
        if min_write_id > self.high_watermark:
            return RangeResponse.NONE
        if self.view is not WriteIdView.READER and max_write_id > self.high_watermark:
            return RangeResponse.NONE
        if self.view is WriteIdView.COMPACTOR:
            return RangeResponse.ALL
        end = min(max_write_id, self.high_watermark)
        invalid = (
            (max_write_id - end)
            + _count(self.open_ids, min_write_id, end)
            + _count(self.aborted_ids, min_write_id, end)
        )
        return _response(max_write_id - min_write_id + 1 - invalid, max_write_id, min_write_id)

    def range_aborted(self, min_write_id: WriteId, max_write_id: WriteId) -> RangeResponse:
        """How many ids of the range (both ends included) are aborted."""
        aborted = _count(self.aborted_ids, min_write_id, max_write_id)
        return _response(aborted, max_write_id, min_write_id)

    def aborted_between(self, min_write_id: WriteId, max_write_id: WriteId) -> tuple[WriteId, ...]:
        """The aborted ids of the range, both ends included."""
        ids = self.aborted_ids
        return ids[bisect_left(ids, min_write_id) : bisect_right(ids, max_write_id)]

    def has_open_between(self, min_write_id: WriteId, max_write_id: WriteId) -> bool:
        """Whether an open id lies in the range, both ends included."""
        return _count(self.open_ids, min_write_id, max_write_id) > 0

    def compactor_view(self) -> ValidWriteIdList:
        """What may be compacted: everything below the lowest open id, aborted rows dropped.

        Hive: TxnUtils.createValidCompactWriteIdList.
        """
        end = min(self.high_watermark, WriteId(self.min_open - 1))
        return replace(
            self,
            high_watermark=end,
            open_ids=(),
            aborted_ids=tuple(write_id for write_id in self.aborted_ids if write_id <= end),
            view=WriteIdView.COMPACTOR,
        )

    def cleaner_view(self, highest_write_id: WriteId | None = None) -> ValidWriteIdList:
        """What a cleaner may judge: up to the compaction's highest write id, below any open id.

        None caps at the lowest open id alone. Open and aborted ids stay as they are.
        """
        end = min(self.high_watermark, WriteId(self.min_open - 1))
        if highest_write_id is not None:
            end = min(end, highest_write_id)
        return replace(self, high_watermark=end, view=WriteIdView.CLEANER)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidTxnWriteIdList:
    """The write-id lists of several tables under one transaction's snapshot."""

    txn_id: TxnId
    lists: tuple[ValidWriteIdList, ...] = ()

    @classmethod
    def parse(cls, text: str) -> ValidTxnWriteIdList:
        """Read `txnId$list$list…`. Raises MetaError if the first part is no number."""
        first, *others = text.split("$")
        return cls(
            txn_id=TxnId(_number(text, first)) if text else NO_TXN,
            lists=tuple(ValidWriteIdList.parse(part) for part in others if part),
        )

    def format(self) -> str:
        """Transaction id and lists, joined by ``$``, as ValidTxnWriteIdList writes it."""
        return "$".join([str(self.txn_id), *(write_ids.format() for write_ids in self.lists)])

    def of(self, table: str) -> ValidWriteIdList | None:
        """The list of a table, given as `db.table`; of several the last, as for Hive."""
        of_table = (write_ids for write_ids in reversed(self.lists) if write_ids.table == table)
        return next(of_table, None)


_SHOWN_MAX = 200
_ONE = r"[+-]?\d+"
_NUMBER = re.compile(_ONE)
_LIST = re.compile(rf"(?:{_ONE}(?:,{_ONE})*)?,*")
_ONE_OR_RANGE = rf"(?:{_ONE}|\+?\d+-\+?\d+)"
_RANGES = re.compile(rf"(?:{_ONE_OR_RANGE}(?:,{_ONE_OR_RANGE})*)?,*")
"""Numbers as Java's Long.parseLong takes them; split() there forgets commas at the end."""


def _numbers(text: str, parts: Sequence[str]) -> dict[str, Any]:
    """What stands between the colons of an id list; its lists may be absent, but not its ends:
    Hive writes both always, and without them everything would be seen."""
    highest, lowest_open, opened, aborted = (*parts[:4], *[""] * (4 - len(parts[:4])))
    return {
        "high_watermark": _number(text, highest),
        "min_open": _number(text, lowest_open),
        "open_ids": _several(text, opened),
        "aborted_ids": _several(text, aborted),
    }


def _number(text: str, part: str) -> int:
    if not _NUMBER.fullmatch(part):
        raise _malformed(text)
    return _several(text, part)[0]


def _several(text: str, part: str) -> tuple[int, ...]:
    try:
        return _within(tuple(map(int, _items(part, _LIST))))
    except ValueError as error:
        raise _malformed(text) from error


def _ranges(text: str, part: str) -> IdRanges[TxnId]:
    pairs = []
    try:
        for item in _items(part, _RANGES):
            first, _, last = item.rpartition("-")
            # "7" is no range, nor is the "-1" of a Hive whose array began with a 0.
            pairs.append((int(first or item), int(last if first else item)))
        _within([end for pair in pairs for end in pair])
    except ValueError as error:
        raise _malformed(text) from error
    return IdRanges.of(pairs)


def _items(part: str, shape: re.Pattern[str]) -> list[str]:
    if not shape.fullmatch(part):
        raise ValueError("no list of numbers")
    items = part.rstrip(",")
    return items.split(",") if items else []


_Ids = TypeVar("_Ids", bound=Sequence[int])


def _within(ids: _Ids) -> _Ids:
    if ids and not -MAX_ID <= min(ids) <= max(ids) <= MAX_ID:
        raise ValueError("no database holds such a number")
    return ids


def _malformed(text: str) -> MetaError:
    # It may have a hundred thousand ids.
    return MetaError(
        f"id list {shortened(text, _SHOWN_MAX)!r} is malformed; it should be numbers, as in"
        " hwm:minOpen:open,open:aborted,aborted, or ranges of transactions, as in 20:2:2-6:"
    )


def _contains(ids: Sequence[int], wanted: int) -> bool:
    index = bisect_left(ids, wanted)
    return index < len(ids) and ids[index] == wanted


def _count(ids: Sequence[int], first: int, last: int) -> int:
    return max(0, bisect_right(ids, last) - bisect_left(ids, first))


def _response(count: int, last: int, first: int) -> RangeResponse:
    if count <= 0:
        return RangeResponse.NONE
    return RangeResponse.ALL if count == last - first + 1 else RangeResponse.SOME
