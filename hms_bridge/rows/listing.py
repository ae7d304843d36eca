"""Looks below a root on any file system and sorts what is there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from fsspec import AbstractFileSystem

from hms_bridge.acid.listing import DirectoryListing, ListedFile
from hms_bridge.acid.markers import DataFormat, parse_metadata
from hms_bridge.acid.names import DirectoryName, is_hidden
from hms_bridge.errors import AcidFormatError


def list_acid_directory(
    fs: AbstractFileSystem,
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
    look = _Look(fs, root)

    def data_format(path: str) -> DataFormat | None:
        try:
            return parse_metadata(fs.cat_file(look.full(path)), look.full(path))
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


def find_acid_roots(fs: AbstractFileSystem, table_root: str) -> tuple[str, ...]:
    """The roots below a table's directory: each directory that holds a base or delta, sorted.

    For an unpartitioned table that is the table's directory itself; for a partitioned one its
    partitions, known to the metastore or not.
    """
    files, directories = _Look(fs, table_root).everything()
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

    def __init__(self, fs: AbstractFileSystem, root: str) -> None:
        self._fs = fs
        self._root = str(fs._strip_protocol(root)).rstrip("/")

    def full(self, path: str) -> str:
        return f"{self._root}/{path}"

    def everything(self) -> tuple[list[ListedFile], list[str]]:
        """Files and directories below the root, by their paths relative to it."""
        self._fs.invalidate_cache(self._root)
        # Object stores list a whole prefix at once; elsewhere a failing directory must not pass
        # for an empty one, as it does in fsspec's find().
        entries = self._flat() if getattr(self._fs, "async_impl", False) else self._walked()
        files: list[ListedFile] = []
        directories: list[str] = []
        for entry in entries:
            path = self._relative(entry)
            if not path:
                continue
            if entry["type"] == "directory":
                directories.append(path)
            else:
                files.append(
                    ListedFile(
                        path=path,
                        size_bytes=int(entry["size"] or 0),
                        modified_ms=_modified_ms(entry),
                    )
                )
        return files, directories

    def _flat(self) -> list[dict[str, Any]]:
        try:
            return list(self._fs.find(self._root, withdirs=True, detail=True).values())
        except FileNotFoundError:
            return []

    def _walked(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        pending = [self._root]
        while pending:
            path = pending.pop()
            try:
                entries = self._fs.ls(path, detail=True)
            except FileNotFoundError:
                self._refuse_link_to_nothing(path)
                continue
            for entry in entries:
                name = self._relative(entry).rpartition("/")[2]
                if entry.get("islink") and not is_hidden(name):
                    raise _link(entry["name"])
                found.append(entry)
                if entry["type"] == "directory" and not is_hidden(name):
                    pending.append(entry["name"])
        return found

    def _refuse_link_to_nothing(self, path: str) -> None:
        """The root may be a link; one whose target is away (not mounted) is no empty table."""
        is_link = getattr(self._fs, "islink", None)
        if is_link is not None and is_link(path):
            raise AcidFormatError("is a symbolic link that leads nowhere; mount its target", path)

    def _relative(self, entry: dict[str, Any]) -> str:
        name = str(entry["name"]).rstrip("/")
        if name == self._root and entry["type"] != "directory":
            raise AcidFormatError("is a file; name the table's or partition's directory", name)
        return name[len(self._root) + 1 :]


def _link(path: str) -> AcidFormatError:
    return AcidFormatError(
        "is a symbolic link, whose rows would neither be compacted nor archived nor replicated; "
        "put the file or directory itself there, or mount it there",
        path,
    )


def _modified_ms(entry: dict[str, Any]) -> int | None:
    """File systems call the time differently and give seconds or a datetime."""
    for key in ("mtime", "LastModified", "created"):
        value = entry.get(key)
        if isinstance(value, datetime):
            return int(value.timestamp() * 1000)
        if isinstance(value, int | float):
            return int(value * 1000)
    return None
