"""Which write ids a reader sees, on both sides, at the event at which the replica stands. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from hms_bridge.model.ids import WriteId
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.repl.whole_lists import ids_text


def seen_at_event(
    now: ValidWriteIdList,
    *,
    later: Collection[WriteId],
    replica: ValidWriteIdList | None,
) -> ValidWriteIdList:
    """The source's list as it was at the event. ``later``: what was given or committed since.

    What the replica shows of it already, and the source too, stays: a bootstrap's snapshot is
    taken after its event, and a load that is at work notes its event after it has applied it.
    """
    hidden = (
        write_id
        for write_id in later
        if replica is None or not (replica.is_valid(write_id) and now.is_valid(write_id))
    )
    return replace(now, open_ids=(*now.open_ids, *hidden))


def seen_on_one_side(source: ValidWriteIdList, replica: ValidWriteIdList) -> tuple[WriteId, ...]:
    """Write ids of which only one side's readers see the rows, ascending."""
    ends = sorted((_highest(source), _highest(replica)))
    beyond = range(ends[0] + 1, ends[1] + 1)
    hidden = {*source.open_ids, *source.aborted_ids, *replica.open_ids, *replica.aborted_ids}
    candidates = {*(write_id for write_id in hidden if write_id <= ends[0]), *beyond}
    return tuple(
        WriteId(number)
        for number in sorted(candidates)
        if source.is_valid(WriteId(number)) != replica.is_valid(WriteId(number))
    )


def seen_text(write_ids: ValidWriteIdList) -> str:
    """For people: ``up to 7 without 3, 5``."""
    end = _highest(write_ids)
    hidden = sorted(
        number for number in {*write_ids.open_ids, *write_ids.aborted_ids} if number < end
    )
    without = f" without {ids_text(hidden)}" if hidden else ""
    return f"up to {end}{without}"


def _highest(write_ids: ValidWriteIdList) -> int:
    """The highest one that readers see; 0 for none."""
    end: int = write_ids.high_watermark
    while end > 0 and not write_ids.is_valid(WriteId(end)):
        end -= 1
    return end
