"""Directories that nobody sees before they are whole.

Where the file system renames directories in one step, a delta is written below a hidden directory
of the root and renamed. Elsewhere (object stores) it is written under its final name: its write id
is open, so no snapshot reads it before its transaction commits, and what a killed writer leaves
is an aborted delta. Compaction output, which replaces what readers see, must not be written so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from changemanager.durable import settle_file
from changemanager.filesystem.volume import Volume
from hms_bridge.acid.markers import ACID_VERSION, ACID_VERSION_FILE
from hms_bridge.acid.names import DirectoryName
from hms_bridge.directories.rename import rename_directory
from hms_bridge.errors import AcidFormatError
from hms_bridge.model.ids import TxnId
from hms_bridge.model.valid_ids import ValidTxnList

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


def token_of(what: Literal["compaction", "write"], txn_id: TxnId) -> str:
    """The token of a transaction's compaction, or write."""
    return f"{what}_v{txn_id:07d}"


def stage_directory(volume: Volume, root: str, name: DirectoryName, token: str) -> StagedDirectory:
    """Make a directory for a delta's files, with its version file.

    `token` names this writer apart from all others. Raises AcidFormatError if the delta is there.
    """
    base = root.rstrip("/")
    final_path = f"{base}/{name.format()}"
    if volume.status(final_path) is not None:
        raise AcidFormatError("is there already; a delta is written once", final_path)
    has_hidden = volume.capabilities.has_atomic_rename
    hidden_root = f"{base}/{hidden_name(token)}" if has_hidden else None
    path = final_path if hidden_root is None else f"{hidden_root}/{name.format()}"
    volume.make_directory(base)  # a partition's first write; its name must last
    volume.make_working_directory(path)
    write_version_file(volume, path)
    return StagedDirectory(path=path, final_path=final_path, hidden_root=hidden_root)


def write_version_file(volume: Volume, directory: str) -> None:
    """Mark a directory as of ACID version 2; on the disk when this returns."""
    path = f"{directory}/{ACID_VERSION_FILE}"
    with volume.open_output(path) as output:
        output.write(ACID_VERSION)
    settle_file(volume, path)


def finish(volume: Volume, staged: StagedDirectory) -> None:
    """Give a whole directory its final name. Raises AcidFormatError if the name is taken."""
    if staged.hidden_root is None:
        return
    rename_directory(volume, staged.path, staged.final_path)
    _remove_if_empty(volume, staged.hidden_root)


def discard(volume: Volume, staged: StagedDirectory) -> None:
    """Remove a directory that will not get its name; one that is not there is no error."""
    if volume.status(staged.path) is not None:
        volume.remove_tree(staged.path)
    if staged.hidden_root is not None:
        _remove_if_empty(volume, staged.hidden_root)


def forget_dead_temporaries(volume: Volume, root: str, txns: ValidTxnList) -> tuple[str, ...]:
    """Remove from a root what writers and compactions left that died, or that went on writing
    after they were given up for lost: their transactions are not open any more.

    Those above the watermark began after the look at transactions: they may be alive. Gives the
    names that were removed; a root that is not there has none. Raises OSError.
    """
    alive = set(txns.open_ids)
    try:
        names = [status.name for status in volume.children(root)]
    except FileNotFoundError:
        return ()
    removed = []
    for name in names:
        match = _TEMPORARY.fullmatch(name)
        txn_id = int(match.group(1)) if match else 0
        if match and txn_id not in alive and txn_id <= txns.high_watermark:
            volume.remove_tree(f"{root.rstrip('/')}/{name}")
            removed.append(name)
    return tuple(removed)


def _remove_if_empty(volume: Volume, path: str) -> None:
    if volume.status(path) is not None and not volume.children(path):
        volume.remove_empty_directory(path)
