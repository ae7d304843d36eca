"""``hms-bridge repl lag``: for a monitor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hms_bridge.cli.options import format_option, metastore_option, settings_options
from hms_bridge.cli.output import print_rows, say, size_text, time_text
from hms_bridge.cli.repl_status import behind_text, both_sides, duration_text, status_request
from hms_bridge.clock import SystemClock
from hms_bridge.config.jdbc import url_without_password
from hms_bridge.config.settings import Settings
from hms_bridge.errors import HmsBridgeError

if TYPE_CHECKING:
    from hms_bridge.repl.status import ReplStatus, StatusReport


class State(IntEnum):
    """What a monitor makes of it; the numbers are the exit codes of Nagios plugins."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    UNKNOWN = 3


_GRAVITY = (State.OK, State.WARNING, State.UNKNOWN, State.CRITICAL)


@dataclass(frozen=True, slots=True)
class Verdict:
    """On one replica. ``why`` is empty where all is well; no ``report`` where nothing is known."""

    database: str
    state: State
    why: str = ""
    report: StatusReport | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LagLimits:
    """How old the oldest commit that a replica lacks may be, and how little time may be left until
    it cannot follow any more; in seconds."""

    warning: int
    critical: int
    headroom: int

    def judge(self, database: str, report: StatusReport) -> Verdict:
        """The state of one replica, and why it is not OK."""
        state, why = self._judged(report)
        return Verdict(database, state, why, report)

    def _judged(self, report: StatusReport) -> tuple[State, str]:
        if report.troubles:
            return State.CRITICAL, "; ".join(report.troubles)
        headroom = report.headroom
        if headroom is not None and headroom.seconds < self.headroom:
            left = duration_text(headroom.seconds)
            return State.CRITICAL, f"incremental is lost in {left}, by the {headroom.limit}"
        if report.rpo_seconds is None:
            return State.UNKNOWN, _why_unknown(report)
        for state, limit in ((State.CRITICAL, self.critical), (State.WARNING, self.warning)):
            if report.rpo_seconds > limit:
                return state, f"more than {duration_text(limit)} behind"
        return State.OK, ""


@click.command()
@click.argument("databases", metavar="DATABASE...", nargs=-1, required=True)
@click.option(
    "--source", "source_url", metavar="URL", required=True, help="The source's metastore."
)
@click.option("--root", "given_root", metavar="DIR", help="Where dumps are.  [default: setting]")
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
@metastore_option
@format_option
@settings_options
def lag(
    databases: tuple[str, ...],
    source_url: str,
    given_root: str | None,
    warn: str,
    critical: str,
    headroom: str,
    are_bytes_counted: bool,
    metrics_file: Path | None,
    metastore_url: str,
    output_format: str,
    settings: Settings,
) -> None:
    """How far the replicas of DATABASE... are behind, and whether that is too far.

    --metastore is the replica's. Counted are commits to the database, and what else changes in it;
    what other databases do is no lag. Exit codes are those of Nagios plugins: 0 all is well, 1
    warning, 2 critical, 3 unknown.

    \b
    Examples:
      hms-bridge repl lag sales --metastore sqlite:///replica.db --source sqlite:///source.db
      hms-bridge repl lag sales shop --critical 2h --metastore thrift://r:9083 --source thrift://s:9083
      hms-bridge repl lag sales --source thrift://s:9083 --metrics /var/lib/node_exporter/sales.prom
    """
    limits = LagLimits(
        warning=_seconds("--warn", warn),
        critical=_seconds("--critical", critical),
        headroom=_seconds("--headroom", headroom),
    )
    if limits.critical < limits.warning:
        raise click.UsageError("--critical is less than --warn")

    def look(looker: ReplStatus, database: str) -> Verdict:
        request = status_request(
            database, settings, given_root=given_root, are_bytes_counted=are_bytes_counted
        )
        return limits.judge(database, looker.look(request))

    try:
        with both_sides(metastore_url, source_url, settings) as looker:
            verdicts = [_known(database, partial(look, looker)) for database in databases]
    except HmsBridgeError as error:
        # A monitor takes the exit code of an error, 1, for a warning.
        verdicts = [Verdict(database, State.UNKNOWN, str(error)) for database in databases]
    row = _shown if output_format == "table" else _row
    rows = [row(verdict) for verdict in verdicts]
    print_rows(rows, tuple(rows[0]), output_format)
    states = [verdict.state for verdict in verdicts]
    if metrics_file is not None:
        states.append(_told_in(metrics_file, verdicts, metastore_url))
    raise SystemExit(max(states, key=_GRAVITY.index))


