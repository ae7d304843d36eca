"""The delete events that a snapshot sees, loaded stripe by stripe as the rows they hit come by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from changemanager.filesystem.volume import Volume
from hms_bridge.acid.row_id import RowId
from hms_bridge.errors import AcidFormatError
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.orc.acid_reader import OrcFile, open_orc_file
from hms_bridge.rows.keys import (
    Keys,
    concat_keys,
    filter_keys,
    is_valid_mask,
    key_at,
    keys_between,
    sort_keys,
)
from hms_bridge.snapshot.plan import ReadFile

_INT64_MAX = 2**63 - 1


@dataclass(slots=True)
class _DeleteStripe:
    """Victims of one stripe; `lowest` and `highest` bound their write ids until they are loaded."""

    lowest: int
    highest: int
    keys: Keys | None = None
    is_passed: bool = False


@dataclass(slots=True)
class _DeleteFile:
    file: ReadFile
    stripes: list[_DeleteStripe] = field(default_factory=list)


class DeleteEvents:
    """Delete events of any files, asked by ascending ranges of keys.

    Memory: the keys of those stripes that overlap the range asked for. A file's tail is read once;
    the file is opened again for those of its stripes that matter.
    """

    def __init__(self, volume: Volume, write_ids: ValidWriteIdList) -> None:
        self._volume = volume
        self._write_ids = write_ids
        self._files: dict[str, _DeleteFile] = {}
        self._asked = RowId(0, 0, 0)

    def victims(self, files: Sequence[ReadFile], first: RowId, last: RowId) -> Keys | None:
        """Keys of all victims of the files from `first` to `last`; None if there are none.

        Stripes that end below `first` are forgotten and loaded again when asked for later: ask in
        ascending order.
        """
        if first < self._asked:
            self._rewind()
        self._asked = first
        rows = []
        for file in files:
            if file.path not in self._files:
                self._files[file.path] = self._open(file)
            delete_file = self._files[file.path]
            due = _due(delete_file.stripes, first, last)
            if any(stripe.keys is None for stripe in due):
                self._load(delete_file, due)
            for stripe in due:
                keys = stripe.keys
                if keys is None:
                    continue
                # Bounds are of write ids alone: only the keys show that it ends below the range.
                if not len(keys[0]) or key_at(keys, -1) < first:
                    stripe.keys, stripe.is_passed = None, True
                    continue
                between = keys_between(keys, first, last)
                if len(between[0]):
                    rows.append(between)
        return concat_keys(rows) if rows else None

    def _rewind(self) -> None:
        for delete_file in self._files.values():
            for stripe in delete_file.stripes:
                stripe.is_passed = False

    def _open(self, file: ReadFile) -> _DeleteFile:
        with open_orc_file(self._volume, file.path) as opened:
            layout = opened.require_layout()
            statistics = opened.tail.stripe_statistics()
            stripes = []
            for number in range(opened.stripe_count):
                # Without statistics a stripe may hold any key, and is read whenever one is asked.
                lowest, highest = 0, _INT64_MAX
                if len(statistics) == opened.stripe_count:
                    column = statistics[number].column_statistics[layout.original_write_id]
                    bounds = column.int_statistics
                    if bounds.HasField("minimum") and bounds.HasField("maximum"):
                        lowest, highest = bounds.minimum, bounds.maximum
                stripes.append(_DeleteStripe(lowest, highest))
        return _DeleteFile(file, stripes)

    def _load(self, delete_file: _DeleteFile, due: Sequence[_DeleteStripe]) -> None:
        with open_orc_file(self._volume, delete_file.file.path) as opened:
            if opened.stripe_count != len(delete_file.stripes):
                raise AcidFormatError("the file changed while it was read", delete_file.file.path)
            for number, stripe in enumerate(delete_file.stripes):
                if stripe.keys is None and any(stripe is due_stripe for due_stripe in due):
                    stripe.keys = self._read(opened, number, delete_file.file)

    def _read(self, opened: OrcFile, number: int, file: ReadFile) -> Keys:
        events = opened.read_keys(number)
        write_ids, buckets, row_ids, current = events.columns
        keys = (write_ids, buckets, row_ids)
        mask = is_valid_mask(current, self._write_ids) if file.is_filtered else None
        return sort_keys(keys if mask is None else filter_keys(keys, mask))


def _due(stripes: Sequence[_DeleteStripe], first: RowId, last: RowId) -> list[_DeleteStripe]:
    """The stripes that may hold keys of the range; those that end below it are forgotten."""
    due = []
    for stripe in stripes:
        if stripe.highest < first.write_id:
            stripe.keys, stripe.is_passed = None, True
        elif not stripe.is_passed and stripe.lowest <= last.write_id:
            due.append(stripe)
    return due
