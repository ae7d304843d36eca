"""``hms-bridge repl run`` and ``repl history``: cycles of policies."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hms_bridge.cli.copy_options import CopyOptions, copy_options
from hms_bridge.cli.open_cycle import open_cycle
from hms_bridge.cli.options import duration_option_ms
from hms_bridge.cli.output import print_rows, printable, say, size_text, time_text
from hms_bridge.cli.repl_options import Call, called
from hms_bridge.cli.repl_run_metrics import CycleNews, cycle_metrics_options, cycles_told
from hms_bridge.errors import BusyError, ConfigError, HmsBridgeError
from hms_bridge.interrupts import stopped_by_sigterm
from hms_bridge.model.replication import (
    Cycle,
    CycleOutcome,
    CycleResult,
    ReplicationPolicy,
)
from hms_bridge.repl.remedies import repair_of

if TYPE_CHECKING:
    from hms_bridge.connect import LocalStore
    from hms_bridge.repl.cycles.runner import Runner

_RESULT_COLUMNS = (
    "policy", "outcome", "kind", "until_event", "events", "files", "bytes", "attempts", "why",
)  # fmt: skip
# A person has read why on standard error, line by line.
_RESULT_SHOWN = tuple(column for column in _RESULT_COLUMNS if column != "why")
_CYCLE_COLUMNS = (
    "policy", "cycle", "started", "seconds", "outcome", "kind", "until_event", "events", "files",
    "bytes", "attempts", "host", "dump", "why",
)  # fmt: skip
_CYCLE_SHOWN = (
    "policy", "cycle", "started", "seconds", "outcome", "kind", "events", "files", "size",
)  # fmt: skip
_CYCLE_SPARED = ("files", "seconds", "kind", "events", "size")
"""On a narrow terminal: when something was done, and what became of it, counts for more."""
_PLAN_COLUMNS = ("policy", "kind", "reason", "after_event", "until_event", "tables", "why")
_HISTORY_MAX = 100


@click.command()
@click.argument("names", metavar="[POLICY]...", nargs=-1)
@click.option("--all", "are_all", is_flag=True, help="Every policy that is not paused.")
@click.option(
    "--every", metavar="DURATION", help="Again and again, as 10m, until told to stop; else once."
)
@click.option(
    "--attempts",
    "attempts_max",
    type=click.IntRange(1, 100),
    default=5,
    show_default=True,
    help="Tries of a cycle while a server or a storage does not answer.",
)
@copy_options
@cycle_metrics_options
@called(has_plan=True, needs_database=True)
def run(
    names: tuple[str, ...],
    are_all: bool,
    every: str | None,
    attempts_max: int,
    copying: CopyOptions,
    metrics_file: Path | None,
    metrics_port: int | None,
    call: Call,
) -> None:
    """Replicate what policies say: dump, verify, load, let the dump's files go.

    A cycle that was stopped at any point is gone on with by the next one. While another process
    has a cycle of the same policy, nothing is done. Exit code 0 if every replica has what its
    source had, 1 if one could not be brought there; 'repl history' says why.

    \b
    Examples:
      hms-bridge repl run sales
      hms-bridge repl run --all --every 10m --metrics-port 9465
      hms-bridge repl run --all --metrics /var/lib/node_exporter/cycles.prom
      hms-bridge repl run --all --bandwidth 50MiB
      hms-bridge repl run --all --dry-run
    """
    if are_all == bool(names):
        raise click.UsageError("name policies, or give --all")
    pause_seconds = None if every is None else _pause_seconds(every)
    if metrics_port is not None and pause_seconds is None:
        raise click.UsageError("--metrics-port needs --every; a run that ends has --metrics FILE")
    from hms_bridge.connect import await_database

    with stopped_by_sigterm():
        if pause_seconds is not None:
            await_database(call.metastore_url, call.settings.server.database_wait_ms)
        with call.store() as store:
            chosen = _chosen(store, names)  # what is mistyped is refused before anything is done
            if call.is_dry_run:
                rows = [_planned(call.metastore_url, policy, copying) for policy in chosen]
                print_rows(rows, _PLAN_COLUMNS, call.output_format)
                raise SystemExit(int(any(row["why"] for row in rows)))
            runner = _runner(store, call, copying, attempts_max=attempts_max)
            with cycles_told(store, names, metrics_file, metrics_port) as news:
                while True:
                    rows = [_ran(runner, policy.name, news) for policy in chosen]
                    print_rows(rows, _RESULT_COLUMNS, call.output_format, shown=_RESULT_SHOWN)
                    if pause_seconds is None:
                        is_failed = news.is_lost or any(_is_failed(row) for row in rows)
                        raise SystemExit(int(is_failed))
                    if not _has_slept(runner, pause_seconds):
                        return
                    chosen = _chosen_anew(store, names, chosen)


@click.command()
@click.argument("policy", required=False)
@click.option(
    "--limit",
    type=click.IntRange(1, 100_000),
    default=_HISTORY_MAX,
    show_default=True,
    help="So many cycles, the newest.",
)
@called(needs_database=True)
def history(policy: str | None, limit: int, call: Call) -> None:
    """What each cycle of POLICY, or of all, did: newest first.

    Of cycles in a row that found nothing new the last is kept. Why others failed stands below the
    table, each reason once. A terminal that is too narrow for all columns does without some; JSON
    has all of them.

    \b
    Examples:
      hms-bridge repl history
      hms-bridge repl history sales --limit 10 --format json
    """
    with call.store() as store:
        if policy is not None:
            store.policies.get_policy(policy)  # a mistyped one has no history, and no error
        cycles = store.policies.get_cycles(policy, limit)
    rows = [cycle_record(cycle) for cycle in cycles]
    if call.output_format == "table":
        sizes = [size_text(cycle.result.byte_count) for cycle in cycles]
        rows = [row | {"size": size} for row, size in zip(rows, sizes, strict=True)]
    # Named once, a policy needs no column: eighty characters hold the others.
    shown = [name for name in _CYCLE_SHOWN if policy is None or name != "policy"]
    print_rows(rows, _CYCLE_COLUMNS, call.output_format, shown=shown, spared=_CYCLE_SPARED)
    if call.output_format == "table":
        for line in _reasons(cycles):
            click.echo(line)


def _reasons(cycles: Iterable[Cycle]) -> Iterator[str]:
    """Why cycles failed: one that fails each hour for the same reason says so once."""
    numbers: dict[tuple[str, str], list[int]] = {}
    for cycle in cycles:
        if cycle.result.message is not None:
            numbers.setdefault((cycle.policy, cycle.result.message), []).append(cycle.number)
    for (policy, why), failed in numbers.items():
        more = f" and {len(failed) - 1} before" if len(failed) > 1 else ""
        yield f"{policy}, cycle {failed[0]}{more}: {printable(why)}"


def cycle_record(cycle: Cycle) -> dict[str, object]:
    """A cycle for programs: numbers are numbers."""
    duration = cycle.duration_ms
    return _result_record(cycle.policy, cycle.result) | {
        "cycle": cycle.number,
        "started": time_text(cycle.started_at_ms),
        "seconds": None if duration is None else duration / 1000,
        "host": cycle.host,
        "dump": cycle.result.dump_directory,
    }


def _result_record(policy: str, result: CycleResult) -> dict[str, object]:
    return {
        "policy": policy,
        "outcome": result.outcome.value,
        "kind": result.dump_kind,
        "until_event": result.until_event_id,
        "events": result.event_count,
        "files": result.file_count,
        "bytes": result.byte_count,
        "attempts": result.attempt_count,
        "why": result.message,
    }


def _chosen(store: LocalStore, names: Sequence[str]) -> list[ReplicationPolicy]:
    """Those that were named, or all that are not paused. Raises NoSuchObjectError, and ConfigError
    for a paused one that was named."""
    if not names:
        return [policy for policy in store.policies.get_policies() if not policy.is_paused]
    policies = [store.policies.get_policy(name) for name in dict.fromkeys(names)]
    for policy in policies:
        if policy.is_paused:
            raise ConfigError(_paused_text(policy))
    return policies


def _chosen_anew(
    store: LocalStore, names: Sequence[str], before: list[ReplicationPolicy]
) -> list[ReplicationPolicy]:
    """For the next pass. It goes on with the same ones where it cannot read them: of each its cycle
    finds out what has become of it."""
    if names:
        return before
    try:
        return _chosen(store, names)
    except HmsBridgeError as error:
        say(str(error))
        return before


def _paused_text(policy: ReplicationPolicy) -> str:
    return f"policy {policy.name} is paused: hms-bridge repl policy resume {policy.name}"


def _ran(runner: Runner, name: str, news: CycleNews) -> dict[str, object]:
    """What is wrong with one policy, as it is now, says nothing of the next."""
    try:
        policy = runner.store.get_policy(name)
        if policy.is_paused:
            say(_paused_text(policy))
            return {"policy": name, "outcome": "paused", "why": _paused_text(policy)}
        result = runner.run(policy)
        news.write()
    except BusyError as error:
        say(str(error))
        return {"policy": name, "outcome": "busy", "why": str(error)}
    except HmsBridgeError as error:
        result = CycleResult(outcome=CycleOutcome.FAILED, message=str(error))
    if result.message is not None:
        say(f"{name}: {result.message}")
        hint = repair_of(name, result.message)
        if hint is not None:
            say(f"{name}: {hint}")
    return _result_record(name, result)


def _is_failed(row: dict[str, object]) -> bool:
    return row["outcome"] == CycleOutcome.FAILED.value


def _has_slept(runner: Runner, seconds: float) -> bool:
    """False if it was asked to stop between two passes, which cuts off nothing."""
    try:
        runner.clock.sleep_seconds(seconds)
    except KeyboardInterrupt:
        say("stopping")
        return False
    return True


def _planned(
    metastore_url: str, policy: ReplicationPolicy, copying: CopyOptions
) -> dict[str, object]:
    row: dict[str, object] = {"policy": policy.name, "why": None}
    try:
        with open_cycle(policy, metastore_url, copying) as cycle:
            plan = cycle.plan()
    except HmsBridgeError as error:
        return row | {"why": str(error)}
    return row | {
        "kind": plan.kind.value,
        "reason": plan.reason,
        "after_event": plan.after_event_id,
        "until_event": plan.until_event_id,
        "tables": list(plan.tables or plan.anew),
    }


def _runner(store: LocalStore, call: Call, copying: CopyOptions, *, attempts_max: int) -> Runner:
    from hms_bridge.cli.repl_requests import lease_rules
    from hms_bridge.repl.cycles.runner import Runner, RunRules

    return Runner(
        metastore=store.metastore,
        store=store.policies,
        open_cycle=lambda policy: open_cycle(policy, call.metastore_url, copying),
        clock=store.clock,
        user=getpass.getuser(),
        host=socket.gethostname(),
        lease=lease_rules(call.settings),
        rules=RunRules(attempts_max=attempts_max),
        say=say,
    )


def _pause_seconds(text: str) -> float:
    pause_ms = duration_option_ms("--every", text)
    if pause_ms < 1000:
        raise click.UsageError("--every takes a second or more")
    return pause_ms / 1000
