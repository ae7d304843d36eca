"""``hms-bridge repl policy``: what is replicated from where to where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import IO, TYPE_CHECKING

import click

from hms_bridge.cli.kept_policy import being_removed, kept_policies
from hms_bridge.cli.options import refuse_unknown_settings
from hms_bridge.cli.output import print_rows, say
from hms_bridge.cli.policy_given import GivenPolicy, given_policy, require_database_at_source
from hms_bridge.cli.repl_options import Call, called
from hms_bridge.errors import ConfigError
from hms_bridge.model.counted import counted
from hms_bridge.model.replication import PolicySide, ReplicationPolicy

if TYPE_CHECKING:
    from hms_bridge.connect import LocalStore

_COLUMNS = ("policy", "source", "database", "tables", "target", "into", "root", "paused")


_source_later_option = click.option(
    "--source-later",
    "is_source_later",
    is_flag=True,
    help="The source, or its database, need not be there yet.",
)


@click.group()
def policy() -> None:
    """Keep what is replicated from where to where; 'repl run' does it.

    Policies are rows of the database that --metastore names, the replica's as a rule.

    \b
    Example:
      hms-bridge repl policy add sales --source thrift://source:9083
      hms-bridge repl run --all
      hms-bridge repl history sales
    """


@policy.command()
@given_policy
@click.option(
    "--replace",
    "is_replacing",
    is_flag=True,
    help="Change the policy of that name: what is not given stays as it is.",
)
@_source_later_option
@called(has_plan=True, needs_database=True, has_output=False)
def add(given: GivenPolicy, is_replacing: bool, is_source_later: bool, call: Call) -> None:
    """Keep a policy NAME: that DATABASE (else the one called NAME) of a source is replicated.

    DATABASE may be Hive's "db.'include'.'exclude'": only tables whose whole names the first
    regular expression fits and the second does not. Its source must have it (--source-later).

    With --replace what is given of a policy changes, everything else stays: a setting that is
    given beside those that are there, too (--source-unset and --target-unset take one away). A
    DATABASE is given with its patterns: without them all tables are meant. The next cycle brings
    those whole that are new, and drops those that are not meant any more. What differs is shown.
    A policy that is kept just so already may be added again.

    No password stands in a policy: write ${NAME} in its place, which 'repl run' takes from the
    environment.

    \b
    Examples:
      hms-bridge repl policy add sales --source thrift://source:9083
      hms-bridge repl policy add orders "sales.'orders_.*'" --source thrift://source:9083
      hms-bridge repl policy add sales-dr sales --into sales_dr --source thrift://source:9083 \\
          --root hdfs://dr:8020/dumps --source-set hive.repl.cmrootdir=hdfs://source:8020/cmroot
      hms-bridge repl policy add sales --replace --source-set hive.repl.cm.retain=20d
    """
    from hms_bridge.repl.cycles.policy_text import checked

    if given.has_unset and not is_replacing:
        raise click.UsageError("--source-unset and --target-unset are for --replace")
    kept = kept_policies(call).policies if is_replacing else ()
    before = next((policy for policy in kept if policy.name == given.name), None)
    made = given.made(call.settings) if before is None else given.changed(before, call.settings)
    made = _ready(checked(made))
    if not is_source_later and (before is None or made.source != before.source):
        require_database_at_source(made, call.metastore_url)
    # Looking at a source takes its time, and a promotion that pauses the policy may end meanwhile.
    made_from = {given.name: before} if is_replacing else {}
    _keep([made], call, is_replacing=is_replacing, made_from=made_from)


@policy.command("list")
@called(needs_database=True)
def list_policies(call: Call) -> None:
    """List the policies.

    \b
    Examples:
      hms-bridge repl policy list
      hms-bridge repl policy list --format jsonl
    """
    with call.store() as store:
        policies = store.policies.get_policies()
        ending = store.policies.get_names_ending()
    print_rows([_row(policy) for policy in policies], _COLUMNS, call.output_format)
    say(counted(len(policies), "policy", "policies"))
    for name in ending:
        say(being_removed(name))


@policy.command()
@click.argument("name")
@called(needs_database=True)
def show(name: str, call: Call) -> None:
    """Show one policy, and its last cycle.

    \b
    Example:
      hms-bridge repl policy show sales
    """
    from hms_bridge.cli.repl_run import cycle_record

    with call.store() as store:
        policy = store.policies.get_policy(name)
        cycles = store.policies.get_cycles(name, limit=1)
    record = _row(policy) | {
        "source settings": dict(policy.source.settings),
        "target settings": dict(policy.target.settings),
    }
    if cycles:
        record["last cycle"] = {
            key: value for key, value in cycle_record(cycles[0]).items() if value is not None
        }
    call.print_record(record)


@policy.command()
@click.argument("name")
@called(needs_database=True, has_output=False)
def pause(name: str, call: Call) -> None:
    """Have no cycles of a policy until it is resumed. What the source archives is kept meanwhile.

    \b
    Example:
      hms-bridge repl policy pause sales
    """
    _set_paused(name, call, is_paused=True)


@policy.command()
@click.argument("name")
@called(needs_database=True, has_output=False)
def resume(name: str, call: Call) -> None:
    """Have cycles of a paused policy again.

    \b
    Example:
      hms-bridge repl policy resume sales
    """
    _set_paused(name, call, is_paused=False)


@policy.command()
@click.argument("name")
@click.option(
    "--keep-pins",
    "are_pins_kept",
    is_flag=True,
    help="The source's archive goes on holding what a next dump needs, for dumps by hand.",
)
@called(needs_database=True, has_output=False)
def remove(name: str, are_pins_kept: bool, call: Call) -> None:
    """Forget a policy and its history. Replica and dumps stay.

    The source's archive holds nothing more for the policy's next dump; what waits to be loaded can
    be loaded still. Waits for a cycle that was killed, and refuses while one is at work. Typed
    again, it goes on with a removal that was stopped or killed.

    \b
    Examples:
      hms-bridge repl policy remove sales
      hms-bridge repl policy remove sales --keep-pins
    """
    from hms_bridge.cli.policy_pins import let_go

    with call.store() as store:
        policy = store.policies.get_policy(name)
        with _alone(store, name, call):  # else a cycle would pin anew what is let go
            totals = store.policies.get_totals()
            # First: a policy that stays, as it is another one by now, needs its pins; and of one
            # that is forgotten nobody would look for them.
            store.policies.begin_removal(name, made_from=policy)
            pins = "pins stay" if are_pins_kept else let_go(policy, call.metastore_url)
            store.policies.remove_policy(name)
    has_loaded = any(of.policy == name and of.last_success_ms is not None for of in totals)
    say(f"policy {name} is forgotten; {pins}. {_what_stays(policy, has_loaded=has_loaded)}")


def _what_stays(policy: ReplicationPolicy, *, has_loaded: bool) -> str:
    if not has_loaded:
        return "None of its cycles came to its end; what was loaded all the same stays a replica"
    return (
        f"The replica {policy.target.database} stays one, and "
        f"the source keeps archiving for it: 'repl end {policy.source.database}' there ends that"
    )


@contextmanager
def _alone(store: LocalStore, name: str, call: Call) -> Iterator[None]:
    """No cycle of a policy is at work meanwhile. Raises BusyError."""
    from hms_bridge.cli.repl_requests import lease_request
    from hms_bridge.repl.lease import LeaseKind, held_lease

    wanted = replace(lease_request(LeaseKind.RUN, name, call.settings), doing="repl policy remove")
    with held_lease(store.metastore, store.clock, wanted):
        yield


@policy.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@called(needs_database=True, has_output=False)
def export(names: tuple[str, ...], call: Call) -> None:
    """Write policies, all or the named ones, as TOML that 'import' reads.

    \b
    Examples:
      hms-bridge repl policy export > policies.toml
      hms-bridge repl policy export sales
    """
    from hms_bridge.repl.cycles.policy_text import format_policies

    with call.store() as store:
        policies = (
            [store.policies.get_policy(name) for name in names]
            if names
            else store.policies.get_policies()
        )
    click.echo(format_policies(policies), nl=False)


@policy.command("import")
@click.argument("file", type=click.File(encoding="utf-8"))
@click.option("--replace", "is_replacing", is_flag=True, help="In place of those of the same name.")
@_source_later_option
@called(has_plan=True, needs_database=True, has_output=False)
def import_policies(file: IO[str], is_replacing: bool, is_source_later: bool, call: Call) -> None:
    """Keep the policies of a TOML FILE; - is standard input. All of them, or none.

    With --replace what differs from a policy of the same name is shown, by --dry-run before it is
    so; one that somebody else changes meanwhile is left alone, and so are all the others.

    The sources must have their databases; those of policies that are kept with the same source
    already are not asked again. Where a source is down or lost: --source-later.

    \b
    Examples:
      hms-bridge repl policy import policies.toml
      hms-bridge repl policy export | hms-bridge repl policy import - --metastore sqlite:///b.db
    """
    from hms_bridge.repl.cycles.policy_text import parse_policies

    place = "standard input" if file.name == "<stdin>" else file.name
    try:
        text = file.read()
    except UnicodeDecodeError as error:
        raise ConfigError(f"cannot read {place}: {error}; write the policies in UTF-8") from error
    made = [_ready(policy) for policy in parse_policies(text, place)]
    kept = {policy.name: policy for policy in kept_policies(call).policies}
    before = {policy.name: kept.get(policy.name) for policy in made}
    for policy in made if not is_source_later else ():
        replaced = before[policy.name]
        if replaced is None or policy.source != replaced.source:
            require_database_at_source(policy, call.metastore_url)
    # What is replaced is what was there when this began, as with 'add'.
    _keep(made, call, is_replacing=is_replacing, made_from=before if is_replacing else {})


def _keep(
    policies: Sequence[ReplicationPolicy],
    call: Call,
    *,
    is_replacing: bool,
    made_from: Mapping[str, ReplicationPolicy | None] = MappingProxyType({}),
) -> None:
    """Policies that are :func:`_ready`; with --dry-run they are shown as they would be kept."""
    from hms_bridge.cli.policy_pins import still_held
    from hms_bridge.connect import is_set_up
    from hms_bridge.repl.cycles.policy_text import format_policies

    if call.is_dry_run:
        if is_set_up(call.metastore_url):
            with call.store() as store:
                before = {kept.name: kept for kept in store.policies.get_policies()}
                store.policies.changed_by(policies, is_replacing=is_replacing)
            for made in policies:
                _say_changes(before.get(made.name), made, "would be another one")
        click.echo(format_policies(policies), nl=False)
        return
    with call.store(is_created=True) as store:
        before = {kept.name: kept for kept in store.policies.get_policies()}
        store.policies.add_policies(policies, is_replacing=is_replacing, made_from=made_from)
    for made in policies:
        before_it = before.get(made.name)
        if before_it is None:
            say(f"policy {made.name} is kept; its first cycle: hms-bridge repl run {made.name}")
        _say_changes(before_it, made, "is another one now")
        left = None if before_it is None else still_held(before_it, made)
        if left is not None:
            say(f"note: policy {made.name}: {left}")


def _ready(policy: ReplicationPolicy) -> ReplicationPolicy:
    """A policy as it is kept: its metastores by URLs that mean the same in the directory of a timer
    or service. Raises ConfigError for a setting that is mistyped."""
    from hms_bridge.connect import shareable_url

    for side in (policy.source, policy.target):
        refuse_unknown_settings(side.settings, f"policy {policy.name}")

    def placed(side: PolicySide) -> PolicySide:
        if side.metastore is None or "${" in side.metastore:  # known only where a cycle runs
            return side
        return replace(side, metastore=shareable_url(side.metastore))

    return replace(policy, source=placed(policy.source), target=placed(policy.target))


def _say_changes(before: ReplicationPolicy | None, made: ReplicationPolicy, what: str) -> None:
    """Of a policy that takes another's place, all that is not as it was; nothing of a new one."""
    if before is None:
        return
    was, wanted = _every_value(before), _every_value(made)
    keys = [key for key in dict.fromkeys([*was, *wanted]) if was.get(key) != wanted.get(key)]
    say(f"policy {made.name} {what if keys else 'is kept just so already'}")
    for key in keys:
        say(f"{key}: {wanted.get(key, 'no more')} (was: {was.get(key, 'not set')})")


def _every_value(policy: ReplicationPolicy) -> dict[str, object]:
    sides = {"--source-set": policy.source.settings, "--target-set": policy.target.settings}
    settings = {
        f"{side} {key}": value for side, values in sides.items() for key, value in values.items()
    }
    return {key: value for key, value in (_row(policy) | settings).items() if value is not None}


def _set_paused(name: str, call: Call, *, is_paused: bool) -> None:
    with call.store() as store:
        store.policies.set_paused(name, is_paused=is_paused)
    say(f"policy {name} is {'paused' if is_paused else 'resumed'}")


def _row(policy: ReplicationPolicy) -> dict[str, object]:
    return {
        "policy": policy.name,
        "source": policy.source.metastore,
        "database": policy.source.database,
        "tables": policy.scope.patterns_text or None,
        "target": policy.target.metastore,
        "into": policy.target.database,
        "root": policy.root,
        "paused": policy.is_paused,
    }
