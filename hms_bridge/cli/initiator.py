"""``hms-bridge initiator``: what should be compacted, and queueing it."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import click

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
from hms_bridge.versions import own_version

if TYPE_CHECKING:
    from hms_bridge.compaction.initiator import Initiator, InitiatorOutcome
    from hms_bridge.compaction.initiator_plan import InitiatorDecision, InitiatorPlan
    from hms_bridge.connect import LocalStore

PLAN_COLUMNS = (
    "target", "decision", "type", "reason", "deltas", "delta bytes", "base bytes", "pool",
)  # fmt: skip
PLAN_SHOWN = ("target", "decision", "deltas", "delta size", "base size", "reason")
RUN_COLUMNS = ("target", "compactionid", "type", "message")


@click.group()
def initiator() -> None:
    """Find tables and partitions that should be compacted, and queue them.

    \b
    Examples:
      hms-bridge initiator plan
      hms-bridge initiator run
    """


@initiator.command()
@database_option
@format_option
@settings_options
def plan(metastore_url: str, output_format: str, settings: Settings) -> None:
    """What a run would queue now, and why it would not queue the others.

    Looked at is what was written to since it was compacted. Thresholds are
    hive.compactor.delta.num.threshold and hive.compactor.delta.pct.threshold, or the table's own,
    with compactorthreshold. before the name; no_auto_compaction=true on a table or database
    leaves it alone.

    \b
    Examples:
      hms-bridge initiator plan --metastore sqlite:///metastore.db
      hms-bridge initiator plan --set hive.compactor.delta.num.threshold=5 --format json
    """
    _print_plan(metastore_url, output_format, settings)


@initiator.command()
@dry_run_option
@database_option
@format_option
@settings_options
def run(is_dry_run: bool, metastore_url: str, output_format: str, settings: Settings) -> None:
    """Queue what should be compacted, once; `hms-bridge serve --initiator` does it repeatedly.

    A worker takes it from the queue: `hms-bridge serve --worker`.

    \b
    Examples:
      hms-bridge initiator run --metastore sqlite:///metastore.db
      hms-bridge initiator run --dry-run
    """
    if is_dry_run:
        _print_plan(metastore_url, output_format, settings)
        return
    from hms_bridge.connect import connected_locally

    with (
        working("looking at tables"),
        connected_locally(metastore_url, settings, is_created=False) as store,
    ):
        outcomes = make_initiator(store).run_once()
    print_rows([_outcome(outcome) for outcome in outcomes], RUN_COLUMNS, output_format)
    count = sum(outcome.id is not None for outcome in outcomes)
    say(f"{counted(count, 'compaction')} queued")


def make_initiator(store: LocalStore) -> Initiator:
    """The initiator of a metastore, under this process's name."""
    from hms_bridge.compaction.initiator import Initiator

    return Initiator(
        store.metastore,
        store.resolver,
        store.settings.compactor,
        store.clock,
        initiator_id=f"{socket.gethostname()}-{os.getpid()}",
        version=own_version(),
    )


def _print_plan(metastore_url: str, output_format: str, settings: Settings) -> None:
    from hms_bridge.connect import connected_locally

    with (
        working("looking at tables"),
        connected_locally(metastore_url, settings, is_created=False) as store,
    ):
        planned: InitiatorPlan = make_initiator(store).plan()
    rows = [_decision(decision) for decision in planned.decisions]
    print_rows(rows, PLAN_COLUMNS, output_format, shown=PLAN_SHOWN)
    say(f"would queue {counted(len(planned.requests), 'compaction')}")


def _decision(decision: InitiatorDecision) -> dict[str, object]:
    from hms_bridge.compaction.initiator_plan import Verdict

    is_requested = decision.verdict is Verdict.REQUEST and decision.type is not None
    kind = decision.type.name.lower() if is_requested and decision.type else None
    sizes = decision.sizes
    return {
        "target": str(decision.target),
        "decision": f"{kind} compaction" if kind else decision.verdict.value,
        "type": kind,
        "reason": decision.reason,
        "deltas": sizes.delta_count if sizes else None,
        "delta bytes": sizes.delta_size_bytes if sizes else None,
        "base bytes": sizes.base_size_bytes if sizes else None,
        "delta size": size_text(sizes.delta_size_bytes) if sizes else None,
        "base size": size_text(sizes.base_size_bytes) if sizes else None,
        "pool": decision.pool_name,
    }


def _outcome(outcome: InitiatorOutcome) -> dict[str, object]:
    kind = outcome.decision.type
    return {
        "target": str(outcome.decision.target),
        "compactionid": outcome.id,
        "type": kind.name.lower() if kind and outcome.id is not None else None,
        "message": outcome.message,
    }
