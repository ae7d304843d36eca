"""``hms-bridge repl expire``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from hms_bridge.cli.dump_jobs import dump_job
from hms_bridge.cli.output import print_rows, say
from hms_bridge.cli.repl_options import Call, called, dumps_root_option
from hms_bridge.dml.named import find_database
from hms_bridge.model.counted import counted

if TYPE_CHECKING:
    from hms_bridge.repl.dump.expiry import ExpiryDecision

_COLUMNS = ("dump", "state", "finished", "what", "why")


@click.command()
@click.argument("database")
@dumps_root_option
@click.option(
    "--ttl", metavar="DURATION", help="How old a loaded dump has to be.  [default: setting]"
)
@called(has_plan=True)
def expire(database: str, given_root: str | None, ttl: str | None, call: Call) -> None:
    """Remove loaded dumps of DATABASE that are older than hive.repl.dumpdir.ttl.

    The newest dump stays, with those that it follows on from their bootstrap dump on; so does each
    that is not loaded, and what does not look like a dump. hms-bridge serve does the same every
    hive.repl.dumpdir.clean.freq, cycles of policies each time, if that is set.

    \b
    Examples:
      hms-bridge repl expire sales --dry-run
      hms-bridge repl expire sales --ttl 30d --root /dr/dumps
    """
    from hms_bridge.cli.repl_requests import expiry_request
    from hms_bridge.repl.dump.expiry import ReplExpiry

    request = expiry_request(database, call.settings, root=given_root, ttl=ttl)
    with call.source() as (metastore, manifest):
        job = dump_job(ReplExpiry, metastore, manifest, call.settings)
        plan = job.plan(request)
        if not plan.decisions:
            find_database(metastore, request.database_name)  # a mistyped one has none either
            say(f"there is no dump of {request.database_name} below {request.root}")
        if not call.is_dry_run:
            job.run(plan)
    print_rows([_row(decision) for decision in plan.decisions], _COLUMNS, call.output_format)
    say(f"{counted(len(plan.removed), 'dump')} {'would go' if call.is_dry_run else 'gone'}")


def _row(decision: ExpiryDecision) -> dict[str, object]:
    finished = datetime.fromtimestamp(decision.finished_at_ms / 1000, UTC)
    return {
        "dump": decision.directory,
        "state": decision.state.value,
        "finished": finished.isoformat(" ", "seconds"),
        "what": "removed" if decision.is_removed else "kept",
        "why": decision.why,
    }
