"""A worker that starts anew ends what workers of its host left when they were killed."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable

from hms_bridge.metastore import Metastore
from hms_bridge.model.compaction import Compaction, CompactionState, ShowCompactionsRequest
from hms_bridge.model.txn import AbortReason

_LOG = logging.getLogger(__name__)
_PROCESS_AND_NUMBER = re.compile(r"(\d+)-\d+")


def end_dead_workers(
    metastore: Metastore, host: str, is_alive: Callable[[int], bool]
) -> tuple[Compaction, ...]:
    """Abort the transactions of dead workers of a host; their entries, which housekeeping then
    gives back to the queue.

    Worker ids are HOST-PROCESS-NUMBER; others (Hive's) are left alone. A worker that is taken for
    dead by mistake publishes nothing (I9). Hive's metastore gives back all entries of its host when
    it starts (revokeFromLocalWorkers); here other processes of the host may be at work.
    """
    working = metastore.show_compactions(ShowCompactionsRequest(state=CompactionState.WORKING))
    dead = tuple(
        entry
        for entry in working
        if entry.txn_id
        and (process := _process(entry.worker_id or "", host)) is not None
        and not is_alive(process)
    )
    if dead:
        metastore.abort_txns(
            [entry.txn_id for entry in dead if entry.txn_id], AbortReason.COMPACTION
        )
    for entry in dead:
        _LOG.warning(
            "worker %s is dead: transaction %s of compaction %d was aborted",
            entry.worker_id,
            entry.txn_id,
            entry.id,
        )
    return dead


def is_other_process_alive(process: int) -> bool:
    """Whether another process of this host has the id. The own is not meant: it has only begun."""
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _process(worker_id: str, host: str) -> int | None:
    if not worker_id.startswith(f"{host}-"):
        return None
    match = _PROCESS_AND_NUMBER.fullmatch(worker_id.removeprefix(f"{host}-"))
    return int(match.group(1)) if match else None
