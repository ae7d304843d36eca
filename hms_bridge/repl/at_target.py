"""What of a dump the target has: `repl verify DUMP --target`.

A dump names what a load copies. After the load a compaction of the replica may have merged it, and
later changes may have removed it: what explains a file's absence is no loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial

from changemanager.filesystem.volume import FileKind
from changemanager.location import Location, Resolver, list_tree
from changemanager.whereabouts import Whereabouts
from hms_bridge.acid.names import DirectoryName
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Partition, Table
from hms_bridge.model.ids import EventId
from hms_bridge.repl.file_pool import FilePool
from hms_bridge.repl.format.dump_metadata import DumpType
from hms_bridge.repl.format.reader import DumpReader
from hms_bridge.repl.format.texts import is_there
from hms_bridge.repl.format.untrusted import DumpedFile
from hms_bridge.repl.format.verify import NamedFile, VerifiedFile, VerifyReport
from hms_bridge.repl.lookup import find_partition, if_there
from hms_bridge.repl.storage import explained_refusals
from hms_bridge.repl.target_objects import replica_event

_REMOVING = frozenset(
    {
        DumpType.INSERT.value,
        DumpType.DROP_TABLE.value,
        DumpType.DROP_FUNCTION.value,
        DumpType.RENAME_TABLE.value,
        DumpType.TRUNCATE_TABLE.value,
        DumpType.DROP_PARTITION.value,
        DumpType.RENAME_PARTITION.value,
        DumpType.TRUNCATE_PARTITION.value,
    }
)
"""Events after which a file that an earlier one brought may be gone."""


class AtTarget(Enum):
    """What became of a named file at the target; the value is what programs read."""

    THERE = "there"
    MERGED = "merged"
    """A compaction, or an overwrite, has put what covers its write ids in its place."""
    TO_COPY = "to copy"
    """The target has not come to it yet."""
    UNCLEAR = "unclear"
    """Not there, and a later change may be why."""
    LACKING = "lacking"
    OTHER = "other content"


TROUBLES = (AtTarget.UNCLEAR, AtTarget.LACKING, AtTarget.OTHER)
"""What somebody should look at."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetFile:
    """The verdict on one file at the target. ``reason`` explains all but ``THERE``."""

    state: AtTarget
    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetReport:
    """A verdict for each file of the dump's own report, in its order. ``stands_at``: the event that
    the target stands at; None before its bootstrap is loaded to its end."""

    target_database: str
    stands_at: EventId | None
    verified: VerifyReport
    files: tuple[TargetFile, ...]

    def count(self, state: AtTarget) -> int:
        """How many files are so."""
        return sum(file.state is state for file in self.files)

    @property
    def bytes_to_copy(self) -> int:
        """What a load would still copy."""
        pairs = zip(self.verified.files, self.files, strict=True)
        return sum(file.size_bytes or 0 for file, there in pairs if there.state is AtTarget.TO_COPY)

    @property
    def lost(self) -> tuple[VerifiedFile, ...]:
        """Files that neither the target has nor anybody else."""
        return self._not_there(Whereabouts.MISSING)

    @property
    def unlooked(self) -> tuple[VerifiedFile, ...]:
        """Files that the target has not, and that nobody may look for elsewhere."""
        return self._not_there(Whereabouts.NOT_LOOKED_FOR)

    def _not_there(self, place: Whereabouts) -> tuple[VerifiedFile, ...]:
        has = (AtTarget.THERE, AtTarget.MERGED)
        pairs = zip(self.verified.files, self.files, strict=True)
        return tuple(
            file for file, there in pairs if file.place is place and there.state not in has
        )

    @property
    def exit_code(self) -> int:
        """1: a file is lost; 2: the target lacks one, or has another in its place; 3: nothing of
        that is sure, or a file that the target has not was not looked for; else 0."""
        if self.lost:
            return 1
        if self.count(AtTarget.LACKING) or self.count(AtTarget.OTHER):
            return 2
        return 3 if self.count(AtTarget.UNCLEAR) or self.unlooked else 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """How far target and dump are. ``is_whole_there``: tables that the dump brings whole are loaded
    once the target stands at its end. ``last_removal``: the last event of the dump after which
    files of earlier ones may be gone."""

    stands_at: EventId | None
    dump_ends_at: EventId
    is_whole_there: bool = True
    last_removal: EventId | None = None

    def has_come_to(self, event_id: EventId | None) -> bool:
        """Whether the target has applied an event; None: has what the dump brings whole."""
        if self.stands_at is None or (event_id is None and not self.is_whole_there):
            return False
        return self.stands_at >= (self.dump_ends_at if event_id is None else event_id)

    def may_be_removed(self, event_id: EventId | None) -> bool:
        """Whether a change after the event may have removed what it brought."""
        if self.stands_at is not None and self.stands_at > self.dump_ends_at:
            return True
        if event_id is None or self.last_removal is None:
            return False
        return event_id < self.last_removal


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundPlace:
    """A table's or partition's directory at the target. ``root`` None: the target has no such
    object, and ``why`` says which. ``sizes``: length in bytes by path below it."""

    root: Location | None
    why: str = ""
    is_transactional: bool = False
    sizes: Mapping[str, int] | None = None


def judge_absent(file: NamedFile, place: FoundPlace, progress: Progress) -> TargetFile:
    """Why a file is not at the target. Pure."""
    if not progress.has_come_to(file.event_id):
        return TargetFile(state=AtTarget.TO_COPY, reason="the target has not come to it yet")
    if place.root is None:
        # What the target does not have at all, a load dropped or renamed it; or somebody did.
        return TargetFile(state=AtTarget.UNCLEAR, reason=place.why)
    if place.is_transactional:
        cover = _cover(file.file, place.sizes or {})
        if cover is not None:
            return TargetFile(state=AtTarget.MERGED, reason=f"{cover} covers it")
    if progress.may_be_removed(file.event_id):
        why = "it is not there; a later change may have removed it: repl compare tells"
        return TargetFile(state=AtTarget.UNCLEAR, reason=why)
    return TargetFile(state=AtTarget.LACKING, reason=f"{place.root.uri} does not have it")


