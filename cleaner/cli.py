"""``hms-bridge cleaner``: run one pass, or see what it would do."""

from __future__ import annotations

import click

from hms_bridge.cli.logs import logging_options
from hms_bridge.cli.options import (
    database_option,
    dry_run_option,
    format_option,
    settings_options,
)
from hms_bridge.cli.output import print_rows, say, size_text
from hms_bridge.cli.progress import working
from hms_bridge.config.settings import Settings
from hms_bridge.model.counted import counted

RUN_COLUMNS = (
    "compactionid", "target", "type", "state", "directories", "archived", "deleted", "bytes",
    "message",
)  # fmt: skip
PLAN_COLUMNS = (
    "compactionid", "target", "type", "state", "path", "decision", "reason", "by", "bytes",
)  # fmt: skip


RUN_SHOWN = ("target", "state", "directories", "archived", "deleted", "bytes", "message")
PLAN_SHOWN = ("target", "decision", "path", "reason", "bytes")


@click.group()
def cleaner() -> None:
    """Remove replaced files that no reader can see (archive first).

    \b
    Examples:
      hms-bridge cleaner plan
      hms-bridge cleaner run
    """


@cleaner.command()
@dry_run_option
@click.option(
    "--now",
    "is_retried_now",
    is_flag=True,
    help="Also try entries that still wait after an earlier try. Readers are waited for all the "
    "same.",
)
@database_option
@format_option
@logging_options
@settings_options
def run(
    is_dry_run: bool,
    is_retried_now: bool,
    metastore_url: str,
    output_format: str,
    settings: Settings,
) -> None:
    """Clean everything that is ready, once; `hms-bridge serve --cleaner` does it again and again.

    A directory goes only if no open or future reader can need it. In a database that is a
    replication source its files are archived first. Interrupted runs are taken up. Entries that
    have to wait are listed with the reason.

    \b
    Examples:
      hms-bridge cleaner run --metastore sqlite:///metastore.db
      hms-bridge cleaner run --now
      hms-bridge cleaner run --dry-run --format json
    """
    if is_dry_run:
        _print_plan(metastore_url, output_format, settings, is_retried_now=is_retried_now)
        return
    from cleaner.daemon import make_cleaner
    from cleaner.errors import CleanerError
    from cleaner.plan import CleaningState
    from cleaner.report import run_rows, waiting_line
    from hms_bridge.connect import connected_locally

    with (
        working("cleaning"),
        connected_locally(metastore_url, settings, is_created=False) as store,
    ):
        daemon = make_cleaner(store)
        outcomes = daemon.run_once(is_retried_now=is_retried_now)
        waiting = daemon.passed_over(outcomes)
        now_ms = store.clock.now_ms()
    print_rows(run_rows(outcomes, waiting), RUN_COLUMNS, output_format, shown=RUN_SHOWN)
    freed_bytes = sum(outcome.freed_bytes for outcome in outcomes)
    entries = counted(len(outcomes), "entry", "entries")
    say(f"{entries}, {size_text(freed_bytes)} removed from tables")
    if waiting:
        say(waiting_line(waiting, now_ms))
    bad = {CleaningState.POSTPONED, CleaningState.FAILED}
    failed = [outcome for outcome in outcomes if outcome.state in bad]
    if failed:
        raise CleanerError(
            f"{len(failed)} of {len(outcomes)} entries could not be cleaned; files that were not "
            f"deleted are in their places: {failed[0].message}"
        )


@cleaner.command()
@database_option
@format_option
@settings_options
def plan(metastore_url: str, output_format: str, settings: Settings) -> None:
    """What a run would do now: what goes, what stays and why, and who blocks what.

    \b
    Examples:
      hms-bridge cleaner plan --metastore sqlite:///metastore.db
      hms-bridge cleaner plan --format jsonl
    """
    _print_plan(metastore_url, output_format, settings)


def _print_plan(
    metastore_url: str, output_format: str, settings: Settings, *, is_retried_now: bool = False
) -> None:
    from cleaner.daemon import make_cleaner
    from cleaner.report import plan_rows
    from hms_bridge.connect import connected_locally

    with connected_locally(metastore_url, settings, is_created=False) as store:
        explained = make_cleaner(store).explain(is_retried_now=is_retried_now)
    print_rows(plan_rows(explained), PLAN_COLUMNS, output_format, shown=PLAN_SHOWN)
    for explanation in explained:
        if explanation.plan is not None:
            verb = "go" if explanation.readiness.is_ready else "would go later"
            say(
                f"{explanation.entry.target}: {len(explanation.plan.victims)} {verb}, "
                f"{size_text(explanation.plan.size_bytes)}; "
                f"{explanation.readiness.value}: {explanation.reason}"
            )
