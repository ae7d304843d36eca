"""The three kinds of hooks: what a program writes to be asked or told.

A class may be of several kinds. Where each is named: :mod:`hms_bridge.hooks.loading`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from hms_bridge.model.hook import Change, HookEvent, HookPosition


class VetoError(Exception):
    """What a hook raises to refuse a change; its text is for who asked for the change."""


class NotHeardError(Exception):
    """What a hook raises to hear of the same event again, later; its text, which is for who runs
    the server, goes into the log, without a traceback."""


class PreHook(Protocol):
    """Asked before a change is committed (Hive: MetaStorePreEventListener)."""

    def before_change(self, change: Change) -> None:
        """Return, or raise: then nothing is changed, and the client gets a MetaException that
        names the hook. Called inside of the database transaction, again if that has to be tried
        again; it must have no effect of its own."""


class Statements(Protocol):
    """SQL inside of a transaction that somebody else ends."""

    def execute(self, statement: Any, parameters: Mapping[str, Any] | None = None) -> Any:
        """A statement of SQLAlchemy's; its result. One that fails undoes the transaction, also if
        the hook catches what is raised."""


class TransactionHook(Protocol):
    """Told inside of the transaction (Hive: transactional MetaStoreEventListener)."""

    def in_transaction(self, events: Sequence[HookEvent], statements: Statements) -> None:
        """What it writes is committed with the events, or neither is; if it raises, neither is.
        Everyone else who logs an event waits until it returns. The same events may come again
        with the same ids, after a transaction that was rolled back."""


class EventHook(Protocol):
    """Told after the commit (Hive: MetaStoreEventListener)."""

    def on_event(self, event: HookEvent) -> None:
        """One event, committed. It is called on a thread that does nothing else; again later,
        before any other event, if it raises."""


class HookPositions(Protocol):
    """Where hooks are, and what follows; each call is a transaction.

    The behaviour suite: ``tests/service/test_hook_positions.py``.
    """

    def register(self, name: str) -> None:
        """A new hook hears what comes from now on."""

    def take(self, name: str, owner: str) -> HookPosition | None:
        """Up to where it has heard; None if another process tells this hook."""

    def advance(self, name: str, owner: str, since: HookPosition, last: HookPosition) -> bool:
        """It has heard all from ``since``, which was taken or stored last, up to ``last``. False,
        and no change, if another process tells this hook now, and has stored something."""

    def release(self, name: str, owner: str) -> None:
        """Let another process tell it."""

    def following(
        self, last: HookPosition, limit: int
    ) -> tuple[HookPosition, tuple[HookEvent, ...]]:
        """The newest there is, and the first that follow a position, in the order of commits."""