def _cover(file: DumpedFile, sizes: Mapping[str, int]) -> str | None:
    """The directory that was made of the file's; None if there is none."""
    wanted = DirectoryName.parse(file.sub_directory.partition("/")[0])
    for first in sorted({path.partition("/")[0] for path in sizes}):
        there = DirectoryName.parse(first)
        if there is None or there == wanted:
            continue
        if there.is_base and (wanted is None or there.max_write_id >= wanted.max_write_id):
            return first
        if wanted is None or wanted.is_base or there.kind is not wanted.kind:
            continue
        if there.min_write_id <= wanted.min_write_id and wanted.max_write_id <= there.max_write_id:
            return first
    return None


class TargetCheck:
    """Looks for a dump's files at the target. Changes nothing."""

    def __init__(
        self, target: Metastore, resolve: Resolver, database: str, *, is_quick: bool = False
    ) -> None:
        self._target = target
        self._resolve = resolve
        self._database = database.lower()
        self._is_quick = is_quick

    def run(self, reader: DumpReader, verified: VerifyReport) -> TargetReport:
        """A verdict for each file of a report. Raises ReplError if the target cannot be read."""
        with explained_refusals(self._unreadable):
            return self._run(reader, verified)

    def _unreadable(self, error: Exception) -> str:
        return (
            f"the files of database {self._database} at the target cannot be looked at: "
            f"{error}. Check its file system, then verify again"
        )

    def _run(self, reader: DumpReader, verified: VerifyReport) -> TargetReport:
        progress = Progress(
            stands_at=replica_event(if_there(self._target.get_database, self._database)),
            dump_ends_at=reader.metadata.last_event_id,
            is_whole_there=reader.is_bootstrap
            or is_there(self._resolve(reader.paths.finished_load)),
            last_removal=_last_removal(reader),
        )
        judged: dict[int, TargetFile] = {}
        with FilePool() as pool:
            for place, numbers in self._places(verified):
                judge = partial(self._judge, place=place, progress=progress)
                files = (verified.files[number].named for number in numbers)
                judged.update(zip(numbers, pool.each(judge, files), strict=True))
        return TargetReport(
            target_database=self._database,
            stands_at=progress.stands_at,
            verified=verified,
            files=tuple(judged[number] for number in range(len(verified.files))),
        )

    def _places(self, verified: VerifyReport) -> Iterator[tuple[FoundPlace, Sequence[int]]]:
        """Each table, partition or function, and its files by number; many events may name it."""
        numbers: dict[tuple[str, str | None, bool], list[int]] = {}
        for number, file in enumerate(verified.files):
            target = file.named.target
            key = (target.table or "", target.partition, file.named.is_of_function)
            numbers.setdefault(key, []).append(number)
        for (name, partition, is_of_function), own in numbers.items():
            if is_of_function:
                for number in own:
                    file_name = verified.files[number].named.file.name
                    yield self._place_of_function(name, file_name), [number]
            else:
                yield self._place(name, partition), own

    def _place_of_function(self, name: str, file_name: str) -> FoundPlace:
        made = if_there(self._target.get_function, self._database, name)
        if made is None:
            why = f"there is no function {self._database}.{name}: dropped, or lost"
            return FoundPlace(root=None, why=why)
        for resource in made.resources:
            if resource.uri.rpartition("/")[2] == file_name:
                there = self._resolve(resource.uri)
                status = there.status()
                sizes = {} if status is None else {file_name: status.size_bytes}
                return FoundPlace(root=there.parent, sizes=sizes)
        why = f"function {self._database}.{name} uses no {file_name}"
        return FoundPlace(root=None, why=why)

    def _place(self, name: str, partition_name: str | None) -> FoundPlace:
        what = f"table {self._database}.{name}"
        table = if_there(self._target.get_table, self._database, name)
        place: Table | Partition | None = table
        if table is not None and partition_name is not None:
            what = f"partition {partition_name} of {what}"
            place = find_partition(self._target, self._database, name, partition_name)
        if table is None or place is None:
            return FoundPlace(root=None, why=f"there is no {what}: dropped or renamed, or lost")
        if place.storage.location is None:
            return FoundPlace(root=None, why=f"{what} has no location")
        root = self._resolve(place.storage.location)
        return FoundPlace(
            root=root,
            is_transactional=table.is_transactional,
            sizes={
                file.path: file.size_bytes for file in list_tree(root) if file.kind is FileKind.FILE
            },
        )

    def _judge(self, file: NamedFile, place: FoundPlace, progress: Progress) -> TargetFile:
        path = file.file.relative_path
        if place.root is None or path not in (place.sizes or {}):
            return judge_absent(file, place, progress)
        checksum = file.file.checksum
        there = place.root.child(path)
        if self._is_quick or checksum is None or there.checksum_like(checksum) == checksum:
            return TargetFile(state=AtTarget.THERE)
        if progress.may_be_removed(file.event_id) and not place.is_transactional:
            why = f"{there.uri} has other content; a later change may be why: repl compare tells"
            return TargetFile(state=AtTarget.UNCLEAR, reason=why)
        return TargetFile(state=AtTarget.OTHER, reason=f"{there.uri} has other content")


def _last_removal(reader: DumpReader) -> EventId | None:
    events = () if reader.is_bootstrap else reader.events()
    return max((event.id for event in events if event.type in _REMOVING), default=None)
