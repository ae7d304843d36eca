"""Which bytes of files are read, by whatever process, and which columns of an ACID file those are.

Readers elsewhere, as Spark's tasks are, get the volume pickled by value, and add to the same log.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from pyspark import cloudpickle

from changemanager.filesystem.local import LocalVolume
from changemanager.location import FsspecResolver
from hms_bridge.orc.acid_layout import acid_layout
from hms_bridge.orc.image import StreamKind, read_layout
from hms_bridge.orc.tail import read_tail


@dataclass(frozen=True)
class Reads:
    """A log of reads, a line each."""

    log: Path

    def resolver(self) -> FsspecResolver:
        """Of files whose reads are written down."""
        cloudpickle.register_pickle_by_value(sys.modules[__name__])
        log = str(self.log)
        return FsspecResolver(lambda _scheme, _authority: CountedVolume(log))

    def forget(self) -> None:
        """Begin anew."""
        self.log.write_text("")

    def bytes_of(self, path: Path) -> int:
        """How many bytes were asked of a file, again counted where they were asked again."""
        return sum(stop - start for start, stop in self._ranges(path))

    def columns_of(self, path: Path) -> set[str]:
        """The table's columns whose values in an ACID file were read as a whole."""
        ranges = list(self._ranges(path))
        tail = read_tail(LocalVolume(), str(path))
        layout = acid_layout(tail.schema)
        assert layout is not None
        names = dict(zip(layout.row_type.child_ids(layout.row), layout.row_type.names, strict=True))
        found = set()
        with path.open("rb") as file:
            for stripe in tail.stripes:
                for stream in read_layout(file, tail, stripe).streams:
                    end = stream.offset_bytes + stream.length_bytes
                    if stream.column not in names or stream.kind != StreamKind.DATA:
                        continue
                    if any(a <= stream.offset_bytes and end <= b for a, b in ranges):
                        found.add(names[stream.column])
        return found

    def _ranges(self, path: Path) -> Iterator[tuple[int, int]]:
        for line in self.log.read_text().splitlines():
            read, start, stop = json.loads(line)
            if read == str(path):
                yield start, stop


class CountedVolume(LocalVolume):
    """Writes each read down."""

    def __init__(self, log: str) -> None:
        super().__init__()
        self._log = log

    def open_input(self, path: str) -> BinaryIO:
        return cast(BinaryIO, _CountedFile(path, self._log))


class _CountedFile(io.BufferedReader):
    def __init__(self, path: str, log: str) -> None:
        super().__init__(io.FileIO(path))
        self._path, self._log = path, log

    def read(self, size: int | None = -1, /) -> bytes:
        start = self.tell()
        data = super().read(size)
        self._note(start, len(data))
        return data

    def readinto(self, buffer: Any, /) -> int:
        start = self.tell()
        count = super().readinto(buffer)
        self._note(start, count)
        return count

    def _note(self, start: int, count: int) -> None:
        line = json.dumps([self._path, start, start + count]) + "\n"
        log = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(log, line.encode())  # one write, so that those of several tasks do not mix
        finally:
            os.close(log)
