"""``hms-bridge repl repair``."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from hms_bridge.cli.kept_policy import with_policies_at_work
from hms_bridge.cli.named_sides import require_keeper
from hms_bridge.cli.open_cycle import open_repair
from hms_bridge.cli.output import say
from hms_bridge.cli.progress import working
from hms_bridge.cli.repl_options import (
    Call,
    called,
    depth_options,
    into_option,
    require_two_databases,
    source_of_database_option,
)
from hms_bridge.clock import SystemClock
from hms_bridge.errors import ReplError
from hms_bridge.model.replication import CycleOutcome, CycleResult, PolicySide, ReplicationPolicy

if TYPE_CHECKING:
    from hms_bridge.connect import LocalStore
    from hms_bridge.repl.compare.described import CompareReport
    from hms_bridge.repl.compare.table_comparison import Depth
    from hms_bridge.repl.repair.looking import LastFailure, RepairRequest
    from hms_bridge.repl.repair.plan import RepairPlan, Trouble
    from hms_bridge.repl.repair.repl_repair import RepairReport, ReplRepair

_CYCLES_LOOKED_AT = 20
_WITHOUT_POLICY = "hms-bridge"


@click.command()
@click.argument("name", metavar="POLICY")
@source_of_database_option
@into_option
@click.option("--root", "given_root", metavar="DIR", help="With --source: where dumps are.")
@click.option(
    "--table", "tables", multiple=True, metavar="TABLE", help="Bring TABLE whole. May be repeated."
)
@click.option(
    "--partition",
    "partitions",
    multiple=True,
    metavar="TABLE/PARTITION",
    help="Bring the TABLE of a partition whole: a dump has nothing smaller. May be repeated.",
)
@click.option(
    "--pattern",
    "patterns",
    multiple=True,
    metavar="REGEX",
    help="Bring tables whole whose names are as REGEX says. May be repeated.",
)
@depth_options
@click.option(
    "--allow-bootstrap",
    "is_bootstrap_allowed",
    is_flag=True,
    help="Drop the replica and copy everything, where nothing less helps.",
)
@click.option(
    "--wait",
    metavar="DURATION",
    help="How long open writers are waited for where tables come whole.  [default: setting]",
)
@click.option(
    "--abort-writers",
    "is_abort_allowed",
    is_flag=True,
    help="Then abort those that hold locks on the database, instead of giving up.",
)
@called(has_plan=True)
def repair(
    name: str,
    source_url: str | None,
    target_database: str | None,
    given_root: str | None,
    tables: tuple[str, ...],
    partitions: tuple[str, ...],
    patterns: tuple[str, ...],
    depth: Depth,
    is_bootstrap_allowed: bool,
    wait: str | None,
    is_abort_allowed: bool,
    call: Call,
) -> None:
    """Find what is wrong between a source and its replica, and end it by the smallest step.

    Steps, from the smallest: load what waits and dump what is new; dump again what a damaged dump
    had; bring tables whole, beside the events of all others; with --allow-bootstrap, begin anew.
    Tables are named by what dump and load refuse, what the last cycle failed with, and a
    comparison of both sides; or by --table, --partition and --pattern. At the end what was
    brought is compared. A repair that was killed is asked for again.

    --metastore keeps POLICY; with --source it is the replica's. Exit codes: 0 nothing is wrong
    now, 1 error, 2 something is left, 3 something is undecided (compare later).

    \b
    Examples:
      hms-bridge repl repair sales --dry-run
      hms-bridge repl repair sales --rows
      hms-bridge repl repair sales --table orders --pattern 'item_.*'
      hms-bridge repl repair sales --partition orders/day=2026-11-01
      hms-bridge repl repair sales --source thrift://s:9083 --metastore thrift://r:9083
    """
    from hms_bridge.repl.repair.looking import RepairRequest

    request = RepairRequest(
        tables=tables,
        patterns=patterns,
        partitions=tuple(map(_table_and_name, partitions)),
        is_bootstrap_allowed=is_bootstrap_allowed,
        depth=depth,
    )
    if source_url is None:
        if target_database is not None or given_root is not None:
            raise click.UsageError("a policy has its own database and root; give neither")
        with _kept(name, call) as store:
            policy = store.policies.get_policy(name)
            _repair(_Work(policy, call, store, wait, is_abort_allowed), request)
        return
    policy = _without_policy(name, source_url, target_database or name, given_root, call)
    _repair(_Work(policy, call, None, wait, is_abort_allowed), request)


@dataclass(frozen=True, slots=True)
class _Work:
    """What to repair. ``store`` of a policy that is kept: its history is there, too."""

    policy: ReplicationPolicy
    call: Call
    store: LocalStore | None
    wait: str | None
    is_abort_allowed: bool

    @contextmanager
    def opened(self) -> Iterator[ReplRepair]:
        from hms_bridge.repl.repair.repl_repair import ReplRepair

        name = self.policy.source.database
        with (
            working(f"looking at {name}") as show,
            open_repair(
                self.policy,
                self.call.metastore_url,
                lambda table: show(f"comparing {name}.{table}"),
                wait=self.wait,
                is_abort_allowed=self.is_abort_allowed,
            ) as sides,
        ):
            yield ReplRepair(sides, SystemClock(), say=_say)


def _kept(name: str, call: Call) -> AbstractContextManager[LocalStore]:
    """Where policies are. Raises ConfigError for a server."""
    require_keeper(name, call.metastore_url)
    return call.store()


def _without_policy(
    name: str, source_url: str, target_database: str, given_root: str | None, call: Call
) -> ReplicationPolicy:
    from hms_bridge.cli.repl_requests import repl_root

    require_two_databases((source_url, name), (call.metastore_url, target_database))
    return ReplicationPolicy(
        name=_WITHOUT_POLICY,
        root=repl_root(given_root, call.settings),
        source=PolicySide(database=name, metastore=source_url),
        target=PolicySide(database=target_database),
    )


def _repair(work: _Work, request: RepairRequest) -> None:
    request = replace(request, last_failure=_last_failure(work))
    for table, name in request.partitions:
        say(f"{table}/{name}: its table comes whole, as dumps bring no partitions")
    if work.call.is_dry_run:
        with work.opened() as repairs:
            plan = repairs.plan(request)
        _show_plan(plan, request, work.call)
        return
    report = _ran(work, request)
    work.call.print_record(_report_record(report))
    _say_troubles("left", report.left)
    if not request.depth.has_rows and report.comparison is not None:
        _say_unsure(report.comparison)
    if report.exit_code:
        raise SystemExit(report.exit_code)


def _ran(work: _Work, request: RepairRequest) -> RepairReport:
    """Alone, and written down, if it is of a policy. Raises HmsBridgeError."""
    if work.store is None:
        with _alone_with_replica(work), work.opened() as repairs:
            return repairs.run(request)
    from hms_bridge.cli.repl_requests import lease_rules
    from hms_bridge.repl.cycles.runner import Runner
    from hms_bridge.repl.lease import LeaseKind

    done: list[RepairReport] = []

    @contextmanager
    def opened(_: ReplicationPolicy) -> Iterator[_Repairing]:
        with work.opened() as repairs:
            yield _Repairing(repairs, request, done)

    runner = Runner(
        metastore=work.store.metastore,
        store=work.store.policies,
        open_cycle=opened,
        clock=work.store.clock,
        user=getpass.getuser(),
        host=socket.gethostname(),
        lease=lease_rules(work.call.settings),
        say=say,
        verb=LeaseKind.REPAIR.verb,
    )
    result = runner.run(work.policy)
    if not done:
        raise ReplError(result.message or f"the repair of {work.policy.name} did not end")
    return done[-1]


@contextmanager
def _alone_with_replica(work: _Work) -> Iterator[None]:
    """No cycle of a policy that the replica's metastore keeps is at work, nor another such repair.
    Raises BusyError. Over thrift, and of policies that are kept elsewhere, nobody can tell."""
    from hms_bridge.cli.repl_requests import lease_request
    from hms_bridge.repl.lease import LeaseKind, held_lease

    database, call = work.policy.target.database, work.call
    wanted = lease_request(LeaseKind.REPAIR, database, call.settings)
    with ExitStack() as stack:
        metastore, names = stack.enter_context(with_policies_at_work(database, call))
        verb = LeaseKind.REPAIR.verb
        runs = [
            replace(wanted, kind=LeaseKind.RUN, database_name=name, doing=verb) for name in names
        ]
        for lease in (wanted, *runs):
            stack.enter_context(held_lease(metastore, SystemClock(), lease))
        yield


@dataclass(frozen=True, slots=True)
class _Repairing:
    """A repair as the work of a cycle; ``done`` gets its report."""

    repairs: ReplRepair
    request: RepairRequest
    done: list[RepairReport]

    def run(self) -> CycleResult:
        """Raises what the repair does."""
        report = self.repairs.run(self.request)
        self.done.append(report)
        return report.result


def _last_failure(work: _Work) -> LastFailure | None:
    """Of the last cycle that came to an end, if it failed."""
    from hms_bridge.repl.repair.looking import LastFailure

    if work.store is None:
        return None
    for cycle in work.store.policies.get_cycles(work.policy.name, limit=_CYCLES_LOOKED_AT):
        if cycle.result.outcome in (CycleOutcome.RUNNING, CycleOutcome.INTERRUPTED):
            continue
        if cycle.result.outcome is not CycleOutcome.FAILED or cycle.ended_at_ms is None:
            return None
        return LastFailure(message=cycle.result.message or "", ended_at_ms=cycle.ended_at_ms)
    return None


def _table_and_name(partition: str) -> tuple[str, str]:
    table, separator, name = partition.partition("/")
    if not separator or "=" not in name:
        raise click.UsageError(f"--partition {partition}: write TABLE/KEY=VALUE")
    return table, name


def _say(text: str) -> None:
    say(f"repair: {text}")


def _show_plan(plan: RepairPlan, request: RepairRequest, call: Call) -> None:
    """Exit code 1 where the repair itself would refuse."""
    from hms_bridge.repl.repair.plan import Step
    from hms_bridge.repl.repair.repl_repair import require_allowed, step_text

    record: dict[str, object] = {
        "step": plan.step.value,
        "does": None if plan.step in (Step.NOTHING, Step.BY_HAND) else step_text(plan),
        "tables": list(plan.tables),
        "loaded_dump": plan.loaded_dump,
        "replaced_dump": plan.replaced_dump,
        "dropped_database": plan.dropped,
    }
    if call.output_format != "table":
        record |= {"because": _texts(plan.troubles), "left": _texts(plan.left)}
    call.print_record(record)
    _say_troubles("because", plan.troubles)
    _say_troubles("left", plan.left)
    if plan.step is Step.BY_HAND:
        raise ReplError(plan.troubles[0].text)
    require_allowed(plan, request)


def _report_record(report: RepairReport) -> dict[str, object]:
    from hms_bridge.repl.repair.repl_repair import step_text

    outcome = "repaired" if report.steps else "nothing was wrong"
    comparison = report.comparison
    compared = None if comparison is None else comparison.compared
    return {
        "outcome": {2: "something is left", 3: "something is undecided"}.get(
            report.exit_code, outcome
        ),
        "steps": [step_text(step) for step in report.steps],
        "tables": sorted({name for step in report.steps for name in step.tables}),
        "until_event": report.result.until_event_id,
        "events": report.result.event_count,
        "files": report.result.file_count,
        "bytes": report.result.byte_count,
        "compared_tables": None if compared is None else compared.tables,
        "compared_files": None if compared is None else compared.files,
        "compared_rows": None if compared is None else compared.rows,
        "left": _texts(report.left),
        "undecided": [] if comparison is None else _undecided(comparison),
    }


def _undecided(comparison: CompareReport) -> list[str]:
    from hms_bridge.repl.compare.described import Verdict

    return [
        f"{finding.table or 'the database'}: {finding.what}: {finding.why}"
        for finding in comparison.of(Verdict.UNDECIDED)
    ]


def _say_unsure(comparison: CompareReport) -> None:
    """A file that is lost, too, can look like one that a compaction took up."""
    from hms_bridge.repl.compare.described import Verdict

    tables = sorted({finding.table or "" for finding in comparison.of(Verdict.LAID_OUT)})
    if tables:
        say(f"laid out differently, of which --rows tells for sure: {', '.join(tables)}")


def _texts(troubles: Iterable[Trouble]) -> list[str]:
    return [f"{trouble.seen.value}: {trouble.text}" for trouble in troubles]


def _say_troubles(title: str, troubles: Sequence[Trouble]) -> None:
    for text in _texts(troubles):
        say(f"{title}: {text}")
