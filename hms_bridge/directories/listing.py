"""Looks below a root on any file system and sorts what is there."""

from __future__ import annotations

from collections.abc import Callable

from changemanager.filesystem.volume import FileKind, FileStatus, Volume
from hms_bridge.acid.listing import DirectoryListing, ListedFile
from hms_bridge.acid.markers import DataFormat, parse_metadata
from hms_bridge.acid.names import DirectoryName, is_hidden
from hms_bridge.errors import AcidFormatError


def list_acid_directory(
    volume: Volume,
    root: str,
    *,
    has_raw_rows: Callable[[str], bool] | None = None,
    is_insert_only: bool = False,
) -> DirectoryListing:
    """List everything below a root (table or partition). A root that is not there is empty.

    `has_raw_rows` is asked with the full path of one file of each base or delta whose files are
    named like originals; without it the name decides. It may raise FileNotFoundError. What vanishes
    during the look (a cleaner at work) counts as absent. Raises OSError if a file system fails,
    AcidFormatError if a `_metadata_acid` cannot be understood, and for a symbolic link below the
    root: to leave it out, as a listing does that does not follow it, would be to lose rows.
    """
    look = _Look(volume, root)

    def data_format(path: str) -> DataFormat | None:
        try:
            return parse_metadata(volume.read(look.full(path)), look.full(path))
        except FileNotFoundError:
            return None

    def is_raw(path: str) -> bool:
        if has_raw_rows is None:
            return True
        try:
            return has_raw_rows(look.full(path))
        except FileNotFoundError:
            return False

    files, directories = look.everything()
    return DirectoryListing.build(
        root,
        files=files,
        directories=directories,
        data_format=data_format,
        is_raw=is_raw,
        is_insert_only=is_insert_only,
    )


def find_acid_roots(volume: Volume, table_root: str) -> tuple[str, ...]:
    """The roots below a table's directory: each directory that holds a base or delta, sorted.

    For an unpartitioned table that is the table's directory itself; for a partitioned one its
    partitions, known to the metastore or not.
    """
    files, directories = _Look(volume, table_root).everything()
    roots: set[str] = set()
    for path in [*directories, *(file.path for file in files)]:
        parts = path.split("/")
        for depth, part in enumerate(parts):
            if is_hidden(part):
                break
            if DirectoryName.parse(part) is not None:
                roots.add("/".join([table_root.rstrip("/"), *parts[:depth]]))
                break
    return tuple(sorted(roots))


class _Look:
    """One look below a root."""

    def __init__(self, volume: Volume, root: str) -> None:
        self._volume = volume
        self._root = root.rstrip("/")

    def full(self, path: str) -> str:
        return f"{self._root}/{path}"

    def everything(self) -> tuple[list[ListedFile], list[str]]:
        """Files and directories below the root, by their paths relative to it."""
        # Object stores list a whole prefix at once; elsewhere a failing directory must not pass
        # for an empty one.
        has_directories = self._volume.capabilities.has_directories
        entries = self._walked() if has_directories else self._flat()
        files: list[ListedFile] = []
        directories: list[str] = []
        for path, status in entries:
            if status.kind is FileKind.DIRECTORY:
                directories.append(path)
            else:
                files.append(
                    ListedFile(path=path, size_bytes=status.size_bytes, modified_ms=status.mtime_ms)
                )
        return files, directories

    def _flat(self) -> list[tuple[str, FileStatus]]:
        try:
            return [(status.name, status) for status in self._volume.descendants(self._root)]
        except NotADirectoryError as error:
            raise _no_directory(self._root) from error

    def _walked(self) -> list[tuple[str, FileStatus]]:
        files: list[tuple[str, FileStatus]] = []
        pending = [""]
        while pending:
            above = pending.pop()
            directory = self._root + above
            try:
                children = self._volume.children(directory)
            except FileNotFoundError:
                self._refuse_link_to_nothing(directory)
                continue
            if not children and not above:
                self._require_directory()
            for status in children:
                path = f"{above}/{status.name}"
                if status.kind is FileKind.LINK and not is_hidden(status.name):
                    raise _link(self._root + path)
                files.append((path[1:], status))
                if status.kind is FileKind.DIRECTORY and not is_hidden(status.name):
                    pending.append(path)
        return files

    def _refuse_link_to_nothing(self, path: str) -> None:
        """The root may be a link; one whose target is away (not mounted) is no empty table."""
        if self._volume.is_link(path):
            raise AcidFormatError("is a symbolic link that leads nowhere; mount its target", path)

    def _require_directory(self) -> None:
        """A file has no names below it either."""
        status = self._volume.status(self._volume.real_path(self._root))
        if status is not None and status.kind is not FileKind.DIRECTORY:
            raise _no_directory(self._root)


def _no_directory(path: str) -> AcidFormatError:
    return AcidFormatError("is a file; name the table's or partition's directory", path)


def _link(path: str) -> AcidFormatError:
    return AcidFormatError(
        "is a symbolic link, whose rows would neither be compacted nor archived nor replicated; "
        "put the file or directory itself there, or mount it there",
        path,
    )
