"""Which transaction here replays which transaction of a replication source (REPL_TXN_MAP;
docs/hive/transactions.md §20)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, delete, insert, select

from hms_bridge.backend.batches import batches
from hms_bridge.backend.schema.txn_tables import REPL_TXN_MAP
from hms_bridge.model.ids import TxnId
from hms_bridge.model.txn import AbortTxnRequest, CommitTxnRequest, OpenTxnsRequest, TxnType

_R = REPL_TXN_MAP.c


def is_of_load(request: OpenTxnsRequest | CommitTxnRequest | AbortTxnRequest) -> bool:
    """Whether a REPL LOAD asks for a transaction of its own, which replays none of the source's: no
    event is logged (Hive: isHiveReplTxn in OpenTxnsFunction, CommitTxnFunction,
    AbortTxnFunction)."""
    return request.repl_policy is not None and request.type in (None, TxnType.DEFAULT)


def target_txn(connection: Connection, policy: str, source: TxnId) -> TxnId | None:
    """Our transaction for one of the source's; None if there is none (any more)."""
    pairs = mapped_pairs(connection, policy, (source,))
    return pairs.get(source)


def mapped_pairs(
    connection: Connection, policy: str, sources: Sequence[TxnId]
) -> dict[TxnId, TxnId]:
    """Our transactions by the source's ids; those without one are left out."""
    pairs: dict[TxnId, TxnId] = {}
    for batch in batches(sources):
        rows = connection.execute(
            select(_R.RTM_SRC_TXN_ID, _R.RTM_TARGET_TXN_ID)
            .where(_R.RTM_REPL_POLICY == policy, _R.RTM_SRC_TXN_ID.in_(batch))
            .with_for_update()
        )
        pairs.update((TxnId(source), TxnId(target)) for source, target in rows)
    return pairs


def mapped_txns(connection: Connection, policy: str, sources: Sequence[TxnId]) -> tuple[TxnId, ...]:
    """Our transactions for the source's, ascending."""
    return tuple(sorted(mapped_pairs(connection, policy, sources).values()))


def replayed_txns(connection: Connection, repl_policy: str) -> Mapping[TxnId, TxnId]:
    """Ours by the source's ids, all of a policy (Hive: GetReplayedTxnsForPolicyHandler).

    Hive's REPL LOAD asks for them last, and rolls back those that its dump does not name as open
    (ClearDanglingTxnTask).
    """
    rows = connection.execute(
        select(_R.RTM_SRC_TXN_ID, _R.RTM_TARGET_TXN_ID).where(_R.RTM_REPL_POLICY == repl_policy)
    )
    return {TxnId(source): TxnId(target) for source, target in rows}


def map_source_txns(
    connection: Connection, policy: str, sources: Sequence[TxnId], targets: Sequence[TxnId]
) -> None:
    """Remember new pairs, in the order given."""
    rows = [
        {"RTM_REPL_POLICY": policy, "RTM_SRC_TXN_ID": source, "RTM_TARGET_TXN_ID": target}
        for source, target in zip(sources, targets, strict=True)
    ]
    for batch in batches(rows):
        connection.execute(insert(REPL_TXN_MAP), batch)


def replays_into(connection: Connection, database: str) -> tuple[TxnId, ...]:
    """Our transactions that replay others into a database, ascending.

    A policy begins with the name of the target's database (Hive: HiveUtils.getReplPolicy).
    """
    rows = connection.execute(select(_R.RTM_REPL_POLICY, _R.RTM_TARGET_TXN_ID))
    return tuple(
        sorted(
            TxnId(target)
            for policy, target in rows
            if policy.partition(".")[0].lower() == database.lower()
        )
    )


def forget_source_txn(connection: Connection, policy: str, source: TxnId) -> None:
    """The source's transaction has ended here too."""
    connection.execute(
        delete(REPL_TXN_MAP).where(_R.RTM_REPL_POLICY == policy, _R.RTM_SRC_TXN_ID == source)
    )


def forget_targets(connection: Connection, targets: Sequence[TxnId]) -> tuple[str, ...]:
    """Break off replays whose transactions here ended otherwise; their policies.

    A database replicated under such a policy has lost a transaction and cannot go on.
    """
    policies: set[str] = set()
    for batch in batches(targets):
        here = _R.RTM_TARGET_TXN_ID.in_(batch)
        names = connection.execute(select(_R.RTM_REPL_POLICY).where(here)).scalars().all()
        if names:
            policies.update(names)
            connection.execute(delete(REPL_TXN_MAP).where(here))
    return tuple(sorted(policies))
