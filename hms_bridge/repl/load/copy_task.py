"""A share of a copy, as a process elsewhere carries it out: by the code that copies here.

Pickled by name, so executors need this module; it needs neither a database nor thrift.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from changemanager.durable import settle_names
from changemanager.location import Resolver
from hms_bridge.clock import Clock
from hms_bridge.errors import ReplError, SourceFileMissingError
from hms_bridge.repl.file_pool import FilePool
from hms_bridge.repl.format.untrusted import DumpedFile
from hms_bridge.repl.load.bandwidth import throttle
from hms_bridge.repl.load.file_copy import CopyReport, FileCopy

_FILES_AT_ONCE = 8
"""Of one task: small files mostly wait, and a host runs a task for each of its cores."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileToCopy:
    """A file, and the directory of the target, which is there, that it goes to. ``number``: by
    which its result is known."""

    number: int
    file: DumpedFile
    directory: str
    size_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class CopiedFile:
    """What became of one file. ``error``: why it could not be copied; ``is_lost``: nobody has it
    any more."""

    number: int
    report: CopyReport
    error: str | None = None
    is_lost: bool = False


@dataclass(frozen=True, kw_only=True)
class CopyTask:
    """Copies a share of the files. ``sources`` resolves what the load may read. ``bandwidth``:
    bytes a second of each task, None: as many as can be."""

    resolve: Resolver
    sources: Resolver
    clock: Clock
    bandwidth: int | None = None

    def __call__(self, share: Sequence[FileToCopy]) -> tuple[CopiedFile, ...]:
        """One result for each file; those that are there have names that a loss of power does not
        take. What another try may mend (a storage that does not answer) is raised."""
        copy_file = FileCopy(sources=self.sources, pace=throttle(self.bandwidth, self.clock))
        with FilePool(_FILES_AT_ONCE) as pool:
            copied = tuple(pool.each(lambda wanted: self._copied(copy_file, wanted), share))
            pool.all(self._settle, sorted({wanted.directory for wanted in share}))
        return copied

    def _copied(self, copy_file: FileCopy, wanted: FileToCopy) -> CopiedFile:
        target = self.resolve(wanted.directory).child(wanted.file.name)
        try:
            report = copy_file(wanted.file, target)
        except ReplError as error:
            return CopiedFile(
                number=wanted.number,
                report=CopyReport(),
                error=str(error),
                is_lost=isinstance(error, SourceFileMissingError),
            )
        return CopiedFile(number=wanted.number, report=report)

    def _settle(self, directory: str) -> None:
        place = self.resolve(directory)
        settle_names(place.volume, place.path)
