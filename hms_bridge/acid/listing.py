"""What lies below the root of a table or partition, sorted into its kinds.

What is hidden, and what directories within a delta are: docs/hive/acid.md §10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hms_bridge.acid.markers import ACID_VERSION_FILE, METADATA_FILE, DataFormat
from hms_bridge.acid.names import (
    DirectoryName,
    OriginalFileName,
    is_hidden,
    is_named_like_directory,
    is_side_file,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFile:
    """One file. `path` is relative to the listing's root; no modification time: None."""

    path: str
    size_bytes: int
    modified_ms: int | None = None

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedDirectory:
    """A base, delta or delete delta with all files below it, nested ones too, hidden ones not.

    `path` is its name as found. `is_raw`: its files have the table's own columns, no ACID ones.
    `data_format`: what `_metadata_acid` says, None without one.
    """

    path: str
    name: DirectoryName
    files: tuple[ListedFile, ...] = ()
    side_files: tuple[ListedFile, ...] = ()
    is_raw: bool = False
    data_format: DataFormat | None = None
    has_acid_version: bool = False

    @property
    def is_compacted(self) -> bool:
        """Whether a compactor certainly made it (Hive 3's compacted deltas have no mark of it)."""
        return self.name.visibility_txn_id > 0 or self.data_format is DataFormat.COMPACTED

    @property
    def size_bytes(self) -> int:
        """Length of all its data files together."""
        return sum(file.size_bytes for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryListing:
    """Everything below a root (table, or one partition), as one look found it.

    Each tuple is sorted by path. `originals`: files from before the table was ACID, nested too.
    `unknown`: visible files that are none of the format; `hidden`: topmost hidden paths. Both are
    never read and never deleted.
    """

    root: str
    directories: tuple[ListedDirectory, ...] = ()
    originals: tuple[ListedFile, ...] = ()
    unknown: tuple[ListedFile, ...] = ()
    hidden: tuple[str, ...] = ()

    def full_path(self, path: str) -> str:
        """A path of this listing with its root before it."""
        return f"{self.root.rstrip('/')}/{path}"

    @classmethod
    def build(
        cls,
        root: str,
        *,
        files: Iterable[ListedFile],
        directories: Iterable[str] = (),
        data_format: Callable[[str], DataFormat | None] = lambda _: None,
        is_raw: Callable[[str], bool] = lambda _: True,
        is_insert_only: bool = False,
    ) -> DirectoryListing:
        """Sort what was found below a root.

        `directories`: paths of directories, which matter where they are empty. `data_format` is
        asked with the path of each `_metadata_acid`; `is_raw` with the path of one file of each
        base or delta whose files are named like originals. Insert-only tables take any visible
        file as data.
        """
        sorter = _Sorter(is_insert_only)
        for path in directories:
            sorter.add_directory(path)
        for file in files:
            sorter.add_file(file)
        return cls(
            root=root,
            directories=tuple(
                directory.listed(name, data_format, is_raw)
                for name, directory in sorted(sorter.directories.items())
            ),
            originals=tuple(sorted(sorter.originals, key=_path)),
            unknown=tuple(sorted(sorter.unknown, key=_path)),
            hidden=tuple(sorted(sorter.hidden)),
        )


class _FoundDirectory:
    """Files of one base, delta or delete delta, while they are gathered."""

    def __init__(self, name: DirectoryName) -> None:
        self._name = name
        self.files: list[ListedFile] = []
        self.side_files: list[ListedFile] = []
        self.markers: set[str] = set()

    def add(self, file: ListedFile, parts: list[str]) -> None:
        if len(parts) == 1 and parts[0] in (METADATA_FILE, ACID_VERSION_FILE):
            self.markers.add(parts[0])
        elif any(is_hidden(part) for part in parts):
            return
        elif is_side_file(parts[-1]):
            self.side_files.append(file)
        else:
            self.files.append(file)

    def listed(
        self,
        path: str,
        data_format: Callable[[str], DataFormat | None],
        is_raw: Callable[[str], bool],
    ) -> ListedDirectory:
        files = tuple(sorted(self.files, key=_path))
        has_metadata = METADATA_FILE in self.markers
        known = data_format(f"{path}/{METADATA_FILE}") if has_metadata else None
        is_compacted = self._name.visibility_txn_id > 0 or known is DataFormat.COMPACTED
        return ListedDirectory(
            path=path,
            name=self._name,
            files=files,
            side_files=tuple(sorted(self.side_files, key=_path)),
            is_raw=not is_compacted and self._has_raw_files(files, is_raw),
            data_format=known,
            has_acid_version=ACID_VERSION_FILE in self.markers,
        )

    def _has_raw_files(self, files: tuple[ListedFile, ...], is_raw: Callable[[str], bool]) -> bool:
        """Hive: AcidUtils.MetaDataFile.isRawFormat; all files of a directory are of one kind
        (docs/hive/acid.md §16)."""
        name = self._name
        if name.is_delete or name.min_write_id != name.max_write_id:
            return False
        named_raw = (file for file in files if OriginalFileName.parse(file.name))
        representative = next(named_raw, None)
        return representative is not None and is_raw(representative.path)


class _Sorter:
    def __init__(self, is_insert_only: bool) -> None:
        self._is_insert_only = is_insert_only
        self.directories: dict[str, _FoundDirectory] = {}
        self.originals: list[ListedFile] = []
        self.unknown: list[ListedFile] = []
        self.hidden: set[str] = set()

    def add_directory(self, path: str) -> None:
        parts = path.split("/")
        if self._acid_directory(parts[0]) is None:
            self._note_hidden(parts)

    def add_file(self, file: ListedFile) -> None:
        parts = file.path.split("/")
        directory = self._acid_directory(parts[0]) if len(parts) > 1 else None
        if directory is not None:
            directory.add(file, parts[1:])
        elif self._note_hidden(parts):
            return
        elif self._is_original(parts):
            self.originals.append(file)
        else:
            self.unknown.append(file)

    def _acid_directory(self, first: str) -> _FoundDirectory | None:
        if first not in self.directories:
            name = DirectoryName.parse(first)
            if name is None:
                return None
            self.directories[first] = _FoundDirectory(name)
        return self.directories[first]

    def _note_hidden(self, parts: list[str]) -> bool:
        for depth, part in enumerate(parts):
            if is_hidden(part):
                self.hidden.add("/".join(parts[: depth + 1]))
                return True
        return False

    def _is_original(self, parts: list[str]) -> bool:
        # `key=value` is another partition's directory, whose files are none of this root's; rows in
        # delta_x, on which Hive fails, are not everybody's to see.
        if any("=" in part or is_named_like_directory(part) for part in parts[:-1]):
            return False
        return self._is_insert_only or OriginalFileName.parse(parts[-1]) is not None


def _path(file: ListedFile) -> str:
    return file.path
