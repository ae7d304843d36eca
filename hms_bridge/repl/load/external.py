"""Copy the data of external tables. No archive protects it: what is there now is what is copied."""

from __future__ import annotations

from collections.abc import Iterator

from changemanager.filesystem.volume import FileKind
from changemanager.location import Location, Resolver, path_below
from hms_bridge.errors import ReplError
from hms_bridge.repl.format.data_tree import list_data
from hms_bridge.repl.format.external_list import ExternalDirectory, external_target
from hms_bridge.repl.format.untrusted import DumpedFile
from hms_bridge.repl.load.copy import Copies, CopyGroup
from hms_bridge.repl.load.file_copy import CopyReport


def copy_external(
    resolve: Resolver,
    sources: Resolver,
    directories: tuple[ExternalDirectory, ...],
    base: str | None,
    copier: Copies,
) -> CopyReport:
    """Make each directory on the target like its source: new files copied, others removed.
    ``sources`` resolves what the load may read.

    Raises ReplError without a base directory for such data, and what the copier raises.
    """
    kept: list[CopyReport] = []

    def groups() -> Iterator[CopyGroup]:
        for directory in _outermost(directories):
            if base is None:
                raise ReplError(
                    f"the dump asks to copy data of the external table {directory.table_name}: "
                    "say where to (hive.repl.replica.external.table.base.dir), then load again"
                )
            copier.before_each()
            require_there(sources, (directory,))
            target = resolve(external_target(base, directory.source))
            report, group = _mirrored(sources(directory.source), target)
            kept.append(report)
            yield group

    copied = copier.copy(groups())
    return sum(kept, copied)


def _outermost(directories: tuple[ExternalDirectory, ...]) -> tuple[ExternalDirectory, ...]:
    """Those that lie in no other; of several tables over one directory the first. What comes with
    another one is not looked at while that is on its way: its half copied files would be removed.
    """
    kept: dict[str, ExternalDirectory] = {}
    for directory in sorted(directories, key=lambda directory: len(directory.source)):
        if all(path_below(directory.source, upper) is None for upper in kept):
            kept[directory.source] = directory
    return tuple(kept.values())


def require_there(sources: Resolver, directories: tuple[ExternalDirectory, ...]) -> None:
    """Raises ReplError if a directory to copy is not there: nobody can tell a table without files
    from one whose file system is away, and the replica would keep the old ones without a word."""
    for directory in directories:
        if sources(directory.source).status() is None:
            raise ReplError(
                f"{directory.source}, where the dump says that data of the external table "
                f"{directory.table_name} is, is not there. Nothing was changed on the target. Is "
                "its file system mounted and reachable from here? If the table has no files, make "
                "the empty directory; if it was dropped since, discard the dump (repl dump "
                "--discard) and dump again; then load again"
            )


def _mirrored(source: Location, target: Location) -> tuple[CopyReport, CopyGroup]:
    """What is there with the same bytes stays; of all else that is there nothing stays. What is
    still to be copied."""
    files = {file.path: file for file in list_data(source) if file.kind is FileKind.FILE}
    target.volume.make_directory(target.path)
    kept = CopyReport()
    for there in list_data(target):
        wanted = files.get(there.path)
        if there.kind is not FileKind.FILE:
            continue
        place = target.child(there.path)
        is_same = wanted is not None and wanted.size_bytes == there.size_bytes
        if is_same and place.checksum() == source.child(there.path).checksum():
            del files[there.path]
            kept += CopyReport(kept=1, bytes=there.size_bytes)
        else:
            place.volume.remove_file(place.path)
    to_copy = tuple(
        DumpedFile(
            uri=source.child(path).uri,
            checksum=None,
            cmroot=None,
            sub_directory=path.rpartition("/")[0],
            source_directory=path.rpartition("/")[0],
        )
        for path in sorted(files)
    )
    return kept, CopyGroup(places=((to_copy, target),))
