"""Directories that nobody sees before they are whole.

Where the file system renames directories in one step, a delta is written below a hidden directory
of the root and renamed. Elsewhere (object stores) it is written under its final name: its write id
is open, so no snapshot reads it before its transaction commits, and what a killed writer leaves
is an aborted delta. Compaction output, which replaces what readers see, must not be written so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fsspec import AbstractFileSystem

from changemanager.durable import settle_file
from changemanager.filesystem.opening import volume_of
from hms_bridge.acid.markers import ACID_VERSION, ACID_VERSION_FILE
from hms_bridge.acid.names import DirectoryName
from hms_bridge.errors import AcidFormatError
from hms_bridge.model.valid_ids import ValidTxnList
from hms_bridge.rows.publish import publish_directory

_TEMPORARY = re.compile(r"_tmp_(?:compaction|write)_v(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedDirectory:
    """A directory in the making. `hidden_root` None: it is written under its final name."""

    path: str
    final_path: str
    hidden_root: str | None


def hidden_name(token: str) -> str:
    """The hidden directory of the writer with this token, below the root that it writes to."""
    return f"_tmp_{token}"


def has_atomic_rename(fs: AbstractFileSystem) -> bool:
    """Whether renaming a directory is one step that others see whole or not at all."""
    return volume_of(fs).capabilities.has_atomic_rename


def stage_directory(
    fs: AbstractFileSystem, root: str, name: DirectoryName, token: str
) -> StagedDirectory:
    """Make a directory for a delta's files, with its version file.

    `token` names this writer apart from all others. Raises AcidFormatError if the delta is there.
    """
    base = root.rstrip("/")
    final_path = f"{base}/{name.format()}"
    if fs.exists(final_path):
        raise AcidFormatError("is there already; a delta is written once", final_path)
    hidden_root = f"{base}/{hidden_name(token)}" if has_atomic_rename(fs) else None
    path = final_path if hidden_root is None else f"{hidden_root}/{name.format()}"
    volume_of(fs).make_directory(base)  # a partition's first write; its name must last
    fs.makedirs(path, exist_ok=True)
    write_version_file(fs, path)
    return StagedDirectory(path=path, final_path=final_path, hidden_root=hidden_root)


def write_version_file(fs: AbstractFileSystem, directory: str) -> None:
    """Mark a directory as of ACID version 2; on the disk when this returns."""
    path = f"{directory}/{ACID_VERSION_FILE}"
    fs.pipe_file(path, ACID_VERSION)
    settle_file(volume_of(fs), path)


def publish(fs: AbstractFileSystem, staged: StagedDirectory) -> None:
    """Give a whole directory its final name. Raises AcidFormatError if the name is taken."""
    if staged.hidden_root is None:
        return
    publish_directory(fs, staged.path, staged.final_path)
    _remove_if_empty(fs, staged.hidden_root)


def discard(fs: AbstractFileSystem, staged: StagedDirectory) -> None:
    """Remove a directory that will not be published; one that is not there is no error."""
    if fs.exists(staged.path):
        fs.rm(staged.path, recursive=True)
    if staged.hidden_root is not None:
        _remove_if_empty(fs, staged.hidden_root)


def forget_dead_temporaries(
    fs: AbstractFileSystem, root: str, txns: ValidTxnList
) -> tuple[str, ...]:
    """Remove from a root what writers and compactions left that died, or that went on writing
    after they were given up for lost: their transactions are not open any more.

    Those above the watermark began after the look at transactions: they may be alive. Gives the
    names that were removed; a root that is not there has none. Raises OSError.
    """
    alive = set(txns.open_ids)
    try:
        entries = fs.ls(root, detail=True)
    except FileNotFoundError:
        return ()
    removed = []
    for entry in entries:
        name = str(entry["name"]).rstrip("/").rpartition("/")[2]
        match = _TEMPORARY.fullmatch(name)
        txn_id = int(match.group(1)) if match else 0
        if match and txn_id not in alive and txn_id <= txns.high_watermark:
            fs.rm(f"{root.rstrip('/')}/{name}", recursive=True)
            removed.append(name)
    return tuple(removed)


def _remove_if_empty(fs: AbstractFileSystem, path: str) -> None:
    if fs.exists(path) and not fs.ls(path, detail=False):
        fs.rmdir(path)
