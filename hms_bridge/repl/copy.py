"""Copy a dumped file to the target: verified before it gets its name, the same when repeated."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from changemanager.errors import ChangeManagerError
from changemanager.filesystem.volume import FileKind, Placement
from changemanager.location import Location, Resolver
from hms_bridge.acid.markers import METADATA_FILE, DataFormat, format_metadata
from hms_bridge.acid.names import DirectoryName
from hms_bridge.errors import ReplError, SourceFileMissingError
from hms_bridge.repl.find import FilePlace, find_file
from hms_bridge.repl.untrusted import DumpedFile

_UNFINISHED_PREFIX = "_repl_copy_"
"""Hidden from readers; the next try takes it away."""

_ATTEMPTS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class CopyReport:
    """What was copied. ``kept`` files were already there with the same bytes."""

    source_files: int = 0
    archive_files: int = 0
    kept: int = 0
    bytes: int = 0

    def __add__(self, other: CopyReport) -> CopyReport:
        return CopyReport(
            source_files=self.source_files + other.source_files,
            archive_files=self.archive_files + other.archive_files,
            kept=self.kept + other.kept,
            bytes=self.bytes + other.bytes,
        )


class Copier:
    """Brings dumped files below a table's or partition's directory."""

    def __init__(self, resolve: Resolver) -> None:
        self._resolve = resolve

    def copy_all(self, files: tuple[DumpedFile, ...], root: Location) -> CopyReport:
        """Copy files below ``root``; afterwards all are there, whole, under their own names.

        A base that a compactor made loses its visibility suffix on the way, so its marker says
        what it is: else a reader would judge it by the write id that it ends at. Raises
        SourceFileMissingError, or ReplError where the target holds other bytes under the name.
        """
        report = CopyReport()
        for directory in sorted({file.sub_directory for file in files}):
            root.volume.make_directory(root.child(directory).path)
        for file in _compacted_bases(files):
            self._write_marker(root.child(file.sub_directory.partition("/")[0]))
        for file in files:
            report += self._copy(file, root.child(file.relative_path))
        for directory in sorted({file.sub_directory for file in files}):
            _sync(root.child(directory))
        return report

    def _copy(self, file: DumpedFile, target: Location) -> CopyReport:
        status = target.status()
        if status is not None:
            return self._keep(file, target, status.kind, status.size_bytes)
        unfinished = target.parent.child(f"{_UNFINISHED_PREFIX}{target.name}")
        for attempt in range(_ATTEMPTS):
            found = find_file(self._resolve, file, is_quick=attempt == 0)
            if found.location is None:
                raise SourceFileMissingError(
                    f"{file.uri}: {found.reason}; run repl verify for the whole dump, and make a "
                    "new bootstrap dump if the file cannot be brought back",
                    missing=(file.uri,),
                )
            _remove_if_there(unfinished)
            try:
                size_bytes = _write_verified(found.location, unfinished, file.checksum)
            except FileNotFoundError:
                continue
            if size_bytes is None:
                continue
            _give_name(unfinished, target)
            is_archived = found.place is FilePlace.ARCHIVE
            return CopyReport(
                source_files=int(not is_archived),
                archive_files=int(is_archived),
                bytes=size_bytes,
            )
        _remove_if_there(unfinished)
        raise ReplError(
            f"{file.uri}: its bytes changed while it was copied, {_ATTEMPTS} times; load again"
        )

    def _keep(
        self, file: DumpedFile, target: Location, kind: FileKind, size_bytes: int
    ) -> CopyReport:
        if kind is FileKind.FILE:
            expected = file.checksum or self._source_checksum(file)
            if target.checksum_like(expected) == expected:
                return CopyReport(kept=1, bytes=size_bytes)
        raise ReplError(
            f"{target.uri} is there with other content than {file.uri}; somebody wrote to the "
            "replica. Move it away if it is not wanted, then load again"
        )

    def _source_checksum(self, file: DumpedFile) -> str:
        return self._resolve(file.uri).checksum()

    def _write_marker(self, base: Location) -> None:
        marker = base.child(METADATA_FILE)
        if marker.status() is None:
            marker.volume.write_new(marker.path, [format_metadata(DataFormat.COMPACTED)])


def _compacted_bases(files: tuple[DumpedFile, ...]) -> Iterator[DumpedFile]:
    for file in files:
        name = DirectoryName.parse(file.sub_directory.partition("/")[0])
        if file.is_compacted and name is not None and name.is_base:
            yield file


def _write_verified(source: Location, target: Location, checksum: str | None) -> int | None:
    """Copy the bytes; how many, or None if they are not those that the checksum means."""
    digest = hashlib.sha256()
    size_bytes = 0

    def read() -> Iterator[bytes]:
        nonlocal size_bytes
        for chunk in source.chunks():
            digest.update(chunk)
            size_bytes += len(chunk)
            yield chunk

    target.volume.write_new(target.path, read())
    written = target.status()
    if written is None or written.size_bytes != size_bytes:
        return None
    if checksum is not None:
        try:
            return size_bytes if target.checksum_like(checksum) == checksum else None
        except ChangeManagerError as error:
            raise ReplError(f"{source.uri}: its checksum cannot be compared: {error}") from error
    again = hashlib.sha256()
    for chunk in target.chunks():
        again.update(chunk)
    return size_bytes if again.digest() == digest.digest() else None


def _give_name(unfinished: Location, target: Location) -> None:
    placement = target.volume.place(unfinished.path, target.path)
    if placement is Placement.REFUSED:
        raise ReplError(f"{target.uri}: its directory spans two devices; move it onto one")
    if placement is not Placement.MOVED:
        _remove_if_there(unfinished)


def _remove_if_there(location: Location) -> None:
    if location.status() is not None:
        location.volume.remove_file(location.path)


def _sync(directory: Location) -> None:
    if directory.volume.capabilities.has_sync:
        directory.volume.sync_directory(directory.path)
