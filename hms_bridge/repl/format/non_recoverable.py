"""`_non_recoverable`: Hive's mark of a failure that no further try ends.

Hive writes it where the error's code is above 40000 (ReplUtils.handleException); dump and load then
answer 40011 until it is gone (docs/hive/replication.md §10). Here these are:

- events that were purged before they were dumped (40006): the dump's directory has the mark alone;
- a dump that the replica cannot follow any more, because events between are in no dump (40006), or
  because a replayed transaction was aborted there (40018): the mark is in the dump, unless a
  replica has loaded it, which goes on with the next one.

Errors that another try may end, a lost file among them (20016), leave no mark, as with Hive. It
goes with its dump ('repl dump DATABASE --discard'), with the next bootstrap that is asked for, or
by hand.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from changemanager.errors import ChangeManagerError
from changemanager.location import Resolver
from hms_bridge.clock import Clock
from hms_bridge.errors import EventGapError, IncompatibleError, ReplError
from hms_bridge.repl.format.directories import DumpState, later_than, list_dumps
from hms_bridge.repl.format.layout import DumpPaths, database_directory
from hms_bridge.repl.format.manifest import FailureMark
from hms_bridge.repl.format.texts import make_dump_directory, write_text

_LOG = logging.getLogger(__name__)

_EVENTS_MISSING = 40006
_INCOMPATIBLE = 40018


def hive_code(error: ReplError) -> int | None:
    """The number of Hive's error; None for one that another try may end."""
    if isinstance(error, EventGapError):
        return _EVENTS_MISSING
    return _INCOMPATIBLE if isinstance(error, IncompatibleError) else None


@contextmanager
def marking_dump(
    resolve: Resolver, root: str, database: str, clock: Clock, new_name: Callable[[], str]
) -> Iterator[None]:
    """Plan and make a dump inside; what no further dump ends is marked, and raised."""
    try:
        yield
    except ReplError as error:
        if hive_code(error) is not None:
            above = resolve(database_directory(root, database))
            paths = DumpPaths(above.child(new_name()).uri)
            hive = resolve(paths.hive)
            make_dump_directory(hive)
            dumps = list_dumps(resolve, root, database)
            _mark(resolve, paths, error, later_than(dumps, clock.now_ms()))
        raise


@contextmanager
def marking_load(resolve: Resolver, root: str, database: str) -> Iterator[None]:
    """Plan and carry out a load inside; what no further load ends is marked, and raised."""
    try:
        yield
    except ReplError as error:
        if hive_code(error) is not None:
            finished = (
                dump
                for dump in list_dumps(resolve, root, database)
                if dump.state in (DumpState.FINISHED, DumpState.LOADED)
            )
            newest = next(finished, None)
            if newest is not None and newest.state is DumpState.FINISHED:
                _mark(resolve, newest.paths, error, newest.time_ms)
        raise


def _mark(resolve: Resolver, paths: DumpPaths, error: ReplError, time_ms: int) -> None:
    mark = FailureMark(text=f"{hive_code(error)}: {error}", time_ms=time_ms)
    try:
        write_text(resolve(paths.non_recoverable), mark.format())
    except (OSError, ChangeManagerError) as failure:
        _LOG.warning("%s could not be written: %s", paths.non_recoverable, failure)
