"""Explanations as rows: one for the entry itself, one for each path that goes or stays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from changemanager.location import path_below
from cleaner.explain import EntryExplanation
from cleaner.plan import EntryPlan


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
