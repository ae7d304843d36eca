"""``hms-bridge cm clock``: what the metastore knows of the time, and whether it counts."""

from __future__ import annotations

import getpass
import logging
from typing import TYPE_CHECKING

import click

from changemanager.clock import moment_text, span_text
from changemanager.journal import log_deed
from hms_bridge.cli.logs import logging_options
from hms_bridge.cli.options import database_option, format_option, settings_options
from hms_bridge.cli.output import print_rows, say, time_text
from hms_bridge.config.settings import Settings
from hms_bridge.model.counted import counted

if TYPE_CHECKING:
    from changemanager.manifest import ArchiveManifest
    from changemanager.plausible_time import TimeGap, TimeJudgement
    from hms_bridge.connect import LocalStore

_COLUMNS = ("from", "to", "length", "not counted")
_LOG = logging.getLogger(__name__)


@click.command()
@click.option(
    "--trust",
    "is_trusted",
    is_flag=True,
    help="Confirm that this time went by: you have checked that the clock is right.",
)
@database_option
@format_option
@logging_options
@settings_options
def clock(is_trusted: bool, metastore_url: str, output_format: str, settings: Settings) -> None:
    """Show the times for which nothing is known to have happened; --trust counts them.

    A machine was off for such a time, or its clock jumped ahead. Of more than a day without a sign
    of life one day counts, and the rest for no age: of archived files, events, dumps and holds. So
    a clock that is wrong deletes nothing, and after an outage everything stays so much longer. Exit
    code 1 while such a time does not count, or the clock differs from the database's.

    \b
    Examples:
      hms-bridge cm clock
      hms-bridge cm clock --trust
    """
    from hms_bridge.connect import connected_locally

    with connected_locally(metastore_url, settings, is_created=False) as store:
        judged = judged_now(store)
        known = store.manifest.known_times()
        trusted = trust(store.manifest, judged.now_ms) if is_trusted else ()
    say(f"this host's clock: {time_text(judged.now_ms)}")
    if known.store_ms is not None:
        say(f"the database's clock: {time_text(known.store_ms)}")
    say(f"the newest sign of life: {time_text(known.newest_ms) if known.newest_ms else 'none'}")
    print_rows([_row(gap) for gap in judged.gaps], _COLUMNS, output_format)
    if judged.refusal:
        say(f"nothing is deleted for its age: {judged.refusal}; {next_step(judged)}")
        raise SystemExit(1)
    if is_trusted:
        say(f"{counted(len(trusted), 'gap')} confirmed: all of this time counts now")
    elif judged.gaps:
        say(f"{judged.doubt}; {next_step(judged)}")
        raise SystemExit(1)


def next_step(time: TimeJudgement) -> str:
    """What an administrator does about a doubt."""
    if time.refusal:
        return "set the wrong clock right"
    return "if the clock is right, run 'hms-bridge cm clock --trust'"


def judged_now(store: LocalStore) -> TimeJudgement:
    """What to think of the clock now."""
    from changemanager.plausible_time import judge

    return judge(store.clock.now_ms(), store.manifest.known_times())


def trust(manifest: ArchiveManifest, now_ms: int) -> tuple[TimeGap, ...]:
    """Confirm all gaps, and log who did."""
    gaps = manifest.trust_time(now_ms)
    for gap in gaps:
        log_deed(
            _LOG,
            "time confirmed",
            since=moment_text(gap.before_ms),
            until=moment_text(gap.after_ms),
            user=getpass.getuser(),
        )
    return gaps


def _row(gap: TimeGap) -> dict[str, object]:
    return {
        "from": time_text(gap.before_ms),
        "to": time_text(gap.after_ms),
        "length": span_text(gap.after_ms - gap.before_ms),
        "not counted": span_text(gap.doubtful_ms),
    }
