"""``hms-bridge repl promote`` and ``repl failback``: a replica and its source change places."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import click

from hms_bridge.cli.dump_jobs import new_name
from hms_bridge.cli.open_cycle import open_cycle
from hms_bridge.cli.output import say
from hms_bridge.cli.repl_options import Call, called
from hms_bridge.cli.sides import side_settings, side_url, source_side
from hms_bridge.clock import SystemClock
from hms_bridge.errors import HmsBridgeError, NoSuchObjectError
from hms_bridge.model.replication import PolicySide, ReplicationPolicy

if TYPE_CHECKING:
    from hms_bridge.connect import LocalStore
    from hms_bridge.repl.handover.failback_plan import FailbackPlan
    from hms_bridge.repl.handover.promote_plan import PromotePlan
    from hms_bridge.repl.handover.sides import OpenSides, Side


@click.command()
@click.argument("policy")
@click.option(
    "--planned",
    "is_planned",
    is_flag=True,
    help="Fence the source first, bring all that it has, then switch: no commit is lost.",
)
@click.option(
    "--wait",
    metavar="DURATION",
    help="How long --planned waits for the source's open transactions.  [default: setting]",
)
@click.option(
    "--abort-writers",
    "is_abort_allowed",
    is_flag=True,
    help="Then abort those that write to the database, instead of giving up.",
)
@click.option(
    "--source-is-quiet",
    "is_quiet",
    is_flag=True,
    help="Nobody writes to the source, though its metastore (a Hive's) heeds no fence.",
)
@click.option(
    "--source-is-lost",
    "is_source_lost",
    is_flag=True,
    help="The source cannot be reached, and is not waited for.",
)
@click.option(
    "--close-all",
    "is_all_closed",
    is_flag=True,
    help="Fence all tables of a source that is back, though its replica has some of them only.",
)
@click.option(
    "--leave-dump", "is_dump_left", is_flag=True, help="Do without a dump that is not loaded."
)
@click.option(
    "--cancel",
    "is_cancelled",
    is_flag=True,
    help="Give a fenced source back to its writers, instead; before its replica took over.",
)
@called(has_plan=True, needs_database=True)
def promote(
    policy: str,
    is_planned: bool,
    wait: str | None,
    is_abort_allowed: bool,
    is_quiet: bool,
    is_source_lost: bool,
    is_all_closed: bool,
    is_dump_left: bool,
    is_cancelled: bool,
    call: Call,
) -> None:
    """Let the replica of POLICY take its source's place.

    The source is fenced if it can be reached: it takes no writes, definitions and compaction
    requests any more. Transactions that loads left open end, then the replica is a source that
    everybody may change, and keeps what the way back ('repl failback') needs. What was stopped
    is gone on with by the same command. docs/runbooks.md has every step.

    \b
    Examples:
      hms-bridge repl promote sales --planned --dry-run
      hms-bridge repl promote sales --planned --wait 10m --abort-writers
      hms-bridge repl promote sales --source-is-lost
      hms-bridge repl promote sales --cancel
    """
    from hms_bridge.cli.repl_requests import wait_rules
    from hms_bridge.repl.handover.promote import Promotion
    from hms_bridge.repl.handover.promote_plan import PromoteRequest

    if is_planned and (is_source_lost or is_dump_left):
        raise click.UsageError("--planned loses nothing: it needs the source, and loads each dump")
    if (wait is not None or is_abort_allowed) and not is_planned:
        raise click.UsageError("--wait and --abort-writers are for --planned")
    others = (is_planned, is_source_lost, is_dump_left, is_quiet, is_all_closed, call.is_dry_run)
    if is_cancelled and any(others):
        raise click.UsageError("--cancel lifts the fence, and does nothing else")
    with _opened(policy, call) as sides:
        promotion = Promotion(sides)
        if is_cancelled:
            _cancel(promotion.cancel(), sides)
            return
        request = PromoteRequest(
            policy=sides.policy,
            is_planned=is_planned,
            is_source_lost=is_source_lost,
            is_dump_left=is_dump_left,
            is_quiet=is_quiet,
            is_all_closed=is_all_closed,
            wait=wait_rules(call.settings, wait=wait, is_abort_allowed=is_abort_allowed),
        )
        plan = promotion.plan(request) if call.is_dry_run else promotion.run(request)
    call.print_record(_promote_record(plan))
    for note in plan.notes:
        say(f"note: {note}")
    say("nothing was changed" if call.is_dry_run else _promoted_text(plan))


@click.command()
@click.argument("policy")
@click.option(
    "--discard-divergence",
    "is_discarded",
    is_flag=True,
    help="Give up what the former source has that never reached the other side.",
)
@called(has_plan=True, needs_database=True)
def failback(policy: str, is_discarded: bool, call: Call) -> None:
    """Make the former source of POLICY, after a promotion, the replica of what took its place.

    The policy is turned around, and only the difference is copied. What the former source has
    that never reached the other side is named, and refused unless it may go; such tables come
    whole. To have the first source back after that: 'repl promote POLICY --planned', then
    'repl failback POLICY' once more.

    \b
    Examples:
      hms-bridge repl failback sales --dry-run
      hms-bridge repl failback sales
      hms-bridge repl failback sales --discard-divergence
    """
    from hms_bridge.repl.handover.failback import Failback
    from hms_bridge.repl.handover.failback_plan import FailbackRequest, view_text

    with _opened(policy, call) as sides:
        request = FailbackRequest(policy=sides.policy, is_discarded=is_discarded)
        way_back = Failback(sides)
        plan = way_back.plan(request) if call.is_dry_run else way_back.run(request)
    call.print_record(_failback_record(plan))
    if call.is_dry_run:
        for name, query in sorted(plan.views.items()):
            say(view_text(plan.former_database, name, query))
        say("nothing was changed")
        return
    say(
        f"policy {policy} is turned around: its source until now, database "
        f"{plan.former_database}, is the replica. "
        f"'repl compare {policy}' shows whether both are equal, 'repl run {policy}' brings it along"
    )


def _promoted_text(plan: PromotePlan) -> str:
    policy = plan.request.policy
    return (
        f"database {policy.target.database} of the replica takes writes now, and policy "
        f"{policy.name} is paused: move the clients there. The way back begins with "
        f"'repl failback {policy.name} --dry-run'"
    )


def _cancel(was_fenced: bool, sides: OpenSides) -> None:
    name = sides.policy.source.database
    say(f"database {name} {'is fenced no more' if was_fenced else 'was not fenced'}")


def _promote_record(plan: PromotePlan) -> dict[str, object]:
    behind = plan.behind
    return {
        "policy": plan.request.policy.name,
        "reason": plan.reason,
        "steps": [step.value for step in plan.steps],
        "stands at event": plan.stands_at,
        "commits behind": None if behind is None else behind.commits,
        "changes behind": None if behind is None else behind.changes,
        "waits for": plan.waits_for or None,
        "aborted at the source": list(plan.aborted),
        "replays ended": list(plan.replays),
        "dump left": plan.left,
    }


def _failback_record(plan: FailbackPlan) -> dict[str, object]:
    return {
        "policy": plan.request.policy.name,
        "reason": plan.reason,
        "steps": [step.value for step in plan.steps],
        "given up": list(plan.lost),
        "tables that come whole": list(plan.whole),
        "tables dropped": list(plan.dropped),
        "materialized views dropped": sorted(plan.views),
        "transactions aborted": list(plan.aborted),
    }


@contextmanager
def _opened(name: str, call: Call) -> Iterator[OpenSides]:
    """Both sides of a policy; a source out of reach is none."""
    from hms_bridge.cli.repl_requests import lease_rules
    from hms_bridge.repl.handover.sides import OpenSides

    with ExitStack() as stack:
        store, store_url = stack.enter_context(call.store()), call.metastore_url
        policy = _policy(store, name)
        source, unreachable = None, ""
        try:
            source = stack.enter_context(_side(policy.source, store_url))
            source.metastore.get_current_event_id()
        except HmsBridgeError as error:
            source, unreachable = None, str(error)
        yield OpenSides(
            policy=policy,
            source=source,
            unreachable=unreachable,
            target=stack.enter_context(_side(policy.target, store_url)),
            keeper=store.metastore,
            policies=store.policies,
            open_cycle=lambda policy: open_cycle(policy, store_url),
            clock=SystemClock(),
            new_name=new_name,
            user=getpass.getuser(),
            host=socket.gethostname(),
            lease=lease_rules(call.settings),
            say=say,
        )


def _policy(store: LocalStore, name: str) -> ReplicationPolicy:
    try:
        return store.policies.get_policy(name)
    except NoSuchObjectError as error:
        raise NoSuchObjectError(
            f"{error}. Sides change places by a policy; keep one first: 'repl policy add {name} "
            "--source URL --root DIR', with the settings of both sides"
        ) from error


@contextmanager
def _side(side: PolicySide, store_url: str) -> Iterator[Side]:
    from hms_bridge.config.file_systems import file_systems
    from hms_bridge.connect import archive_root
    from hms_bridge.repl.handover.sides import Side

    settings = side_settings(side)
    with source_side(side_url(side, store_url), settings) as (metastore, manifest):
        yield Side(
            metastore=metastore,
            database_name=side.database,
            resolve=file_systems(settings),
            manifest=manifest,
            cm_root=archive_root(settings) if settings.archive.is_enabled else None,
        )
