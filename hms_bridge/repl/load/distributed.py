"""Copy what is large by a job of many processes, the role of Hive's distcp: plan, carry out, check.

Hive's rule when: above both limits (docs/hive/replication.md §20).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from changemanager.filesystem.volume import FileKind
from changemanager.location import Resolver
from changemanager.whereabouts import locate
from hms_bridge.clock import Clock
from hms_bridge.errors import ReplError, SourceFileMissingError
from hms_bridge.model.counted import counted
from hms_bridge.repl.file_pool import FilePool
from hms_bridge.repl.format.untrusted import DumpedFile
from hms_bridge.repl.load.copy import Copier, CopyGroup, TargetDirectory, directories_of
from hms_bridge.repl.load.copy_task import CopiedFile, CopyTask, FileToCopy
from hms_bridge.repl.load.file_copy import CopyReport

_FILES_OF_A_JOB = 20_000
_FILE_COSTS_BYTES = 1 << 20
"""To open, name and close a file takes about as long as to read so much."""
_SHARE_BYTES_MIN = 64 << 20
_SHARES_PER_PROCESS = 3
"""So that a process whose share was quick takes another one."""
_NAMED_IN_MESSAGE = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class CopyLimits:
    """What a load copies itself: files or bytes up to these numbers (Hive's
    hive.exec.copyfile.maxnumfiles and hive.exec.copyfile.maxsize)."""

    files_max: int = 1
    bytes_max: int = 32 << 20

    def is_large(self, sizes: Sequence[int]) -> bool:
        """Whether files of these sizes are above both."""
        return len(sizes) > self.files_max and sum(sizes) > self.bytes_max


class CopyJob(Protocol):
    """Runs shares of a copy in other processes."""

    def processes(self) -> int:
        """How many shares are carried out at once, at least one. Raises HmsBridgeError where the
        job cannot be begun."""
        ...

    def run(
        self,
        task: CopyTask,
        shares: Sequence[Sequence[FileToCopy]],
        *,
        places: Sequence[str],
        while_waiting: Callable[[int], None],
    ) -> Iterable[CopiedFile]:
        """What became of each file. ``places`` are there, and must be reached from everywhere.

        ``while_waiting`` is given bytes that shares have brought since it was called last, again
        and again; what it raises ends the job. Raises ReplError with what is wrong.
        """
        ...


def shares_of(files: Iterable[FileToCopy], processes: int) -> tuple[tuple[FileToCopy, ...], ...]:
    """Files in shares of about as many bytes, the largest first; as many shares as processes can
    use. Pure."""
    by_size = sorted(files, key=lambda file: (-file.size_bytes, file.number))
    total = sum(file.size_bytes + _FILE_COSTS_BYTES for file in by_size)
    wanted = min(_SHARES_PER_PROCESS * processes, max(processes, total // _SHARE_BYTES_MIN))
    count = min(wanted, len(by_size))
    shares: list[list[FileToCopy]] = [[] for _ in range(count)]
    lightest = [(0, number) for number in range(count)]
    for file in by_size:
        weight, number = heapq.heappop(lightest)
        shares[number].append(file)
        heapq.heappush(lightest, (weight + file.size_bytes + _FILE_COSTS_BYTES, number))
    return tuple(map(tuple, shares))


@dataclass(frozen=True, kw_only=True)
class DistributedCopier:
    """Copies groups by a job where they are large, and by ``copier`` where they are not.

    ``sources`` resolves what the load may read. ``sizes``: bytes of files that are known, by their
    URI. ``bandwidth``: bytes a second of all processes together.
    """

    copier: Copier
    job: CopyJob
    resolve: Resolver
    sources: Resolver
    clock: Clock
    limits: CopyLimits
    sizes: Mapping[str, int]
    bandwidth: int | None = None
    on_copied: Callable[[int], None] = lambda _: None

    def before_each(self) -> None:
        """Raises ReplError if this is not the only load any more."""
        self.copier.before_each()

    def copy(self, groups: Iterable[CopyGroup]) -> CopyReport:
        """As :meth:`Copier.copy`; groups are published in their order, after those of a job."""
        report = CopyReport()
        for batch in _batches(groups):
            files = [file for group in batch for files, _ in group.places for file in files]
            sizes = [self._size(file) for file in files]
            if self.limits.is_large(sizes):
                report += self._copy_by_job(batch)
                for group in batch:
                    group.publish()
            else:
                report += self.copier.copy(batch)
        return report

    def _size(self, file: DumpedFile) -> int:
        known = self.sizes.get(file.uri)
        if known is not None:
            return known
        status = self.sources(file.uri).status()
        return 0 if status is None else status.size_bytes

    def _copy_by_job(self, batch: Sequence[CopyGroup]) -> CopyReport:
        self.before_each()
        places = [place for group in batch for place in group.places]
        directories = tuple(directories_of(places))
        with FilePool() as pool:
            pool.all(TargetDirectory.make, [directory for directory, _ in directories])
        wanted = tuple(self._wanted(directories))
        processes = self.job.processes()
        shares = shares_of(wanted, processes)
        at_once = min(processes, len(shares))
        bandwidth = None if self.bandwidth is None else max(1, self.bandwidth // at_once)
        reported = 0

        def while_waiting(size_bytes: int) -> None:
            nonlocal reported
            self.before_each()
            reported += size_bytes
            self.on_copied(size_bytes)

        task = CopyTask(
            resolve=self.resolve, sources=self.sources, clock=self.clock, bandwidth=bandwidth
        )
        copied = self.job.run(task, shares, places=_shown(wanted), while_waiting=while_waiting)
        report = checked(wanted, copied, self._is_lost)
        self.on_copied(report.bytes - reported)
        with FilePool() as pool:
            pool.all(self._require_there, directories)
        return replace(report, by_job=report.files)

    def _is_lost(self, file: DumpedFile) -> bool:
        return locate(file.encoded, self.sources, is_content_checked=True).location is None

    def _wanted(
        self, directories: Iterable[tuple[TargetDirectory, tuple[DumpedFile, ...]]]
    ) -> Iterator[FileToCopy]:
        number = 0
        for directory, files in directories:
            for file in files:
                yield FileToCopy(
                    number=number,
                    file=file,
                    directory=directory.place.uri,
                    size_bytes=self._size(file),
                )
                number += 1

    def _require_there(self, filled: tuple[TargetDirectory, tuple[DumpedFile, ...]]) -> None:
        """Raises ReplError where a file that was reported is not seen from here: the processes
        wrote to a disk of their own."""
        directory, files = filled
        volume = directory.place.volume
        children = volume.children(directory.place.path)
        there = {child.name for child in children if child.kind is FileKind.FILE}
        lacking = sorted({file.name for file in files} - there)
        if lacking:
            raise ReplError(
                f"{directory.place.child(lacking[0]).uri} was copied by the job, and is not there "
                "as this host sees it; do all hosts see the same file system? Load without "
                "--copy-with spark, or give the replica a warehouse that all of them reach"
            )


def checked(
    wanted: Sequence[FileToCopy],
    files: Iterable[CopiedFile],
    is_lost: Callable[[DumpedFile], bool],
) -> CopyReport:
    """The sum of what was copied. Raises SourceFileMissingError or ReplError for files that were
    not, or of which the job has reported nothing, or twice. ``is_lost``: whether nobody has a file,
    as this host sees it; the job's may not see what it does."""
    by_number: dict[int, CopiedFile] = {}
    for copied in files:
        if copied.number in by_number:
            raise ReplError("the job reported one file twice; load again")
        by_number[copied.number] = copied
    report, failed = CopyReport(), []
    for file in wanted:
        copied_one = by_number.get(file.number)
        if copied_one is None or (copied_one.error is None and copied_one.report.files != 1):
            raise ReplError(
                f"the job did not report what became of {file.file.uri}; load again, or without "
                "--copy-with spark"
            )
        if copied_one.error is not None:
            failed.append((file, copied_one))
        report += copied_one.report
    if failed:
        _raise(failed, is_lost)
    return report


