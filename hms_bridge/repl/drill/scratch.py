"""The scratch database of a drill and its directory: made with a mark, removed by that mark only.

The mark, a property of the database, is its first trace and its last one: whatever dies between,
the next drill reads there what is to be removed.
"""

from __future__ import annotations

from dataclasses import replace

from changemanager.filesystem.volume import FileKind
from changemanager.location import Location, Resolver, list_tree
from hms_bridge.errors import ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Database
from hms_bridge.model.txn import AbortReason
from hms_bridge.repl.drill.plan import Scratch
from hms_bridge.repl.file_pool import FilePool
from hms_bridge.repl.format.layout import (
    DRILLS_DIRECTORY,
    DumpPaths,
    database_directory,
    is_place_of_drill,
)
from hms_bridge.repl.format.texts import make_dump_directory, remove_tree
from hms_bridge.repl.lookup import if_there
from hms_bridge.repl.target_objects import DRILL, new_database


def scratch_place(root: str, source_database: str, token: str) -> str:
    """Where one drill keeps its dumps, and what it copies of external tables."""
    drills = f"{root.rstrip('/')}/{DRILLS_DIRECTORY}"
    return f"{database_directory(drills, source_database)}/{token}"


def external_base(scratch: Scratch) -> str:
    """Where data of external tables goes."""
    return f"{scratch.place}/external"


def functions_root(scratch: Scratch) -> str:
    """Where files of functions go."""
    return f"{scratch.place}/functions"


def find_left_behind(target: Metastore, name: str) -> Scratch | None:
    """What a drill of this scratch database has left; None if nothing is there.

    Raises ReplError for a database that no drill has made.
    """
    database = if_there(target.get_database, name)
    if database is None:
        return None
    place = database.parameters.get(DRILL)
    if place is None:
        raise ReplError(
            f"database {name} of the target's metastore was not made by a drill, so it stays as it "
            "is; choose another name with --scratch"
        )
    if not is_place_of_drill(place):
        raise ReplError(
            f"database {name} says that its drill kept its dumps in {place}, which is no place of "
            f"a drill; look at its property {DRILL}, and drop the database by hand"
        )
    return Scratch(database=name, place=place)


def make_scratch(target: Metastore, scratch: Scratch) -> None:
    """The database with its mark. Raises AlreadyExistsError."""
    target.create_database(Database(name=scratch.database, parameters={DRILL: scratch.place}))


def begin_as_load(target: Metastore, scratch: Scratch, dumped: Database, paths: DumpPaths) -> None:
    """Give it the definition that a bootstrap load gives the database that it makes itself, so that
    a difference to the source is one of the replication."""
    existing = target.get_database(scratch.database)
    begun = new_database(dumped, scratch.database, paths.hive)
    target.alter_database(
        scratch.database,
        replace(
            begun,
            location=existing.location,
            managed_location=existing.managed_location,
            parameters={**begun.parameters, DRILL: scratch.place},
        ),
    )


def remove_scratch(target: Metastore, resolve: Resolver, scratch: Scratch) -> None:
    """Remove what a drill made; the mark, which names it, goes last. Nothing without the mark.

    Raises ReplError for a database that no drill has made.
    """
    if find_left_behind(target, scratch.database) != scratch:
        return
    place = resolve(scratch.place)
    remove_tree(place)
    for above in (place.parent, place.parent.parent):
        if above.status() is not None and not above.volume.children(above.path):
            above.volume.remove_empty_directory(above.path)
    # A real Hive refuses to drop a database while replays into it are open.
    replayed = target.get_replayed_txns(f"{scratch.database}.*")
    if replayed:
        target.abort_txns(tuple(replayed.values()), AbortReason.REPL_DEFAULT)
    target.drop_database(scratch.database, is_cascade=True)


def copy_dump(resolve: Resolver, source: DumpPaths, target: DumpPaths) -> None:
    """A dump's texts, as they were before it was loaded; its finish marker last."""
    marks = {_below(source, path) for path in (source.finished_load, source.load_metadata)}
    finish = _below(source, source.finished_dump)
    here, there = resolve(source.hive), resolve(target.hive)
    names = [file.path for file in list_tree(here) if file.kind is FileKind.FILE]
    copied = [name for name in names if name not in marks and name != finish]
    directories = dict.fromkeys(there.child(name).parent for name in [*copied, finish])
    for directory in directories:
        make_dump_directory(directory)
    with FilePool() as pool:
        pool.all(lambda name: _copy(here, there, name), copied)
    _copy(here, there, finish)


def _copy(here: Location, there: Location, name: str) -> None:
    place = there.child(name)
    place.volume.write_new(place.path, here.child(name).chunks())


def _below(paths: DumpPaths, path: str) -> str:
    return path.removeprefix(f"{paths.hive}/")
