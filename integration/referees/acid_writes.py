"""Writes to ACID tables by our own code, without Spark."""

from __future__ import annotations

from collections.abc import Callable

from changemanager.location import Resolver
from hms_bridge.metastore import Metastore
from hms_bridge.model.txn import AllocateWriteIdsRequest, CommitTxnRequest, OpenTxnsRequest
from tests.support.table_write import TableWrite


def write(
    port: Metastore,
    resolver: Resolver,
    name: str,
    change: Callable[[TableWrite], None],
    *,
    is_reporting: bool = True,
) -> int:
    """Change ``database.table`` in a transaction, and tell its write id.

    ``is_reporting``: as :class:`TableWrite`.
    """
    database, _, table = name.partition(".")
    (txn_id,) = port.open_txns(OpenTxnsRequest(user="hive", host="here"))
    asked = AllocateWriteIdsRequest(database_name=database, table_name=table, txn_ids=(txn_id,))
    (given,) = port.allocate_table_write_ids(asked)
    stored = port.get_table(database, table)
    change(TableWrite(port, resolver, stored, txn_id, given.write_id, is_reporting=is_reporting))
    port.commit_txn(CommitTxnRequest(txn_id=txn_id))
    return given.write_id
