"""Puts whole stripes together into an ORC file.

Stripes come as bytes: copied from other files, or encoded one by one in memory. The tail is
written at the end, with the statistics of the stripes and their sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, BinaryIO, Final

from hms_bridge.orc import proto
from hms_bridge.orc.blocks import Compression, compress
from hms_bridge.orc.statistics import merge_statistics
from hms_bridge.orc.tail import MAGIC, Calendar, OrcTail, StripeInfo, encode_tail
from hms_bridge.orc.types import OrcType, messages_of_tree

CPP_WRITER_CODE: Final = 1
CPP_WRITER_VERSION: Final = 6
"""What pyarrow's encoder puts into the files it writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrcSettings:
    """What all stripes of one file have in common, besides the schema. What Hive's writers set:
    docs/hive/acid.md §19."""

    compression: Compression = Compression.ZLIB
    block_size_bytes: int = 256 * 1024
    version: tuple[int, ...] = (0, 12)
    writer_code: int = CPP_WRITER_CODE
    writer_version: int = CPP_WRITER_VERSION
    software_version: str = ""
    row_index_stride: int = 10_000
    """0: no row index."""
    calendar: Calendar = Calendar.JULIAN_GREGORIAN
    has_last_second: bool = False
    """Of the writer alone: whether rows may have what only Arrow's writer stores of the last second
    before 1970 (timestamps.py)."""

    @staticmethod
    def of_tail(tail: OrcTail) -> OrcSettings:
        """The settings of an existing file."""
        return OrcSettings(
            **{
                setting.name: getattr(tail, setting.name)
                for setting in fields(OrcSettings)
                if hasattr(tail, setting.name)
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedStripe:
    """One stripe, ready to be put into a file."""

    index: bytes
    data: bytes
    footer: Any
    """StripeFooter message."""
    row_count: int
    statistics: Any
    """StripeStatistics message: of all columns, or of none in all stripes of a file."""


class OrcAssembler:
    """Appends stripes to a sink, then the tail. The sink is left open."""

    def __init__(self, sink: BinaryIO, schema: OrcType, settings: OrcSettings) -> None:
        self._sink = sink
        self._schema = schema
        self._settings = settings
        self._offset = len(MAGIC)
        self._stripes: list[StripeInfo] = []
        self._statistics: list[Any] = []
        sink.write(MAGIC)

    def append(self, stripe: EncodedStripe) -> None:
        """Write a stripe behind the others; its statistics count for the file."""
        footer = compress(
            stripe.footer.SerializeToString(),
            self._settings.compression,
            self._settings.block_size_bytes,
        )
        info = StripeInfo(
            offset_bytes=self._offset,
            index_bytes=len(stripe.index),
            data_bytes=len(stripe.data),
            footer_bytes=len(footer),
            row_count=stripe.row_count,
        )
        self.append_raw((stripe.index, stripe.data, footer), info, stripe.statistics)

    def append_raw(self, chunks: Iterable[bytes], info: StripeInfo, statistics: Any) -> None:
        """Add one stripe as it lies in a file with the same settings; its offset is changed."""
        for chunk in chunks:
            self._sink.write(chunk)
        self._stripes.append(replace(info, offset_bytes=self._offset))
        self._statistics.append(statistics)
        self._offset += info.size_bytes

    @property
    def stripe_count(self) -> int:
        """How many stripes there are by now."""
        return len(self._stripes)

    @property
    def size_bytes(self) -> int:
        """How much was written by now."""
        return self._offset

    def finish(self, user_metadata: Mapping[str, bytes]) -> None:
        """Write metadata, footer and postscript: without them no reader opens the file."""
        tail = encode_tail(
            self._footer(user_metadata),
            proto.Metadata(stripe_statistics=self._statistics),
            compression=self._settings.compression,
            block_size_bytes=self._settings.block_size_bytes,
            version=self._settings.version,
            writer_version=self._settings.writer_version,
        )
        self._sink.write(tail)
        self._offset += len(tail)

    def _footer(self, user_metadata: Mapping[str, bytes]) -> Any:
        footer = proto.Footer(
            header_length=len(MAGIC),
            content_length=self._offset,
            types=messages_of_tree(self._schema),
            number_of_rows=sum(stripe.row_count for stripe in self._stripes),
            statistics=self._file_statistics(),
            row_index_stride=self._settings.row_index_stride,
            writer=self._settings.writer_code,
            calendar=int(self._settings.calendar),
        )
        if self._settings.software_version:
            footer.software_version = self._settings.software_version
        for stripe in self._stripes:
            footer.stripes.add(
                offset=stripe.offset_bytes,
                index_length=stripe.index_bytes,
                data_length=stripe.data_bytes,
                footer_length=stripe.footer_bytes,
                number_of_rows=stripe.row_count,
            )
        for name, value in user_metadata.items():
            footer.metadata.add(name=name, value=value)
        return footer

    def _file_statistics(self) -> Sequence[Any]:
        if self._statistics and not any(stripe.column_statistics for stripe in self._statistics):
            return []
        by_column: list[list[Any]] = [[] for _ in range(self._schema.size)]
        for stripe in self._statistics:
            for column, statistics in zip(by_column, stripe.column_statistics, strict=True):
                column.append(statistics)
        return [merge_statistics(column) for column in by_column]
