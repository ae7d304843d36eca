"""The files that a dump names: pinned, and proved to be there, before it is finished."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

from changemanager.location import Resolver, path_below
from changemanager.uri import EncodedUri
from changemanager.whereabouts import LocatedFile, Whereabouts, locate
from hms_bridge.errors import SourceFileMissingError
from hms_bridge.model.catalog import Table
from hms_bridge.model.counted import counted
from hms_bridge.repl.file_pool import FilePool
from hms_bridge.repl.format.layout import DumpPaths
from hms_bridge.repl.pins import DumpPins, names_of
from hms_bridge.repl.remedies import begin_anew, bring_anew

_NAMED_IN_MESSAGE = 5


def pin_files(
    resolve: Resolver,
    pins: DumpPins,
    paths: DumpPaths,
    files: Sequence[EncodedUri],
    database: str,
    tables: Iterable[Table],
) -> None:
    """Pin first, then look: a dump whose files are gone already is no dump.

    Raises SourceFileMissingError, with the way out for the ``tables`` whose files are lost. Real
    Hive finishes such a dump and loses the rows.
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
        places = {
            table.name: resolve(table.storage.location).uri
            for table in tables
            if table.storage.location is not None
        }
        raise SourceFileMissingError(
            f"lost: {counted(len(missing), 'file')} that the dump should name: "
            f"{'; '.join(missing[:_NAMED_IN_MESSAGE])}. Bring them back, and dump more often "
            f"than hive.repl.cm.retain. {_way_out(database, places, gone)}",
            missing=tuple(missing),
        )


def _way_out(database: str, places: Mapping[str, str], lost: Sequence[LocatedFile]) -> str:
    """The tables whose files are lost come whole; of one that is not there nobody can tell."""
    owners = {
        next(
            (name for name, place in places.items() if path_below(located.file.uri, place)),
            None,
        )
        for located in lost
    }
    names = sorted(name for name in owners if name is not None)
    return begin_anew(database) if None in owners else bring_anew(database, names)


def _is_being_purged(located: LocatedFile, late: Collection[str]) -> bool:
    """It is still there, and the purge took it before it was pinned."""
    is_archived = located.whereabouts is Whereabouts.IN_CM
    return is_archived and not names_of([located.file]).isdisjoint(late)
