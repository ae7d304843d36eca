"""``hms-bridge repl lag``: for a monitor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hms_bridge.cli.kept_policy import (
    KeptPolicies,
    kept_policies,
    policy_of,
    settings_of_source,
)
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
from hms_bridge.cli.repl_status import both_sides, status_request
from hms_bridge.cli.sides import side_settings, side_url
from hms_bridge.clock import SystemClock
from hms_bridge.config.jdbc import url_without_password
from hms_bridge.errors import HmsBridgeError

if TYPE_CHECKING:
    from hms_bridge.model.replication import ReplicationPolicy
    from hms_bridge.repl.status import ReplStatus


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
    monitor = _Monitor(limits, call, given_root, are_bytes_counted)
    if source_url is None:
        verdicts = monitor.policies(names)
    else:
        verdicts = monitor.databases(names, source_url)
    record = shown_verdict if call.output_format == "table" else verdict_record
    rows = [record(verdict) for verdict in verdicts]
    print_rows(rows, tuple(rows[0]), call.output_format)
    states = [verdict.state for verdict in verdicts]
    if metrics_file is not None:
        states.append(_written(metrics_file, verdicts))
    raise SystemExit(worst(states))


@dataclass(frozen=True, slots=True)
class _Monitor:
    """Looks at replicas. What is wrong with one says nothing of the next; and an error is a
    verdict, because a monitor takes its exit code, 1, for a warning."""

    limits: LagLimits
    call: Call
    given_root: str | None
    are_bytes_counted: bool

    def databases(self, names: Sequence[str], source_url: str) -> list[Verdict]:
        """Replicas in one metastore, of one source."""
        url, settings = self.call.metastore_url, self.call.settings
        watched = [
            Watched(database=name, metastore=url_without_password(url))
            for name in dict.fromkeys(name.lower() for name in names)
        ]
        try:
            kept = kept_policies(self.call)
            with both_sides(url, source_url, settings) as looker:
                return [self._database(looker, replica, kept) for replica in watched]
        except HmsBridgeError as error:
            return [self._out_of_reach(replica, source_url, str(error)) for replica in watched]

    def policies(self, names: Sequence[str]) -> list[Verdict]:
        """The replicas of policies that the database keeps: those that are named, else all."""
        url = self.call.metastore_url
        watched = [
            Watched(database=name, metastore=url_without_password(url))
            for name in dict.fromkeys(names) or ("-",)
        ]
        try:
            with self.call.store() as store:
                kept = KeptPolicies(
                    policies=store.policies.get_policies(), totals=store.policies.get_totals()
                )
        except HmsBridgeError as error:
            return [nothing.unknown(str(error)) for nothing in watched]
        if not kept.policies:
            why = "no policy is kept there: see repl policy add"
            return [nothing.unknown(why) for nothing in watched]
        if not names:
            return [self._policy(policy, kept) for policy in kept.policies]
        return [self._named(nothing, kept) for nothing in watched]

    def _named(self, watched: Watched, kept: KeptPolicies) -> Verdict:
        name = watched.database
        policy = policy_of(kept.policies, name, self.call.metastore_url)
        if policy is not None:
            return self._policy(policy, kept)
        known = ", ".join(policy.name for policy in kept.policies)
        return watched.unknown(
            f"there is no policy {name}; there are: {known}. With --source it is a database"
        )

    def _database(
        self, looker: ReplStatus, replica: Watched, kept: KeptPolicies | None = None
    ) -> Verdict:
        try:
            name, settings = replica.database, self.call.settings
            kept = kept or KeptPolicies()
            policy = policy_of(kept.policies, name, self.call.metastore_url, is_database=True)
            if policy is not None:
                settings = settings_of_source(policy, settings)
            request = status_request(
                name,
                settings,
                given_root=self.given_root or (None if policy is None else policy.root),
                target_database=None if policy is None else policy.target.database,
                last_success_ms=None if policy is None else kept.last_success_ms(policy),
                are_bytes_counted=self.are_bytes_counted,
            )
            return self.limits.judge(replica, looker.look(request))
        except HmsBridgeError as error:
            return replica.unknown(str(error))

    def _out_of_reach(self, replica: Watched, source_url: str, why: str) -> Verdict:
        """What source and dumps show of a replica that does not answer: above all how long it can
        still follow, which counts down meanwhile."""
        try:
            with both_sides(None, source_url, self.call.settings) as looker:
                seen = self._database(looker, replica)
        except HmsBridgeError:
            return replica.unknown(why)
        if seen.state is not State.CRITICAL:
            return replace(replica.unknown(why), report=seen.report)
        return replace(seen, why=f"{seen.why}; and {why}")

    def _policy(self, policy: ReplicationPolicy, kept: KeptPolicies) -> Verdict:
        target, store_url = policy.target, self.call.metastore_url
        replica = Watched(
            database=target.database,
            metastore=url_without_password(target.metastore or store_url),
            policy=policy.name,
        )
        try:
            settings = side_settings(policy.source)  # whose event log and archive have limits
            request = status_request(
                policy.source.database,
                settings,
                given_root=policy.root,
                target_database=target.database,
                last_success_ms=kept.last_success_ms(policy),
                are_bytes_counted=self.are_bytes_counted,
            )
            urls = side_url(target, store_url), side_url(policy.source, store_url)
            with both_sides(*urls, settings) as looker:
                return self.limits.judge(replica, looker.look(request))
        except HmsBridgeError as error:
            return replica.unknown(str(error))


def _written(path: Path, verdicts: Sequence[Verdict]) -> State:
    """Whether the collector gets the news; of old ones it would think that all is well."""
    from hms_bridge.metrics.replica_metrics import ReplicaFigures, replica_samples
    from hms_bridge.metrics.textfile import write_textfile

    looked_ms = SystemClock().now_ms()
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
