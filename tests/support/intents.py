"""One write-ahead row at a time."""

from __future__ import annotations

from changemanager.manifest import ArchiveIntent, ArchiveIntents, IntentState


def add_intent(store: ArchiveIntents, intent: ArchiveIntent) -> ArchiveIntent:
    (stored,) = store.add_intents([intent])
    return stored


def advance_intent(
    store: ArchiveIntents,
    intent_id: str,
    from_state: IntentState,
    to_state: IntentState,
    now_ms: int,
    reason: str = "",
) -> bool:
    return bool(store.advance_intents([intent_id], from_state, to_state, now_ms, reason))
