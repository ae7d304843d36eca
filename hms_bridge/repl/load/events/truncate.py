"""Empty a table or partition on the target as its source was emptied."""

from __future__ import annotations

from changemanager.location import Location
from hms_bridge.acid.markers import METADATA_FILE, DataFormat, format_metadata
from hms_bridge.acid.names import DirectoryName, is_hidden
from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import Table
from hms_bridge.model.ids import WriteId
from hms_bridge.repl.format.texts import ensure_content, remove_tree


def truncate_directory(root: Location, table: Table, write_id: int, where: str) -> None:
    """A transactional table gets an empty base of the source's write id, seen once that commits.

    Other managed tables lose their files at once, as on the source.
    """
    if table.is_transactional:
        if write_id <= 0:
            raise ReplError(
                f"{where}: a truncate of {table.full_name} without write id cannot be replayed; "
                "drop the replica and load a new bootstrap dump (repl dump --bootstrap, repl load)"
            )
        base = root.child(DirectoryName.base(WriteId(write_id)).format())
        ensure_content(base.child(METADATA_FILE), format_metadata(DataFormat.TRUNCATED))
        return
    if root.status() is None:
        return
    for child in root.volume.children(root.path):
        if not is_hidden(child.name) and "=" not in child.name:
            remove_tree(root.child(child.name))
