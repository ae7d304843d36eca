"""``hms-bridge repl lag``: for a monitor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from hms_bridge.cli.lag_monitor import DatabaseMonitor, Looking, PolicyMonitor
from hms_bridge.cli.lag_verdict import (
    LagLimits,
    State,
    Verdict,
    Watched,
    shown_verdict,
    verdict_record,
    worst,
)
from hms_bridge.cli.options import duration_option_ms
from hms_bridge.cli.output import print_rows, say
from hms_bridge.cli.repl_options import Call, called, dumps_root_option
from hms_bridge.clock import SystemClock


@click.command()
@click.argument("names", metavar="[POLICY|DATABASE]...", nargs=-1)
@click.option(
    "--source",
    "source_url",
    metavar="URL",
    help="The source's metastore; what is named are databases of it then.",
)
@click.option(
    "--all", "are_all", is_flag=True, help="Of every policy that --metastore keeps, instead."
)
@dumps_root_option
@click.option(
    "--warn",
    default="1h",
    show_default=True,
    metavar="DURATION",
    help="Warn if it is so far behind.",
)
@click.option(
    "--critical", default="6h", show_default=True, metavar="DURATION", help="Alarm if it is so far."
)
@click.option(
    "--headroom",
    default="12h",
    show_default=True,
    metavar="DURATION",
    help="Alarm if the replica can follow for less than that.",
)
@click.option(
    "--bytes",
    "are_bytes_counted",
    is_flag=True,
    help="Tell how much is to be copied: looks at every file that the replicas lack.",
)
@click.option(
    "--metrics",
    "metrics_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write this file, as OpenMetrics, for node_exporter's textfile collector: NAME.prom "
    "in its directory.",
)
@called()
def lag(
    names: tuple[str, ...],
    source_url: str | None,
    are_all: bool,
    given_root: str | None,
    warn: str,
    critical: str,
    headroom: str,
    are_bytes_counted: bool,
    metrics_file: Path | None,
    call: Call,
) -> None:
    """How far replicas are behind, and whether that is too far.

    --metastore is the replica's. It keeps the policies that are named, or of which --all looks at
    each, paused or not; with --source databases are named, and --root and what the source keeps
    for how long are as a policy says that replicates them. Counted are commits to the database, and
    what else changes in it; what other databases do is no lag. Exit codes are those of Nagios
    plugins: 0 all is well, 1 warning, 2 critical, 3 unknown.

    \b
    Examples:
      hms-bridge repl lag sales --metastore sqlite:///replica.db
      hms-bridge repl lag sales --metastore sqlite:///replica.db --source sqlite:///source.db
      hms-bridge repl lag sales shop --critical 2h --metastore thrift://r:9083 --source thrift://s:9083
      hms-bridge repl lag --all --metastore postgresql+psycopg://hive@db.dr/metastore
      hms-bridge repl lag sales --source thrift://s:9083 --metrics /var/lib/node_exporter/sales.prom
    """
    limits = LagLimits(
        warning=duration_option_ms("--warn", warn) // 1000,
        critical=duration_option_ms("--critical", critical) // 1000,
        headroom=duration_option_ms("--headroom", headroom) // 1000,
    )
    if limits.critical < limits.warning:
        raise click.UsageError("--critical is less than --warn")
    if are_all == bool(names) or (are_all and source_url is not None):
        raise click.UsageError("name policies, or databases with --source, or give --all")
    if given_root is not None and source_url is None:
        raise click.UsageError("a policy has its own root; --root is for databases, with --source")
    looking = Looking(limits=limits, call=call, are_bytes_counted=are_bytes_counted)
    if source_url is None:
        verdicts = PolicyMonitor(looking).verdicts(names)
    else:
        verdicts = DatabaseMonitor(looking, source_url, given_root).verdicts(names)
    record = shown_verdict if call.output_format == "table" else verdict_record
    rows = [record(verdict) for verdict in verdicts]
    print_rows(rows, tuple(rows[0]), call.output_format)
    states = [verdict.state for verdict in verdicts]
    if metrics_file is not None:
        states.append(_written(metrics_file, verdicts))
    raise SystemExit(worst(states))


def _written(path: Path, verdicts: Sequence[Verdict]) -> State:
    """Whether the collector gets the news; of old ones it would think that all is well. Replicas of
    which it knew are not forgotten where policies cannot be read: an alert would end."""
    from hms_bridge.metrics.replica_metrics import ReplicaFigures, known_replicas, replica_samples
    from hms_bridge.metrics.textfile import write_textfile

    looked_ms = SystemClock().now_ms()
    if any(verdict.is_blind for verdict in verdicts):
        known = [Watched(database=name, metastore=url) for name, url in known_replicas(path)]
        verdicts = [replica.unknown("") for replica in known] or verdicts
    figures = [
        ReplicaFigures(
            verdict.watched.database,
            verdict.watched.metastore,
            verdict.state,
            looked_ms,
            verdict.report,
        )
        for verdict in verdicts
    ]
    try:
        write_textfile(path, replica_samples(figures))
    except OSError as error:
        say(f"--metrics: {path} cannot be written: {error}")
        return State.UNKNOWN
    return State.OK