def _told_in(path: Path, verdicts: Sequence[Verdict], metastore_url: str) -> State:
    """Whether the collector gets the news; of old ones it would think that all is well."""
    from hms_bridge.metrics.replica_metrics import ReplicaFigures, replica_samples
    from hms_bridge.metrics.textfile import write_textfile

    replica = url_without_password(metastore_url)
    looked_ms = SystemClock().now_ms()
    by_name = {verdict.database.lower(): verdict for verdict in verdicts}
    figures = [
        ReplicaFigures(name, replica, verdict.state, looked_ms, verdict.report)
        for name, verdict in by_name.items()
    ]
    try:
        write_textfile(path, replica_samples(figures))
    except OSError as error:
        say(f"--metrics: {path} cannot be written: {error}")
        return State.UNKNOWN
    return State.OK


def _why_unknown(report: StatusReport) -> str:
    if report.last_event_id is None:
        return "nothing was loaded yet"
    return "the log has no longer what the waiting dump holds: load it"


def _known(database: str, look: Callable[[str], Verdict]) -> Verdict:
    """What is wrong with one database says nothing of the next."""
    try:
        return look(database)
    except HmsBridgeError as error:
        return Verdict(database, State.UNKNOWN, str(error))


def _row(verdict: Verdict) -> dict[str, object]:
    """For programs: numbers are numbers, with their unit in the name."""
    report = verdict.report
    backlog = report.backlog if report else None
    headroom = report.headroom if report else None
    return {
        "database": verdict.database,
        "state": verdict.state.name,
        "commits_behind": backlog.commits if backlog else None,
        "changes_behind": backlog.changes if backlog else None,
        "rpo_seconds": report.rpo_seconds if report else None,
        "bytes_to_copy": report.bytes_to_copy if report else None,
        "last_loaded": time_text(report.last_loaded_ms) if report else None,
        "headroom_seconds": headroom.seconds if headroom else None,
        "headroom_limit": headroom.limit if headroom else None,
        "why": verdict.why,
    }


def _shown(verdict: Verdict) -> dict[str, object]:
    """For a person."""
    report = verdict.report
    backlog = report.backlog if report else None
    headroom = report.headroom if report else None
    size = report.bytes_to_copy if report else None
    return {
        "database": verdict.database,
        "state": verdict.state.name,
        "behind": behind_text(backlog) if backlog else None,
        "oldest of it": duration_text(report.rpo_seconds) if report else None,
        "to copy": None if size is None else size_text(size),
        "last loaded": time_text(report.last_loaded_ms) if report else None,
        "headroom": duration_text(headroom.seconds) if headroom else None,
        "why": verdict.why or None,
    }


def _seconds(option: str, text: str) -> int:
    """A bare number would be seconds to some and hours to Hive."""
    from hms_bridge.config.durations import parse_duration_ms

    if text.strip().lstrip("+-").isdecimal():
        raise click.UsageError(f"{option} takes a number and a unit, as 30m or 6h, not '{text}'")
    duration_ms = parse_duration_ms(text, "s")
    if duration_ms < 0:
        raise click.UsageError(f"{option} takes a duration that is not negative, as 6h")
    return duration_ms // 1000
