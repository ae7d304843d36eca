"""``hms-bridge txns`` and ``hms-bridge locks``."""

from __future__ import annotations

import click

from hms_bridge.cli.options import format_option, metastore_option, settings_options
from hms_bridge.cli.output import print_rows, say, time_text
from hms_bridge.config.settings import Settings
from hms_bridge.connect import connected
from hms_bridge.model.ids import TxnId
from hms_bridge.model.lock import LockFilter
from hms_bridge.model.txn import AbortReason

TXN_COLUMNS = ("txnid", "state", "type", "startedtime", "lastheartbeattime", "user", "host")
LOCK_COLUMNS = (
    "lockid", "database", "table", "partition", "lock_state", "blocked_by", "lock_type",
    "transaction_id", "last_heartbeat", "acquired_at", "user", "hostname", "agent_info",
)  # fmt: skip


@click.group(invoke_without_command=True)
@metastore_option
@format_option
@settings_options
@click.pass_context
def txns(ctx: click.Context, metastore_url: str, output_format: str, settings: Settings) -> None:
    """Open and aborted transactions, as SHOW TRANSACTIONS lists them.

    \b
    Examples:
      hms-bridge txns
      hms-bridge txns --metastore thrift://127.0.0.1:9083 --format jsonl
      hms-bridge txns abort 17 18
    """
    if ctx.invoked_subcommand is not None:
        ctx.obj = {"metastore_url": metastore_url, "settings": settings}
        return
    with connected(metastore_url, settings) as metastore:
        rows = [
            {
                "txnid": txn.id,
                "state": txn.state.name,
                "type": txn.type.name,
                "startedtime": time_text(txn.started_ms),
                "lastheartbeattime": time_text(txn.last_heartbeat_ms),
                "user": txn.user,
                "host": txn.host,
            }
            for txn in metastore.get_open_txns_info()
        ]
    print_rows(rows, TXN_COLUMNS, output_format)


@txns.command()
@click.argument("ids", nargs=-1, required=True, type=int)
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Show the plan and change nothing.")
@click.pass_context
def abort(ctx: click.Context, ids: tuple[int, ...], is_dry_run: bool) -> None:
    """Abort transactions: their rows are never seen.

    \b
    Example:
      hms-bridge txns --metastore sqlite:///metastore.db abort 17
    """
    with connected(ctx.obj["metastore_url"], ctx.obj["settings"]) as metastore:
        opened = {txn.id for txn in metastore.get_open_txns_info() if txn.state.value == "o"}
        found = [TxnId(number) for number in ids if number in opened]
        for number in sorted(set(ids) - set(found)):
            say(f"transaction {number} is not open; it stays as it is")
        if not is_dry_run:
            metastore.abort_txns(found, AbortReason.QUERY)
    verb = "would abort" if is_dry_run else "aborted"
    say(f"{verb} {len(found)} transactions{': ' if found else ''}{', '.join(map(str, found))}")


@click.command()
@metastore_option
@format_option
@settings_options
@click.option("--table", "table_name", help="Only locks of this table: database.table.")
def locks(
    metastore_url: str, output_format: str, settings: Settings, table_name: str | None
) -> None:
    """Who holds which lock, and who waits for whom, as SHOW LOCKS lists them.

    \b
    Examples:
      hms-bridge locks
      hms-bridge locks --table sales.orders --format json
    """
    lock_filter = LockFilter()
    if table_name is not None:
        database, separator, name = table_name.lower().rpartition(".")
        lock_filter = LockFilter(
            database_name=database if separator else "default", table_name=name
        )
    with connected(metastore_url, settings) as metastore:
        rows = [
            {
                "lockid": f"{lock.lock_id}.{lock.internal_id}",
                "database": lock.database_name,
                "table": lock.table_name,
                "partition": lock.partition_name,
                "lock_state": lock.state.name,
                "blocked_by": _blocker(lock.blocked_by_lock_id, lock.blocked_by_internal_id),
                "lock_type": lock.type.name,
                "transaction_id": lock.txn_id or None,
                "last_heartbeat": time_text(lock.last_heartbeat_ms),
                "acquired_at": time_text(lock.acquired_at_ms),
                "user": lock.user,
                "hostname": lock.host,
                "agent_info": lock.agent,
            }
            for lock in metastore.show_locks(lock_filter)
        ]
    print_rows(rows, LOCK_COLUMNS, output_format)


def _blocker(lock_id: int | None, internal_id: int | None) -> str | None:
    return None if lock_id is None else f"{lock_id}.{internal_id}"
