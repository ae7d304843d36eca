"""A database becomes a source with its first dump, and stays none if that dump fails.

The mark has replaced files archived, and the pin keeps the purge from them for as long as the
budget lasts: where no dump names them, both only cost room.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from changemanager.errors import ChangeManagerError
from hms_bridge.errors import HmsBridgeError, ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.model.properties import SOURCE_FOR
from hms_bridge.repl.dump.plan import DumpRequest
from hms_bridge.repl.dump.planner import require_dumpable
from hms_bridge.repl.lookup import if_there
from hms_bridge.repl.pins import DumpPins
from hms_bridge.repl.target_objects import with_parameters

_LOG = logging.getLogger(__name__)
_REFUSALS = (HmsBridgeError, ChangeManagerError, OSError)


@contextmanager
def marked_source(
    source: Metastore,
    request: DumpRequest,
    pins: DumpPins,
    require_unfinished: Callable[[], object],
) -> Iterator[None]:
    """Inside, replaced files of the database are archived (I4) and pinned. If the dump fails there,
    what this call has marked and pinned is taken back, unless ``require_unfinished`` raises
    ReplError: a dump that was finished meanwhile, this or another one, needs both.

    A process that is killed leaves both; the next dump goes on with them.
    """
    # First the pin: once the database is a source, no purge may take what is archived.
    begun = pins.begin()
    was_source = True
    try:
        database = source.get_database(request.database_name)
        require_dumpable(database)
        was_source = database.is_replication_source
        if not was_source:
            marked = with_parameters(database, {SOURCE_FOR: request.policy})
            source.alter_database(request.database_name, marked)
        yield
    except (*_REFUSALS, KeyboardInterrupt):
        if begun is None and was_source:
            raise
        try:
            require_unfinished()
            if not was_source:
                _unmark(source, request)
            pins.take_back(begun)
        except _REFUSALS as error:
            _say_left(request, error)
        raise


def _unmark(source: Metastore, request: DumpRequest) -> None:
    """Not if somebody has given the mark another value meanwhile."""
    database = if_there(source.get_database, request.database_name)
    if database is not None and database.parameters.get(SOURCE_FOR) == request.policy:
        unmarked = with_parameters(database, {SOURCE_FOR: None})
        source.alter_database(request.database_name, unmarked)


def _say_left(request: DumpRequest, error: Exception) -> None:
    if isinstance(error, ReplError):
        return  # of a finished dump, or of another process that is at work
    name = request.database_name
    _LOG.warning(
        "the dump of %s failed, and what it began could not be taken back (%s): replaced files are "
        "archived, and kept for the next dump to %s. 'repl dump %s' goes on with that, 'repl end "
        "%s' ends it",
        name,
        error,
        request.root,
        name,
        name,
    )
