"""``hms-bridge compact`` and ``hms-bridge compactions``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches

import click

from changemanager.clock import span_text
from hms_bridge.cli.options import (
    dry_run_option,
    format_option,
    given_table,
    metastore_option,
    settings_options,
)
from hms_bridge.cli.output import print_record, print_rows, say, time_text
from hms_bridge.cli.progress import working
from hms_bridge.cli.scheduled import queue
from hms_bridge.cli.served_pool import ServedPool, served_pool
from hms_bridge.cli.spark_options import spark_options
from hms_bridge.config.settings import Settings
from hms_bridge.dml.named import find_table
from hms_bridge.errors import CompactionError
from hms_bridge.interrupts import stopped_by_sigterm
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Table
from hms_bridge.model.compaction import (
    Compaction,
    CompactionRequest,
    CompactionState,
    CompactionType,
    ShowCompactionsRequest,
    VerifyMode,
)
from hms_bridge.model.ids import CompactionId
from hms_bridge.model.partition_name import with_lower_keys
from hms_bridge.model.target import EVERYTHING, Scope, Target
from hms_bridge.spark.request import SparkRequest
from hms_bridge.versions import own_version

COLUMNS = (
    "compactionid", "dbname", "tabname", "partname", "type", "state", "workerid", "enqueuetime",
    "starttime", "duration_ms", "errormessage", "poolname", "txnid", "nexttxnid", "committime",
    "highestwriteid",
)  # fmt: skip
SHOWN = ("id", "target", "type", "state", "queued", "took", "write id", "error")
_PARTITIONS_SHOWN = 10
_UNFINISHED = {CompactionState.INITIATED, CompactionState.WORKING}


@click.command()
@click.argument("table_name", metavar="TABLE")
@click.argument("kind", metavar="KIND", type=click.Choice(["minor", "major"]))
@click.option("--partition", "partition_name", help="One partition: key=value/key=value.")
@click.option("--pool", "pool_name", help="Only workers of this pool take it.")
@click.option(
    "--default-pool",
    "is_default_pool",
    is_flag=True,
    help="With --run on thrift://: take entries of the default pool, too, not of the pool "
    "hms-bridge alone. Where a Hive's workers serve the default pool, leave it to them.",
)
@click.option("--wait", "is_waited", is_flag=True, help="Wait until a worker has done it.")
@click.option(
    "--run", "is_run", is_flag=True, help="Do it here and now; above 64 MiB of input with Spark."
)
@click.option(
    "--verify",
    type=click.Choice([mode.value for mode in VerifyMode]),
    help="With --run: what a second reader compares before anything is published: all values, the "
    "rows' identifiers, or counts.  [default: hms.bridge.compactor.verify]",
)
@dry_run_option
@metastore_option
@format_option
@spark_options
@settings_options
def compact(
    table_name: str,
    kind: str,
    partition_name: str | None,
    pool_name: str | None,
    is_default_pool: bool,
    is_waited: bool,
    is_run: bool,
    verify: str | None,
    is_dry_run: bool,
    metastore_url: str,
    output_format: str,
    spark: SparkRequest,
    settings: Settings,
) -> None:
    """Queue a compaction of TABLE (database.table); KIND is minor or major.

    A worker does it: `hms-bridge serve --worker`, or this program with --run.

    \b
    Examples:
      hms-bridge compact sales.orders major --run
      hms-bridge compact sales.orders minor --partition day=2024-01-02 --wait
      hms-bridge compact sales.orders major --dry-run
    """
    from hms_bridge.connect import connected

    settings = _verifying(settings, verify, is_run=is_run)
    if partition_name is not None:
        partition_name = with_lower_keys(partition_name)
    pool = served_pool(metastore_url, pool_name, is_run=is_run, is_default=is_default_pool)
    name = given_table(table_name)
    request = CompactionRequest(
        target=Target(name.database, name.table, partition_name),
        type=CompactionType[kind.upper()],
        pool_name=pool.name,
        initiator_id="hms-bridge compact",
        initiator_version=own_version(),
    )
    with connected(metastore_url, settings, is_created=False) as metastore:
        _require_partition(
            metastore, find_table(metastore, name.database, name.table), partition_name
        )
        if is_dry_run:
            _print_plan(metastore, request, settings, output_format)
            return
        if is_run:
            _require_possible(metastore, request)
        compaction_id = queue(metastore, request, is_run=is_run, is_waited=is_waited)
        if is_run:
            _run_queue(metastore, compaction_id, pool, settings, spark)
        elif is_waited:
            _wait(metastore, compaction_id)
        entry = _find(metastore, compaction_id)
    print_record(_row(entry), output_format)
    if entry.state is CompactionState.REFUSED:
        say(f"not compacted: {entry.error_message}")
    if entry.state is CompactionState.FAILED:
        raise CompactionError(f"compaction {entry.id} failed: {entry.error_message}")


def _verifying(settings: Settings, verify: str | None, *, is_run: bool) -> Settings:
    if verify is None:
        return settings
    if not is_run:
        raise click.UsageError(
            "--verify goes with --run; a server's workers take hms.bridge.compactor.verify"
        )
    return replace(settings, compactor=replace(settings.compactor, verify=verify))


def _require_partition(metastore: Metastore, table: Table, partition_name: str | None) -> None:
    if partition_name is not None and not table.is_partitioned:
        raise CompactionError(f"{table.full_name} has no partitions; leave --partition out")
    if not table.is_partitioned:
        return
    if partition_name is None:
        names = metastore.get_partition_names(table.database_name, table.name)
        example = "/".join(f"{column.name}=…" for column in table.partition_columns)
        raise CompactionError(
            f"{table.full_name} is partitioned; name the partition to compact, as SHOW PARTITIONS "
            f"does: --partition {names[0] if names else example}. {_there(names)}"
        )
    if not metastore.get_partitions_by_names(table.database_name, table.name, [partition_name]):
        names = metastore.get_partition_names(table.database_name, table.name)
        meant = get_close_matches(partition_name, names, 1)
        raise CompactionError(
            f"{table.full_name} has no partition {partition_name}"
            f"{f'; did you mean {meant[0]}?' if meant else '.'} {_there(names)}"
        )


def _there(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_PARTITIONS_SHOWN])
    more = len(names) - _PARTITIONS_SHOWN
    return f"It has {shown or 'none yet'}{f' and {more} more' if more > 0 else ''}"


def _require_possible(metastore: Metastore, request: CompactionRequest) -> None:
    """Raises CompactionError for what our own worker would refuse."""
    from hms_bridge.compaction.target import find_target

    find_target(metastore, request.target)


def _print_plan(
    metastore: Metastore, request: CompactionRequest, settings: Settings, output_format: str
) -> None:
    from hms_bridge.cli.worker import plan_compaction_of

    print_record(plan_compaction_of(metastore, request, settings), output_format)


def _run_queue(
    metastore: Metastore,
    compaction_id: CompactionId,
    pool: ServedPool,
    settings: Settings,
    spark: SparkRequest,
) -> None:
    """Work until our entry is done; entries before it in the queue are done first."""
    from hms_bridge.cli.worker import compaction_workers

    pool_name = _find(metastore, compaction_id).pool_name
    with (
        stopped_by_sigterm(),
        working("compacting"),
        compaction_workers(
            metastore,
            settings,
            spark,
            count=1,
            pool_name=pool_name,
            is_default_pool=pool.is_default,
        ) as (worker,),
    ):
        while (entry := _find(metastore, compaction_id)).state is CompactionState.INITIATED:
            pool.require_claimable(metastore, entry)
            outcome = worker.run_once()
            if outcome is None:
                if _find(metastore, compaction_id).state is not CompactionState.INITIATED:
                    break  # another worker was quicker
                raise CompactionError(
                    f"compaction {compaction_id} is queued, but no worker of "
                    f"{pool_name or 'no pool'} is given it; see: hms-bridge compactions"
                )
            if outcome.entry.id != compaction_id or outcome.state == "compacted":
                say(f"compaction {outcome.entry.id} of {outcome.entry.target}: {outcome.message}")


def _wait(metastore: Metastore, compaction_id: CompactionId) -> None:
    pause_seconds = 0.1
    with working("waiting for a worker"):
        while _find(metastore, compaction_id).state in _UNFINISHED:
            time.sleep(pause_seconds)
            pause_seconds = min(pause_seconds * 2, 5.0)


def _find(metastore: Metastore, compaction_id: CompactionId) -> Compaction:
    entries = metastore.show_compactions(ShowCompactionsRequest(id=compaction_id))
    matching = [entry for entry in entries if entry.id == compaction_id]
    if not matching:
        raise CompactionError(f"compaction {compaction_id} is not in the queue any more")
    return matching[0]


@click.command()
@click.option("--table", "table_name", help="Only this table: database.table.")
@click.option(
    "--state",
    type=click.Choice(
        [state.word for state in CompactionState if state is not CompactionState.UNKNOWN]
    ),
    help="Only entries in this state.",
)
@click.option("--limit", type=click.IntRange(min=1), help="At most so many.")
@metastore_option
@format_option
@settings_options
def compactions(
    table_name: str | None,
    state: str | None,
    limit: int | None,
    metastore_url: str,
    output_format: str,
    settings: Settings,
) -> None:
    """The compaction queue and its history, newest first.

    \b
    Examples:
      hms-bridge compactions
      hms-bridge compactions --table sales.orders --state "ready for cleaning" --format json
    """
    from hms_bridge.connect import connected

    name = given_table(table_name) if table_name else None
    request = ShowCompactionsRequest(
        scope=Scope(name.database, name.table) if name else EVERYTHING,
        state=next((known for known in CompactionState if known.word == state), None),
        limit=limit,
    )
    with connected(metastore_url, settings, is_created=False) as metastore:
        rows = [_row(entry) | _shown(entry) for entry in metastore.show_compactions(request)]
    print_rows(rows, COLUMNS, output_format, shown=SHOWN)


def _duration_ms(entry: Compaction) -> int | None:
    """Until its end, or until its commit while the cleaner has not come to it."""
    until_ms = entry.ended_ms or entry.committed_ms
    return until_ms - entry.started_ms if entry.started_ms and until_ms else None


def _shown(entry: Compaction) -> dict[str, object]:
    """The same in few words, for a table."""
    took_ms = _duration_ms(entry)
    return {
        "id": entry.id,
        "target": str(entry.target),
        "queued": time_text(entry.enqueued_ms),
        "took": None if took_ms is None else span_text(took_ms),
        "write id": entry.highest_write_id,
        "error": entry.error_message,
    }


def _row(entry: Compaction) -> dict[str, object]:
    return {
        "compactionid": entry.id,
        "dbname": entry.target.database,
        "tabname": entry.target.table,
        "partname": entry.target.partition,
        "type": entry.type.name,
        "state": entry.state.word,
        "workerid": entry.worker_id,
        "enqueuetime": time_text(entry.enqueued_ms),
        "starttime": time_text(entry.started_ms),
        "duration_ms": _duration_ms(entry),
        "errormessage": entry.error_message,
        "poolname": entry.pool_name,
        "txnid": entry.txn_id,
        "nexttxnid": entry.next_txn_id,
        "committime": time_text(entry.committed_ms),
        "highestwriteid": entry.highest_write_id,
    }
