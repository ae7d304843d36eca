"""Do for a window of events together what each of them would do by itself.

Transactions are opened and write ids given in few calls, and the files of all commits come side by
side, so that flushes are waited for once. Readers see none of it before the commits, which come in
their order, many of them in one step. A load that is killed meanwhile leaves what one leaves that
is killed between an event's own steps: open transactions, and files of theirs.

Nothing is decided here. What is unusual is left to the event, which refuses it at its turn, when
all that comes before it is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from hms_bridge.errors import HmsBridgeError
from hms_bridge.repl.format.dump_metadata import DumpType
from hms_bridge.repl.format.reader import DumpedEvent
from hms_bridge.repl.load.events.commit import prepare_commit
from hms_bridge.repl.load.events.context import ReplayContext
from hms_bridge.repl.load.events.txn import allocate_ahead, open_ahead


def go_ahead(context: ReplayContext, events: Sequence[DumpedEvent]) -> None:
    """``events``: those of a window that are replayed."""
    if len(events) < 2:
        return
    with suppress(HmsBridgeError):
        open_ahead(context.replica, _of_type(events, DumpType.OPEN_TXN))
        allocate_ahead(context, _of_type(events, DumpType.ALLOC_WRITE_ID))
        _bring_files(context, _of_type(events, DumpType.COMMIT_TXN))


def _of_type(events: Sequence[DumpedEvent], kind: DumpType) -> tuple[DumpedEvent, ...]:
    return tuple(event for event in events if event.type == kind.value)


def _bring_files(context: ReplayContext, commits: Sequence[DumpedEvent]) -> None:
    replica = context.replica
    looking = replace(context, tables={})
    prepared = {event.id: prepare_commit(looking, event) for event in commits}
    replica.copy_places([place for commit in prepared.values() for place in commit.places(replica)])
    context.ahead.commits.update(prepared)
    context.ahead.copied.update(prepared)
