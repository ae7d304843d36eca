"""Whose entries ``hms-bridge compact --run`` does: over thrift a claim cannot choose, and nobody
gives a claimed entry back, so the default pool of a metastore is left to whoever serves it."""

from __future__ import annotations

from dataclasses import dataclass

import click

from hms_bridge.compaction.target import find_target
from hms_bridge.config.metastore_url import names_server
from hms_bridge.errors import CompactionError
from hms_bridge.metastore import Metastore
from hms_bridge.model.compaction import (
    DONE_HERE,
    OWN_POOL,
    Compaction,
    CompactionState,
    ShowCompactionsRequest,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ServedPool:
    """The pool to queue in: ``name`` None is the default one. ``is_selective``: a worker leaves
    what it does not do, as over a database; ``is_default``: it was asked to take all the same."""

    name: str | None
    is_selective: bool
    is_default: bool

    def require_claimable(self, metastore: Metastore, entry: Compaction) -> None:
        """Before a claim. Raises CompactionError where it could be of what others do."""
        if self.is_selective:
            return
        if self.is_default:
            _require_all_done_here(metastore, entry)
        elif entry.pool_name is None:
            raise CompactionError(
                f"compaction {entry.id} of {entry.target} waits in the default pool. A worker "
                "cannot choose among its entries over thrift://, and some may be for a Hive: wait "
                "for those with --wait, or do all that the pool holds here with --default-pool"
            )


def served_pool(
    metastore_url: str, name: str | None, *, is_run: bool, is_default: bool
) -> ServedPool:
    """What the options ask for. Raises UsageError for those that do not go together."""
    is_over_thrift = names_server(metastore_url)
    if is_default and (name or not is_run or not is_over_thrift):
        raise click.UsageError(
            "--default-pool goes with --run and a --metastore thrift://..., and without --pool"
        )
    if is_run and is_over_thrift and not is_default:
        name = name or OWN_POOL
    return ServedPool(name=name, is_selective=not is_over_thrift, is_default=is_default)


def _require_all_done_here(metastore: Metastore, wanted: Compaction) -> None:
    waiting = ShowCompactionsRequest(state=CompactionState.INITIATED)
    for entry in metastore.show_compactions(waiting):
        if entry.pool_name is None and (reason := why_not_here(metastore, entry)):
            raise CompactionError(
                f"the default pool holds compaction {entry.id} of {entry.target}, which hms-bridge "
                f"does not do ({reason}); let a Hive's worker take it, or take it out of the queue "
                f"(ABORT COMPACTIONS {entry.id} in Hive), then type the same again: compaction "
                f"{wanted.id} of {wanted.target} waits in that pool"
            )


def why_not_here(metastore: Metastore, entry: Compaction) -> str | None:
    """Why workers of hms-bridge do not do an entry of the queue; None where they do."""
    if entry.type not in DONE_HERE:
        return f"it is a {entry.type.name.lower()} compaction"
    try:
        find_target(metastore, entry.target)
    except CompactionError as error:
        return str(error)
    return None
