"""``hms-bridge repl policy``: what is replicated from where to where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import IO

import click

from hms_bridge.cli.options import (
    database_option,
    dry_run_option,
    format_option,
    refuse_unknown_settings,
    settings_options,
    split_assignment,
)
from hms_bridge.cli.output import print_record, print_rows, say
from hms_bridge.config.settings import Settings
from hms_bridge.model.counted import counted
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.model.replication import PolicySide, ReplicationPolicy

_COLUMNS = ("policy", "source", "database", "tables", "target", "into", "root", "paused")


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
@click.argument("name")
@click.argument("source_database", metavar="[DATABASE]", required=False)
@click.option(
    "--source", "source_url", metavar="URL", required=True, help="The source's metastore."
)
@click.option("--into", "target_database", help="Database of the replica.  [default: the same]")
@click.option(
    "--target",
    "target_url",
    metavar="URL",
    help="The replica's metastore.  [default: the one that keeps the policy]",
)
@click.option("--root", "given_root", metavar="DIR", help="Where dumps are.  [default: setting]")
@click.option(
    "--source-set",
    "source_settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of the source's side alone, as its archive. May be repeated.",
)
@click.option(
    "--target-set",
    "target_settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of the replica's side alone. May be repeated.",
)
@click.option("--replace", "is_replacing", is_flag=True, help="In place of the one of that name.")
@dry_run_option
@database_option
@settings_options
def add(
    name: str,
    source_database: str | None,
    source_url: str,
    target_database: str | None,
    target_url: str | None,
    given_root: str | None,
    source_settings: tuple[str, ...],
    target_settings: tuple[str, ...],
    is_replacing: bool,
    is_dry_run: bool,
    metastore_url: str,
    settings: Settings,
) -> None:
    """Keep a policy NAME: that DATABASE (else the one called NAME) of a source is replicated.

    DATABASE may be Hive's "db.'include'.'exclude'": only tables whose whole names the first
    regular expression fits and the second does not. With --replace the tables of a policy change:
    its next cycle brings those whole that are new, and drops those that are not meant any more.

    No password stands in a policy: write ${NAME} in its place, which 'repl run' takes from the
    environment.

    \b
    Examples:
      hms-bridge repl policy add sales --source thrift://source:9083
      hms-bridge repl policy add orders "sales.'orders_.*'" --source thrift://source:9083
      hms-bridge repl policy add sales-dr sales --into sales_dr --source thrift://source:9083 \\
          --root hdfs://dr:8020/dumps --source-set hive.repl.cmrootdir=hdfs://source:8020/cmroot
    """
    from hms_bridge.cli.repl_requests import repl_root
    from hms_bridge.repl.cycles.policy_text import checked

    scope = ReplScope.parse(source_database or name)
    database = scope.database_name
    made = checked(
        ReplicationPolicy(
            name=name,
            root=repl_root(given_root, settings),
            source=PolicySide(
                database=database,
                metastore=source_url,
                settings=_assigned("--source-set", source_settings),
            ),
            target=PolicySide(
                database=target_database or database,
                metastore=target_url,
                settings=_assigned("--target-set", target_settings),
            ),
            included_tables=scope.included_pattern,
            excluded_tables=scope.excluded_pattern,
        )
    )
    _keep([made], metastore_url, settings, is_replacing=is_replacing, is_dry_run=is_dry_run)


@policy.command("list")
@database_option
@format_option
@settings_options
def list_policies(metastore_url: str, output_format: str, settings: Settings) -> None:
    """List the policies.

    \b
    Examples:
      hms-bridge repl policy list
      hms-bridge repl policy list --format jsonl
    """
    from hms_bridge.connect import connected_locally

    with connected_locally(metastore_url, settings, is_created=False) as store:
        found = store.policies.get_policies()
    print_rows([_row(policy) for policy in found], _COLUMNS, output_format)
    say(counted(len(found), "policy", "policies"))


@policy.command()
@click.argument("name")
@database_option
@format_option
@settings_options
def show(name: str, metastore_url: str, output_format: str, settings: Settings) -> None:
    """Show one policy, and its last cycle.

    \b
    Example:
      hms-bridge repl policy show sales
    """
    from hms_bridge.cli.repl_run import cycle_record
    from hms_bridge.connect import connected_locally

    with connected_locally(metastore_url, settings, is_created=False) as store:
        found = store.policies.get_policy(name)
        cycles = store.policies.get_cycles(name, limit=1)
    record = _row(found) | {
        "source settings": dict(found.source.settings),
        "target settings": dict(found.target.settings),
    }
    if cycles:
        record["last cycle"] = {
            key: value for key, value in cycle_record(cycles[0]).items() if value is not None
        }
    print_record(record, output_format)


@policy.command()
@click.argument("name")
@database_option
@settings_options
def pause(name: str, metastore_url: str, settings: Settings) -> None:
    """Have no cycles of a policy until it is resumed. What the source archives is kept meanwhile.

    \b
    Example:
      hms-bridge repl policy pause sales
    """
    _set_paused(name, metastore_url, settings, is_paused=True)


@policy.command()
@click.argument("name")
@database_option
@settings_options
def resume(name: str, metastore_url: str, settings: Settings) -> None:
    """Have cycles of a paused policy again.

    \b
    Example:
      hms-bridge repl policy resume sales
    """
    _set_paused(name, metastore_url, settings, is_paused=False)


@policy.command()
@click.argument("name")
@database_option
@settings_options
def remove(name: str, metastore_url: str, settings: Settings) -> None:
    """Forget a policy and its history. Replica, dumps and what the source keeps stay.

    \b
    Example:
      hms-bridge repl policy remove sales
    """
    from hms_bridge.connect import connected_locally

    with connected_locally(metastore_url, settings, is_created=False) as store:
        found = store.policies.get_policy(name)
        store.policies.remove_policy(name)
    say(
        f"policy {name} is forgotten. The replica {found.target.database} stays one, and the "
        f"source keeps archiving for it: 'repl end {found.source.database}' there ends that"
    )


@policy.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@database_option
@settings_options
def export(names: tuple[str, ...], metastore_url: str, settings: Settings) -> None:
    """Write policies, all or the named ones, as TOML that 'import' reads.

    \b
    Examples:
      hms-bridge repl policy export > policies.toml
      hms-bridge repl policy export sales
    """
    from hms_bridge.connect import connected_locally
    from hms_bridge.repl.cycles.policy_text import format_policies

    with connected_locally(metastore_url, settings, is_created=False) as store:
        found = (
            [store.policies.get_policy(name) for name in names]
            if names
            else store.policies.get_policies()
        )
    click.echo(format_policies(found), nl=False)


@policy.command("import")
@click.argument("file", type=click.File(encoding="utf-8"))
@click.option("--replace", "is_replacing", is_flag=True, help="In place of those of the same name.")
@dry_run_option
@database_option
@settings_options
def import_policies(
    file: IO[str], is_replacing: bool, is_dry_run: bool, metastore_url: str, settings: Settings
) -> None:
    """Keep the policies of a TOML FILE; - is standard input. All of them, or none.

    \b
    Examples:
      hms-bridge repl policy import policies.toml
      hms-bridge repl policy export | hms-bridge repl policy import - --metastore sqlite:///b.db
    """
    from hms_bridge.repl.cycles.policy_text import parse_policies

    place = "standard input" if file.name == "<stdin>" else file.name
    made = parse_policies(file.read(), place)
    _keep(made, metastore_url, settings, is_replacing=is_replacing, is_dry_run=is_dry_run)


def _keep(
    policies: Sequence[ReplicationPolicy],
    metastore_url: str,
    settings: Settings,
    *,
    is_replacing: bool,
    is_dry_run: bool,
) -> None:
    from hms_bridge.connect import connected_locally
    from hms_bridge.repl.cycles.policy_text import format_policies

    for made in policies:
        for side in (made.source, made.target):
            refuse_unknown_settings(side.settings, f"policy {made.name}")
    if is_dry_run:
        click.echo(format_policies(policies), nl=False)
        return
    with connected_locally(metastore_url, settings) as store:
        store.policies.add_policies(policies, is_replacing=is_replacing)
    for made in policies:
        say(f"policy {made.name} is kept; its first cycle: hms-bridge repl run {made.name}")


def _set_paused(name: str, metastore_url: str, settings: Settings, *, is_paused: bool) -> None:
    from hms_bridge.connect import connected_locally

    with connected_locally(metastore_url, settings, is_created=False) as store:
        store.policies.set_paused(name, is_paused=is_paused)
    say(f"policy {name} is {'paused' if is_paused else 'resumed'}")


def _assigned(option: str, texts: Iterable[str]) -> dict[str, str]:
    return dict(split_assignment(option, text) for text in texts)


def _row(found: ReplicationPolicy) -> dict[str, object]:
    return {
        "policy": found.name,
        "source": found.source.metastore,
        "database": found.source.database,
        "tables": found.scope.patterns_text or None,
        "target": found.target.metastore,
        "into": found.target.database,
        "root": found.root,
        "paused": found.is_paused,
    }
