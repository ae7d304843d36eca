"""Reads ORC files of a table: events of ACID files, rows of files from before ACID."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, Final

import pyarrow as pa

from changemanager.filesystem.volume import Volume
from hms_bridge.errors import AcidFormatError
from hms_bridge.orc.acid_layout import EVENT_FIELDS, ROW, AcidLayout, acid_layout
from hms_bridge.orc.nesting import bare_children
from hms_bridge.orc.stripe_reader import OrcStripeReader, ReadForm
from hms_bridge.orc.tail import OrcTail, read_tail, tail_of_file

_DEFAULT_FORM: Final = ReadForm()


class OrcFile:
    """One open ORC file. Memory of a read: one decoded stripe."""

    def __init__(self, file: BinaryIO, tail: OrcTail, form: ReadForm) -> None:
        self.tail = tail
        self.layout = acid_layout(tail.schema)
        self._file = file
        self._stripes = OrcStripeReader(file, tail, form)

    def read_as(self, form: ReadForm) -> OrcFile:
        """The same file, with values in another form."""
        return OrcFile(self._file, self.tail, form)

    @property
    def stripe_count(self) -> int:
        """How many stripes there are."""
        return len(self.tail.stripes)

    def read_rows(self, stripe: int, columns: Sequence[int] | None = None) -> pa.StructArray:
        """The rows of a stripe of a file without ACID columns: a struct of the chosen columns.

        `columns` are places among the file's columns, ascending; None: all.
        """
        wanted = None if columns is None else _ids_at(self.tail.schema.child_ids(), columns)
        return self._stripes.read_stripe(stripe, wanted)

    def read_events(self, stripe: int, columns: Sequence[int] | None = None) -> pa.RecordBatch:
        """The events of a stripe of an ACID file.

        Columns: EVENT_FIELDS, then `row`, a struct of the chosen columns (places among the row's,
        ascending; None: all); without columns there is no `row`. Raises AcidFormatError if the
        file has no ACID columns.
        """
        layout = self.require_layout()
        row_ids: Collection[int] = (layout.row,)
        if columns is not None:
            row_ids = _ids_at(layout.row_type.child_ids(layout.row), columns)
        ids = (layout.operation, *layout.key_ids, layout.current_write_id)
        arrays = self._read_columns(stripe, ids, row_ids)
        fields = list(EVENT_FIELDS)
        if row_ids:
            fields.append(pa.field(ROW, arrays[-1].type))
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def read_keys(self, stripe: int) -> pa.RecordBatch:
        """Key and current write id of the events of a stripe: EVENT_FIELDS without the first."""
        layout = self.require_layout()
        arrays = self._read_columns(stripe, (*layout.key_ids, layout.current_write_id), ())
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(EVENT_FIELDS[1:]))

    def require_layout(self) -> AcidLayout:
        """The file's ACID columns; raises AcidFormatError if it has none."""
        if self.layout is None:
            raise AcidFormatError("the file has no ACID columns", self.tail.path)
        return self.layout

    def _read_columns(
        self, stripe: int, ids: Sequence[int], row_ids: Collection[int]
    ) -> list[pa.Array]:
        struct = self._stripes.read_stripe(stripe, {*ids, *row_ids})
        present = [column for column in self.tail.schema.child_ids() if column in ids]
        if row_ids:
            layout = self.require_layout()
            present = sorted([*present, layout.row])
            ids = (*ids, layout.row)
        by_id: dict[int, Any] = dict(zip(present, bare_children(struct), strict=True))
        return [by_id[column] for column in ids]


def _ids_at(child_ids: Sequence[int], places: Sequence[int]) -> frozenset[int]:
    return frozenset(child_ids[place] for place in places)


@contextmanager
def open_orc_file(
    volume: Volume,
    path: str,
    form: ReadForm = _DEFAULT_FORM,
    length_bytes: int | None = None,
) -> Iterator[OrcFile]:
    """Open a file for reading; `length_bytes`: its logical length, if shorter than the real one.

    Raises NotOrcError, or AcidFormatError if its tail contradicts itself.
    """
    with volume.open_input(path) as file:
        yield OrcFile(file, tail_of_file(file, path, length_bytes), form)


class OrcFiles:
    """Files that do not change while this lives: a tail that was asked for is kept."""

    def __init__(self, volume: Volume) -> None:
        self.volume = volume
        self._tails: dict[tuple[str, int | None], OrcTail] = {}

    def tail(self, path: str, length_bytes: int | None = None) -> OrcTail:
        """As `read_tail` gives it."""
        tail = self._tails.get((path, length_bytes))
        if tail is None:
            tail = self._tails[path, length_bytes] = read_tail(self.volume, path, length_bytes)
        return tail

    @contextmanager
    def opened(
        self, path: str, form: ReadForm = _DEFAULT_FORM, length_bytes: int | None = None
    ) -> Iterator[OrcFile]:
        """As `open_orc_file` gives it; its tail is kept only if it was asked for before."""
        with self.volume.open_input(path) as file:
            known = self._tails.get((path, length_bytes))
            yield OrcFile(file, known or tail_of_file(file, path, length_bytes), form)
