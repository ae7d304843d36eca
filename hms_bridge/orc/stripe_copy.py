"""Joins ACID files by copying whole stripes byte for byte.

Nothing is decoded, so nothing can change; only the tail is new. What keeps files from being joined
so is decided first, without I/O, by `copy_refusal`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, BinaryIO, Final

from changemanager.filesystem.volume import Volume
from hms_bridge.acid.row_id import RowId
from hms_bridge.errors import AcidFormatError
from hms_bridge.model.ids import WriteId
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.orc.acid_layout import (
    ACID_VERSION,
    KEY_INDEX_METADATA,
    STATS_METADATA,
    VERSION_METADATA,
    AcidLayout,
    AcidStats,
    Operation,
    acid_layout,
    format_key_index,
    parse_key_index,
)
from hms_bridge.orc.acid_reader import OrcFile, OrcFiles
from hms_bridge.orc.acid_writer import WrittenFile
from hms_bridge.orc.assembly import OrcAssembler, OrcSettings
from hms_bridge.orc.tail import OrcTail, StripeInfo

COPY_CHUNK_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySource:
    """What must be known of a file before its stripes can be copied.

    `first_key` None: the file has no rows. `last_keys`: of each stripe. `stats` None: the file
    mixes kinds of events, or does not say. `write_ids`: lowest and highest current write id.
    """

    tail: OrcTail
    first_key: RowId | None
    last_keys: tuple[RowId, ...]
    stats: AcidStats | None
    write_ids: tuple[WriteId, WriteId] | None


def load_copy_source(files: OrcFiles, path: str) -> CopySource:
    """Read what is to be known: the tail, the first key, and what the tail leaves out."""
    with files.opened(path) as file:
        layout = file.require_layout()
        metadata = file.tail.user_metadata
        indexed = parse_key_index(metadata.get(KEY_INDEX_METADATA, b""), path)
        stripes = range(file.stripe_count)
        has_index = len(indexed) == file.stripe_count
        return CopySource(
            tail=file.tail,
            first_key=_key_of(file, 0, 0) if file.tail.row_count else None,
            last_keys=indexed if has_index else tuple(_key_of(file, at, -1) for at in stripes),
            stats=_stats_of(file.tail, layout),
            write_ids=_write_ids_of(file.tail, layout),
        )


def _key_of(file: OrcFile, stripe: int, row: int) -> RowId:
    events = file.read_keys(stripe)
    place = row if row >= 0 else events.num_rows + row
    return RowId._make(events.column(at)[place].as_py() for at in range(3))


def _bounds_of(stripes: Sequence[Any], column: int) -> tuple[int, int] | None:
    """Lowest and highest value of an integer column, if the statistics of every stripe state
    them."""
    bounds: list[int] = []
    for stripe in stripes:
        if column >= len(stripe.column_statistics):
            return None
        statistics = stripe.column_statistics[column].int_statistics
        if not (statistics.HasField("minimum") and statistics.HasField("maximum")):
            return None
        bounds += [statistics.minimum, statistics.maximum]
    return (min(bounds), max(bounds)) if bounds else None


def stated_key_range(tail: OrcTail) -> tuple[RowId, RowId] | None:
    """First and last key of an ACID file, as its statistics say: None where they do not, or where
    bounds of its columns are none of its keys."""
    layout = acid_layout(tail.schema)
    if layout is None:
        return None
    stripes = tail.stripe_statistics()
    write_ids, buckets, row_ids = (_bounds_of(stripes, column) for column in layout.key_ids)
    if write_ids is None or buckets is None or row_ids is None:
        return None
    (write_id, last_write_id), (bucket, last_bucket) = write_ids, buckets
    if write_id != last_write_id or bucket != last_bucket:
        return None
    return RowId(write_id, bucket, row_ids[0]), RowId(write_id, bucket, row_ids[1])


def _stats_of(tail: OrcTail, layout: AcidLayout) -> AcidStats | None:
    stored = tail.user_metadata.get(STATS_METADATA)
    if stored is not None:
        return AcidStats.parse(stored, tail.path)
    if not tail.row_count:
        return AcidStats()
    # Other writers keep no counts; that all events are of one kind, the column's statistics say.
    bounds = _bounds_of(tail.stripe_statistics(), layout.operation)
    if bounds == (Operation.INSERT, Operation.INSERT):
        return AcidStats(inserts=tail.row_count)
    if bounds == (Operation.DELETE, Operation.DELETE):
        return AcidStats(deletes=tail.row_count)
    return None


def _write_ids_of(tail: OrcTail, layout: AcidLayout) -> tuple[WriteId, WriteId] | None:
    bounds = _bounds_of(tail.stripe_statistics(), layout.current_write_id)
    return None if bounds is None else (WriteId(bounds[0]), WriteId(bounds[1]))


def in_key_order(sources: Sequence[CopySource]) -> tuple[CopySource, ...]:
    """The sources that have rows, by their first keys."""
    filled = [(source.first_key, source) for source in sources if source.first_key is not None]
    return tuple(source for _, source in sorted(filled, key=lambda pair: pair[0]))


def copy_refusal(sources: Sequence[CopySource], write_ids: ValidWriteIdList) -> str | None:
    """Why these files cannot be joined by copying; None if they can.

    Source of the rules: ORC's own test for merging files, and ACID's demands: order over the whole
    file, no rows that `write_ids` does not see, inserts or deletes but not both.
    """
    ordered = in_key_order(sources)
    for source in ordered:
        reason = _refusal_of(source, write_ids) or _mismatch(source.tail, ordered[0].tail)
        if reason is not None:
            return f"{source.tail.path}: {reason}"
    # Readers look rows up by key ranges of stripes, so the new file must ascend as a whole.
    for before, after in pairwise(ordered):
        if after.first_key is None or after.first_key <= before.last_keys[-1]:
            return f"keys of {after.tail.path} overlap those of {before.tail.path}"
    kinds = {bool(source.stats and source.stats.deletes) for source in ordered}
    return "some files hold inserts, others deletes" if len(kinds) > 1 else None


def _refusal_of(source: CopySource, write_ids: ValidWriteIdList) -> str | None:
    if source.tail.is_encrypted:
        return "the file is encrypted"
    if len(source.tail.stripe_statistics()) != len(source.tail.stripes):
        return "the file has no statistics of its stripes"
    stats = source.stats
    if stats is None or stats.updates or (stats.inserts and stats.deletes):
        return "the file mixes inserts with updates or deletes"
    if source.write_ids is None:
        return "the file does not name its write ids"
    keys = (source.first_key or source.last_keys[0], *source.last_keys)
    if list(keys) != sorted(keys):
        return "its rows are not in the order of their keys"
    lowest, highest = source.write_ids
    is_open = write_ids.has_open_between(lowest, highest)
    if highest > write_ids.high_watermark or is_open:
        return "the file may hold rows of open transactions"
    if write_ids.aborted_between(lowest, highest):
        return "the file may hold rows of aborted transactions"
    return None


def _mismatch(tail: OrcTail, first: OrcTail) -> str | None:
    # Padding and the writer's name change no byte inside of a stripe; all else must be said once,
    # in the one footer of the new file.
    settings = replace(_settings(tail), block_size_bytes=0, software_version="")
    wanted = replace(_settings(first), block_size_bytes=0, software_version="")
    if settings != wanted:
        return f"written with {settings}, {first.path} with {wanted}"
    if tail.schema != first.schema:
        return f"its columns or their types differ from those of {first.path}"
    return None


def _settings(tail: OrcTail) -> OrcSettings:
    return OrcSettings.of_tail(tail)


def copy_stripes(volume: Volume, sources: Sequence[CopySource], sink: BinaryIO) -> WrittenFile:
    """Write one ACID file of all stripes of the sources, which `copy_refusal` must have passed.

    Memory: COPY_CHUNK_BYTES. Raises AcidFormatError if there are no rows or a file has shrunk.
    """
    ordered = in_key_order(sources)
    if not ordered:
        raise AcidFormatError("no rows to copy")
    settings = replace(
        _settings(ordered[0].tail),
        block_size_bytes=max(source.tail.block_size_bytes for source in ordered),
    )
    assembler = OrcAssembler(sink, ordered[0].tail.schema, settings)
    keys: list[RowId] = []
    stats = AcidStats()
    for source in ordered:
        with volume.open_input(source.tail.path) as file:
            statistics: Sequence[Any] = source.tail.stripe_statistics()
            for stripe, about in zip(source.tail.stripes, statistics, strict=True):
                assembler.append_raw(_chunks(file, stripe, source.tail.path), stripe, about)
        keys += source.last_keys
        stats = stats.plus(source.stats or AcidStats())
    assembler.finish(
        {
            KEY_INDEX_METADATA: format_key_index(keys),
            STATS_METADATA: stats.format(),
            VERSION_METADATA: ACID_VERSION,
        }
    )
    return WrittenFile(size_bytes=assembler.size_bytes, stats=stats, stripe_last_keys=tuple(keys))


def _chunks(file: BinaryIO, stripe: StripeInfo, path: str) -> Iterator[bytes]:
    file.seek(stripe.offset_bytes, os.SEEK_SET)
    left = stripe.size_bytes
    while left:
        chunk = file.read(min(left, COPY_CHUNK_BYTES))
        if not chunk:
            raise AcidFormatError(f"{left} bytes of a stripe are missing", path)
        left -= len(chunk)
        yield chunk
