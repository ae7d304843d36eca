"""Asks and tells hooks inside of a transaction, and names the one that refused."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hms_bridge.backend.connection import Connection, DatabaseFailure
from hms_bridge.backend.failures import translate
from hms_bridge.errors import BackendError, MetaError, RetryableBackendError
from hms_bridge.hooks.port import PreHook, TransactionHook, VetoError
from hms_bridge.model.hook import NEVER_ASKED, Change, HookEvent

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class InnerStatements:
    """Implements ``Statements``: a connection that its user can neither commit nor roll back.

    ``failure`` is the first that a statement met, whatever the user made of it: PostgreSQL commits
    nothing after it, and says nothing; MySQL has rolled back already after a deadlock.
    """

    _connection: Connection
    failure: DatabaseFailure | None = field(default=None, init=False)

    def execute(self, statement: Any, parameters: Mapping[str, Any] | None = None) -> Any:
        """See ``Statements``."""
        try:
            return self._connection.execute(statement, parameters)
        except DatabaseFailure as error:
            self.failure = self.failure or error
            raise


@dataclass(frozen=True, kw_only=True, slots=True)
class InnerHooks:
    """Hooks of both kinds, by name, in the order in which they are called."""

    pre: tuple[tuple[str, PreHook], ...] = ()
    transactional: tuple[tuple[str, TransactionHook], ...] = ()

    def ask(self, changes: Sequence[Change]) -> None:
        """Raises MetaError if a hook refuses one."""
        for name, hook in self.pre:
            for change in changes:
                if change.type in NEVER_ASKED:
                    continue
                try:
                    hook.before_change(change)
                except KeyboardInterrupt:
                    raise
                except BaseException as error:
                    raise _refused("pre-event", name, change.described, error) from error

    def tell(self, events: Sequence[HookEvent], connection: Connection) -> None:
        """Raises MetaError if a hook fails, or a statement of it, also one whose failure the hook
        has caught: it cannot be committed. What may be tried again, as a deadlock, passes."""
        for name, hook in self.transactional:
            statements = InnerStatements(connection)
            try:
                hook.in_transaction(events, statements)
                if statements.failure is not None:
                    raise statements.failure
            except KeyboardInterrupt:
                raise
            except (BackendError, DatabaseFailure) as error:
                _refuse_statement(name, _types_of(events), error)
                raise
            except BaseException as error:
                raise _refused("transactional", name, _types_of(events), error) from error


def _types_of(events: Sequence[HookEvent]) -> str:
    return ", ".join(dict.fromkeys(event.type for event in events))


def _refuse_statement(name: str, what: str, error: Exception) -> None:
    """Raises MetaError for a statement of a hook that would fail again. The client hears the hook's
    name and what the database says, and not where that is."""
    reason: Exception = error
    if isinstance(error, DatabaseFailure):
        reason = translate(error, "the database", is_committing=False)
    failed = f"transactional hook {name}: a statement of it failed"
    if isinstance(reason, RetryableBackendError):
        _LOG.warning("%s on %s: %s", failed, what, reason)
        return
    _LOG.error("%s on %s: %s", failed, what, reason)
    raise MetaError(
        f"{failed}, so {what} is refused: {reason}; nothing was changed. Mend the hook or its "
        "tables, or take it out of the settings of the server"
    ) from error


def _refused(kind: str, name: str, what: str, error: BaseException) -> MetaError:
    """One that did not mean to refuse has refused all the same: nobody knows what it would say. So
    has one that asks for an end (``sys.exit``): the thread that it would end is a client's, or does
    the housekeeping of all."""
    if isinstance(error, VetoError):
        return MetaError(f"{kind} hook {name} refuses {what}: {error}")
    _LOG.error("%s hook %s failed on %s", kind, name, what, exc_info=error)
    return MetaError(
        f"{kind} hook {name} failed, so {what} is refused: {type(error).__name__}: {error}; "
        "nothing was changed. Mend the hook, or take it out of the settings of the server"
    )