def _raise(
    failed: Sequence[tuple[FileToCopy, CopiedFile]], is_lost: Callable[[DumpedFile], bool]
) -> None:
    texts = [copied.error or "" for _, copied in failed[:_NAMED_IN_MESSAGE]]
    more = len(failed) - len(texts)
    tail = f"; and {counted(more, 'file')} more" if more else ""
    missing = [file.file for file, copied in failed if copied.is_lost]
    lost = tuple(file.uri for file in missing if is_lost(file))
    if lost:
        raise SourceFileMissingError("; ".join(texts) + tail, missing=lost)
    if missing:
        raise ReplError(
            f"{missing[0].uri} is there as this host sees it, and not as the job's hosts do; load "
            "without --copy-with spark, or let them reach the source"
        )
    raise ReplError("; ".join(texts) + tail)


def _batches(groups: Iterable[CopyGroup]) -> Iterator[list[CopyGroup]]:
    """Groups for one job each, so that what is in memory does not grow with them."""
    batch: list[CopyGroup] = []
    count = 0
    for group in groups:
        batch.append(group)
        count += sum(len(files) for files, _ in group.places)
        if count >= _FILES_OF_A_JOB:
            yield batch
            batch, count = [], 0
    if batch:
        yield batch


def _shown(wanted: Sequence[FileToCopy]) -> tuple[str, ...]:
    """A directory of the target, and the archive of the source."""
    archives = (file.file.cmroot for file in wanted if file.file.cmroot is not None)
    return tuple(dict.fromkeys([wanted[0].directory, *list(archives)[:1]]))
