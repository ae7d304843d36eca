"""``hms-bridge txns`` and ``hms-bridge locks``."""

from __future__ import annotations

from dataclasses import dataclass

import click
from click.core import ParameterSource

from hms_bridge.cli.options import (
    dry_run_option,
    format_option,
    given_table,
    metastore_option,
    settings_options,
)
from hms_bridge.cli.output import print_rows, say, time_text
from hms_bridge.config.settings import Settings
from hms_bridge.errors import NoSuchTxnError
from hms_bridge.model.counted import counted
from hms_bridge.model.ids import TxnId
from hms_bridge.model.lock import LockFilter
from hms_bridge.model.target import Scope
from hms_bridge.model.txn import AbortReason, TxnState

TXN_COLUMNS = (
    "txnid", "state", "type", "startedtime", "lastheartbeattime", "user", "host", "agent_info",
)  # fmt: skip
LOCK_COLUMNS = (
    "lockid", "database", "table", "partition", "lock_state", "blocked_by", "lock_type",
    "transaction_id", "last_heartbeat", "acquired_at", "user", "hostname", "agent_info",
)  # fmt: skip
LOCK_SHOWN = (
    "lockid", "database", "table", "partition", "lock_state", "blocked_by", "lock_type",
    "transaction_id", "user", "hostname",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Above:
    """Options that were given to ``txns``, before ``abort``."""

    metastore_url: str
    is_metastore_given: bool
    settings: Settings


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
        ctx.obj = Above(
            metastore_url=metastore_url,
            is_metastore_given=_is_given(ctx, "metastore_url"),
            settings=settings,
        )
        return
    from hms_bridge.connect import connected

    with connected(metastore_url, settings, is_created=False) as metastore:
        rows = [
            {
                "txnid": txn.id,
                "state": txn.state.name,
                "type": txn.type.name,
                "startedtime": time_text(txn.started_ms),
                "lastheartbeattime": time_text(txn.last_heartbeat_ms),
                "user": txn.user,
                "host": txn.host,
                "agent_info": txn.agent,
            }
            for txn in metastore.get_open_txns_info()
        ]
    print_rows(rows, TXN_COLUMNS, output_format)


@txns.command()
@click.argument("ids", nargs=-1, required=True, type=click.IntRange(min=1))
@dry_run_option
@metastore_option
@settings_options
@click.pass_context
def abort(
    ctx: click.Context,
    ids: tuple[int, ...],
    is_dry_run: bool,
    metastore_url: str,
    settings: Settings,
) -> None:
    """Abort transactions: their rows are never seen.

    Those that are open are aborted. Exit code 1 if another is neither open nor aborted.

    \b
    Examples:
      hms-bridge txns abort 17
      hms-bridge txns abort 17 18 --dry-run --metastore sqlite:///metastore.db
    """
    from hms_bridge.connect import connected

    has_own_settings = _is_given(ctx, "config_path", "assignments")
    if not has_own_settings:
        settings = ctx.obj.settings
    if not _is_given(ctx, "metastore_url") and (not has_own_settings or ctx.obj.is_metastore_given):
        metastore_url = ctx.obj.metastore_url
    with connected(metastore_url, settings, is_created=False) as metastore:
        states = {txn.id: txn.state for txn in metastore.get_open_txns_info()}
        wanted = [TxnId(number) for number in dict.fromkeys(ids)]
        open_ids = [txn_id for txn_id in wanted if states.get(txn_id) is TxnState.OPEN]
        if not is_dry_run and open_ids:
            metastore.abort_txns(open_ids, AbortReason.QUERY)
    for txn_id in wanted:
        if states.get(txn_id) is TxnState.ABORTED:
            say(f"transaction {txn_id} is aborted already")
    verb = "would abort" if is_dry_run else "aborted"
    numbers = f": {', '.join(map(str, open_ids))}" if open_ids else ""
    say(f"{verb} {counted(len(open_ids), 'transaction')}{numbers}")
    unknown = [txn_id for txn_id in wanted if txn_id not in states]
    if unknown:
        raise NoSuchTxnError(
            f"no open transaction {', '.join(map(str, unknown))}; hms-bridge txns lists them"
        )


def _is_given(ctx: click.Context, *names: str) -> bool:
    return any(ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in names)


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
    from hms_bridge.connect import connected

    lock_filter = LockFilter()
    if table_name is not None:
        name = given_table(table_name)
        lock_filter = LockFilter(scope=Scope(name.database, name.table))
    with connected(metastore_url, settings, is_created=False) as metastore:
        rows = [
            {
                "lockid": f"{lock.lock_id}.{lock.internal_id}",
                "database": lock.scope.database,
                "table": lock.scope.table,
                "partition": lock.scope.partition,
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
    print_rows(rows, LOCK_COLUMNS, output_format, shown=LOCK_SHOWN)


def _blocker(lock_id: int | None, internal_id: int | None) -> str | None:
    return None if lock_id is None else f"{lock_id}.{internal_id}"
