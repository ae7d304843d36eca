"""``hms-bridge repl open`` and ``hms-bridge repl end``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from hms_bridge.cli.options import (
    dry_run_option,
    format_option,
    metastore_option,
    settings_options,
)
from hms_bridge.cli.output import print_record, say
from hms_bridge.config.settings import Settings
from hms_bridge.metastore import Metastore

_TOLD = {
    "WRITES": "others may write to {0} and define what it holds; a load that finds it changed "
    "refuses",
    "DEFINITIONS": "others may define what {0} holds, but not write to it",
    "NOTHING": "only loads change {0}",
}


@click.command("open")
@click.argument("database")
@click.option("--writes", "access", flag_value="WRITES", help="Let others write and define.")
@click.option(
    "--definitions",
    "access",
    flag_value="DEFINITIONS",
    help="Let others create, alter and drop tables; REPL LOAD of a real Hive needs it.",
)
@click.option("--close", "access", flag_value="NOTHING", help="Let nobody but loads change it.")
@metastore_option
@settings_options
def open_replica(database: str, access: str | None, metastore_url: str, settings: Settings) -> None:
    """Let others change the replica DATABASE, or not any more.

    A metastore of hms-bridge gives write ids of a replica to loads only, takes compactions of it
    from its initiator only, and lets only loads change the definitions of one that they made.

    \b
    Examples:
      hms-bridge repl open sales --definitions --metastore sqlite:///replica.db
      hms-bridge repl open sales --close --metastore sqlite:///replica.db
    """
    from hms_bridge.connect import connected
    from hms_bridge.repl.own_part import Access, set_access

    if access is None:
        raise click.UsageError("say what: --writes, --definitions or --close")
    with connected(metastore_url, settings, is_created=False) as metastore:
        set_access(metastore, database.lower(), Access[access])
    say(_TOLD[access].format(database.lower()))


@click.command("end")
@click.argument("database")
@dry_run_option
@metastore_option
@format_option
@settings_options
def end_part(
    database: str, is_dry_run: bool, metastore_url: str, output_format: str, settings: Settings
) -> None:
    """End DATABASE's part in replication: it is neither replica nor source any more.

    After a failover it so becomes a database of its own, which can be written to and dumped; what
    loads left open is aborted. Of a source, files that are replaced from now on are not archived.
    What will be lost is told first, with --dry-run, too. While a policy that --metastore keeps
    replicates from or into it, it is refused: pause or remove the policy.

    \b
    Examples:
      hms-bridge repl end sales --dry-run --metastore sqlite:///replica.db
      hms-bridge repl end sales --metastore sqlite:///replica.db
    """
    from hms_bridge.repl.own_part import plan_end, run_end

    name = database.lower()
    with _with_policies(name, metastore_url, settings) as (metastore, policies):
        plan = plan_end(metastore, name, policies)
        for loss in plan.losses:
            say(f"warning: {loss}")
        if not is_dry_run:
            run_end(metastore, plan)
    print_record(
        {
            "database": plan.database.name,
            "properties removed": list(plan.properties),
            "transactions aborted": list(plan.txn_ids),
            "lost": list(plan.losses),
        },
        output_format,
    )
    if is_dry_run:
        say("nothing was changed")


@contextmanager
def _with_policies(
    database: str, url: str, settings: Settings
) -> Iterator[tuple[Metastore, tuple[str, ...]]]:
    """A metastore, and the policies at work with a database; those of a remote one are out of
    reach."""
    from hms_bridge.connect import connected, connected_locally

    if url.startswith("thrift://"):
        with connected(url, settings, is_created=False) as metastore:
            yield metastore, ()
    else:
        with connected_locally(url, settings, is_created=False) as store:
            yield store.metastore, store.policies.get_names_at_work(database)
