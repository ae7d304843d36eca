"""INSERT OVERWRITE with an empty result: a base of the write id without a file hides all rows.

Hive's `_files` cannot name it, and its replica keeps the old rows (docs/hive/replication.md §26).
Dumps of ours say so in a text of their own, `_hms_bridge_emptied`, which Hive passes over (it lists
directories of an event only).

Once a compaction has taken it up and a cleaner came by, the base is gone. The compacted one then
decides: if it has a row that is older than the write, nothing was overwritten. If it has none, the
rows of before are gone, by this write or by one of those that the compaction took up as well; the
replica may take them away at this write, as after all of them both sides show the same.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.compute as pc

from changemanager.filesystem.volume import FileKind
from changemanager.location import Location, list_tree
from hms_bridge.acid.markers import METADATA_FILE
from hms_bridge.acid.names import DirectoryName, is_hidden
from hms_bridge.errors import AcidFormatError
from hms_bridge.model.ids import WriteId
from hms_bridge.orc.acid_layout import AcidLayout
from hms_bridge.orc.acid_reader import OrcFile, open_orc_file


def is_emptied(root: Location, write_id: WriteId) -> bool:
    """Whether a write left a base without data below a table or partition. A TRUNCATE does too,
    and marks it; that is an event of its own."""
    base = root.child(DirectoryName.base(write_id).format())
    if base.status() is None or base.child(METADATA_FILE).status() is not None:
        return False
    return not any(_data_files(base))


def oldest_row(base: Location) -> WriteId | None:
    """The lowest write id that a row of a compacted base was inserted with; None for no rows.

    Raises AcidFormatError for files without ACID columns, which hold none (insert-only tables).
    """
    lowest_ids = []
    for file in _data_files(base):
        with open_orc_file(file.volume, file.path) as opened:
            layout = opened.require_layout()
            lowest_ids += [
                _oldest_of(opened, layout, stripe) for stripe in range(opened.stripe_count)
            ]
    return WriteId(min(lowest_ids)) if lowest_ids else None


def _data_files(base: Location) -> Iterator[Location]:
    for listed in list_tree(base):
        hidden = any(is_hidden(part) for part in listed.path.split("/"))
        if listed.kind is FileKind.FILE and not hidden:
            yield base.child(listed.path)


def _oldest_of(file: OrcFile, layout: AcidLayout, stripe: int) -> int:
    statistics = file.tail.stripe_statistics()
    if len(statistics) == file.stripe_count:
        bounds = statistics[stripe].column_statistics[layout.original_write_id].int_statistics
        if bounds.HasField("minimum"):
            return int(bounds.minimum)
    return int(pc.min(file.read_keys(stripe).column(0)).as_py())


def was_emptied(root: Location, write_id: WriteId) -> bool | None:
    """Whether a write that reported no files emptied a source's table or partition, as its
    directory shows now. None: a compaction may have taken up the base, and what it left does not
    show it."""
    if is_emptied(root, write_id):
        return True
    if root.status() is None:
        return False
    parsed = (DirectoryName.parse(child.name) for child in root.volume.children(root.path))
    covering = [
        name
        for name in parsed
        if name is not None and name.is_base and name.max_write_id > write_id
    ]
    if not covering:
        return False
    # Bases of earlier compactions may wait for their readers: the newest has what is left of all.
    newest = max(covering, key=lambda base: (base.max_write_id, base.visibility_txn_id))
    try:
        oldest = oldest_row(root.child(newest.format()))
    except AcidFormatError:
        return None
    return False if oldest is not None and oldest < write_id else None
