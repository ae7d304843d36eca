"""A dump of nothing, from which the dumps of a promoted replica go on.

It is loaded from the start: whoever loads next already has what the database held at its event.
"""

from __future__ import annotations

from changemanager.durable import settle_names, settle_tree
from changemanager.location import Resolver
from hms_bridge.metastore import Metastore
from hms_bridge.model.ids import EventId
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.repl.dump.origin import write_origin
from hms_bridge.repl.dump.plain_tables import plain_places, write_plain
from hms_bridge.repl.format.dump_metadata import DumpMetadata, DumpType
from hms_bridge.repl.format.events_dump import EventsDump
from hms_bridge.repl.format.hashed_texts import NotedTexts
from hms_bridge.repl.format.layout import DumpPaths
from hms_bridge.repl.format.manifest import FinishMark
from hms_bridge.repl.format.texts import (
    ensure_content,
    is_there,
    read_text,
    remove_tree,
    write_text,
)
from hms_bridge.repl.lookup import all_tables

_METADATA_BYTES_MAX = 1 << 20


def ensure_beginning(
    source: Metastore,
    resolve: Resolver,
    paths: DumpPaths,
    *,
    database: str,
    cm_root: str | None,
    time_ms: int,
) -> EventId:
    """The event of the dump of nothing at ``paths``, which is written unless it is there.

    Nobody may change the database meanwhile. ``time_ms``: later than that of any other dump.
    Stopped anywhere, it is done by calling it again.
    """
    marker, metadata = resolve(paths.finished_dump), resolve(paths.metadata)
    if is_there(marker):
        text = read_text(metadata, _METADATA_BYTES_MAX)
        return DumpMetadata.parse(text, paths.metadata).to_event_id
    root = resolve(paths.root)
    remove_tree(root)
    event_id = source.get_current_event_id()
    texts = NotedTexts(resolve, paths)
    write_plain(texts, plain_places(source, resolve, all_tables(source, database)))
    write_origin(source, texts, event_id, event_id)
    progress = EventsDump(last_event_id=event_id, event_count=0, is_batched=False)
    texts.write({paths.events_dump: progress.format(), paths.beginning: f"{database}\n"})
    scope = ReplScope(database_name=database)
    texts.write_metadata(DumpType.INCREMENTAL, scope, cm_root, event_id, event_id)
    mark = FinishMark(manifest_digest=texts.manifest(0), time_ms=time_ms)
    # Before the finish marker: no load ever takes it for one that waits.
    write_text(resolve(paths.finished_load), "")
    settle_tree(root.volume, root.path)
    ensure_content(marker, mark.format().encode())
    settle_names(marker.volume, marker.parent.path)
    return event_id
