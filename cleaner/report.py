"""Explanations as rows: one for the entry itself, one for each path that goes or stays; and what
came of a pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from changemanager.location import path_below
from cleaner.explain import EntryExplanation, wait_text
from cleaner.plan import CleaningOutcome, EntryPlan
from hms_bridge.model.compaction import Compaction

_WAITING_SHOWN_MAX = 3


def run_rows(
    outcomes: Iterable[CleaningOutcome], waiting: Iterable[EntryExplanation]
) -> list[dict[str, object]]:
    """Rows for the columns of `cleaner run`: what was cleaned or tried, then what has to wait."""
    rows = [
        _entry(outcome.entry)
        | {
            "state": outcome.state.value,
            "directories": outcome.victim_count,
            "archived": outcome.archived_count,
            "deleted": outcome.deleted_count,
            "bytes": outcome.freed_bytes,
            "message": outcome.message,
        }
        for outcome in outcomes
    ]
    nothing = dict.fromkeys(("directories", "archived", "deleted", "bytes"), 0)
    return rows + [
        _entry(explanation.entry)
        | nothing
        | {"state": explanation.readiness.value, "message": explanation.reason}
        for explanation in waiting
    ]


def waiting_line(waiting: Sequence[EntryExplanation], now_ms: int) -> str:
    """How many entries have to wait, and what the first of them wait for."""
    shown = "; ".join(wait_text(entry, now_ms) for entry in waiting[:_WAITING_SHOWN_MAX])
    more = len(waiting) - _WAITING_SHOWN_MAX
    verb = "waits" if len(waiting) == 1 else "wait"
    return f"{len(waiting)} {verb}: {shown}" + (f"; and {more} more" if more > 0 else "")


def _entry(entry: Compaction) -> dict[str, object]:
    return {
        "compactionid": entry.id,
        "target": str(entry.target),
        "type": entry.type.name,
    }


def plan_rows(explained: Iterable[EntryExplanation]) -> list[dict[str, object]]:
    """Rows for the columns of `cleaner plan`."""
    return [row for explanation in explained for row in _rows(explanation)]


def _rows(explanation: EntryExplanation) -> Iterator[dict[str, object]]:
    head: dict[str, object] = {
        "compactionid": explanation.entry.id or None,
        "target": str(explanation.entry.target),
        "type": explanation.entry.type.name,
        "state": explanation.readiness.value,
    }
    yield head | {
        "path": None,
        "decision": "clean" if explanation.readiness.is_ready else "wait",
        "reason": explanation.reason,
    }
    if explanation.plan is not None:
        for row in _paths(explanation, explanation.plan):
            yield head | row


def _paths(explanation: EntryExplanation, plan: EntryPlan) -> Iterator[dict[str, object]]:
    verb = "archive and delete" if plan.target.is_archived else "delete"
    if not explanation.readiness.is_ready:
        verb = f"{verb} later"
    for root in plan.roots:
        below = path_below(root.location, plan.target.location)
        prefix = root.location if below is None else below
        for victim in root.plan.victims:
            yield {
                "path": "/".join(filter(None, (prefix, victim.path))),
                "decision": verb,
                "reason": victim.reason.value,
                "by": victim.by,
                "bytes": victim.size_bytes,
            }
        for kept in root.plan.kept:
            yield {
                "path": "/".join(filter(None, (prefix, kept.path))),
                "decision": "keep",
                "reason": kept.reason.value,
            }
