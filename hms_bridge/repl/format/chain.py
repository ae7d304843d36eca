"""Which of the kept dumps make a whole database together. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hms_bridge.model.ids import EventId
from hms_bridge.repl.format.directories import DumpDirectory, DumpState
from hms_bridge.repl.format.dump_metadata import DumpType

_WHOLE = (DumpState.FINISHED, DumpState.LOADED)


@dataclass(frozen=True, kw_only=True, slots=True)
class Chain:
    """A bootstrap dump and the incremental ones that follow on it, oldest first. ``broken``: why
    there is none; ``dumps`` are then those that were found on the way back, newest first."""

    dumps: tuple[DumpDirectory, ...]
    broken: str = ""

    @property
    def directories(self) -> tuple[str, ...]:
        """Where its dumps are."""
        return tuple(dump.paths.root for dump in self.dumps)


def newest_chain(dumps: Sequence[DumpDirectory]) -> Chain:
    """Back from the newest finished dump to the bootstrap dump that it follows on. ``dumps``:
    newest first."""
    newest_first: list[DumpDirectory] = []
    begins_at: EventId | None = None
    for dump in dumps:
        metadata = dump.metadata
        if dump.state not in _WHOLE or metadata is None:
            continue
        if begins_at is not None and metadata.last_event_id != begins_at:
            break
        newest_first.append(dump)
        if metadata.type == DumpType.BOOTSTRAP.value:
            return Chain(dumps=tuple(reversed(newest_first)))
        begins_at = metadata.from_event_id
    if not newest_first:
        return Chain(dumps=(), broken="there is no finished dump")
    oldest = newest_first[-1].paths.root
    why = (
        f"no dump is kept that ends at event {begins_at}, where {oldest} begins "
        "(a finished dump removes older ones, unless hive.repl.retain.prev.dump.dir is true)"
    )
    return Chain(dumps=tuple(newest_first), broken=why)
