"""Files that a dump names are pinned, then looked for: one whose files are gone already is none."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from changemanager.location import Resolver, path_below
from changemanager.uri import EncodedUri
from changemanager.whereabouts import LocatedFile, Whereabouts, locate
from hms_bridge.errors import SourceFileMissingError
from hms_bridge.metastore import Metastore
from hms_bridge.model.counted import counted
from hms_bridge.repl.file_pool import FilePool
from hms_bridge.repl.format.layout import DumpPaths
from hms_bridge.repl.lookup import all_tables
from hms_bridge.repl.pins import DumpPins, names_of
from hms_bridge.repl.remedies import begin_anew, bring_anew

_NAMED_IN_MESSAGE = 5


def hold_named(
    source: Metastore,
    resolve: Resolver,
    pins: DumpPins,
    paths: DumpPaths,
    files: Sequence[EncodedUri],
) -> None:
    """Pin first, then look.

    Raises SourceFileMissingError. Real Hive finishes such a dump and loses the rows.
    """
    late = frozenset(pins.hold(paths.root, files))
    find = partial(locate, resolve=resolve, is_content_checked=False)
    with FilePool() as pool:
        gone = [
            located
            for located in pool.each(find, dict.fromkeys(files))
            if located.location is None or _is_being_purged(located, late)
        ]
    missing = [f"{located.file.uri} ({located.reason})" for located in gone]
    if missing:
        pins.release(paths.root)
        raise SourceFileMissingError(
            f"lost: {counted(len(missing), 'file')} that the dump should name: "
            f"{'; '.join(missing[:_NAMED_IN_MESSAGE])}. {_first(gone)} "
            f"{_way_out(source, resolve, pins.database, gone)}",
            missing=tuple(missing),
        )


def _first(gone: Sequence[LocatedFile]) -> str:
    """What to do before tables are copied anew: a right that was taken away loses no file."""
    if any(located.is_unreadable for located in gone):
        return (
            "What cannot be read may still be there: let the dump's user read it, then dump again."
        )
    return "Bring them back, and dump more often than hive.repl.cm.retain."


def _way_out(
    source: Metastore, resolve: Resolver, database: str, lost: Sequence[LocatedFile]
) -> str:
    """The tables whose files are lost come whole; of one that is not there nobody knows."""
    places = {
        table.name: resolve(table.storage.location).uri
        for table in all_tables(source, database)
        if table.storage.location is not None
    }
    owners = {
        next((name for name, place in places.items() if path_below(located.file.uri, place)), None)
        for located in lost
    }
    owned = sorted(name for name in owners if name is not None)
    return begin_anew(database) if None in owners else bring_anew(database, owned)


def _is_being_purged(located: LocatedFile, late: Collection[str]) -> bool:
    """It is still there, and the purge took it before it was pinned."""
    is_archived = located.whereabouts is Whereabouts.IN_CM
    return is_archived and not names_of([located.file]).isdisjoint(late)
