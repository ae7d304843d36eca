"""INSERT OVERWRITE with an empty result: a base of the write id without a file hides all rows.

Hive's `_files` cannot name it, and its replica keeps the old rows. Dumps of ours say so in a text
of their own, `_hms_bridge_emptied`, which Hive passes over (it lists directories of an event only).
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from changemanager.filesystem.volume import FileKind
from changemanager.location import Location, list_tree
from hms_bridge.acid.markers import METADATA_FILE
from hms_bridge.acid.names import DirectoryName, is_hidden
from hms_bridge.errors import ReplError
from hms_bridge.model.ids import WriteId


def is_emptied(root: Location, write_id: WriteId) -> bool:
    """Whether a write left a base without data below a table or partition. A TRUNCATE does too,
    and marks it; that is an event of its own."""
    base = root.child(DirectoryName.base(write_id).format())
    if base.status() is None or base.child(METADATA_FILE).status() is not None:
        return False
    return not any(
        one.kind is FileKind.FILE and not any(is_hidden(part) for part in one.path.split("/"))
        for one in list_tree(base)
    )


def format_emptied(partitions: Iterable[str]) -> str:
    """The text: names of partitions, or "" for a table without."""
    return json.dumps(sorted(partitions)) + "\n"


def parse_emptied(text: str | None, path: str) -> frozenset[str]:
    """Read the text, none if it is not there. Raises ReplError, naming ``path``."""
    try:
        found = json.loads(text or "[]")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise ReplError(f"{path}: no list of partitions; it is damaged: copy the dump again")
    return frozenset(found)
