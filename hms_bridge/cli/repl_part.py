"""``hms-bridge repl open`` and ``hms-bridge repl end``."""

from __future__ import annotations

import click

from hms_bridge.cli.kept_policy import with_policies_at_work
from hms_bridge.cli.output import say
from hms_bridge.cli.repl_options import Call, called
from hms_bridge.dml.named import find_database

_TOLD = {
    "WRITES": "others may write to {0} and define what it holds; a load that finds it changed "
    "refuses",
    "DEFINITIONS": "others may define what {0} holds, but not write to it",
    "NOTHING": "only loads change {0}",
}
_FORMER_SOURCE = "{0} is a database of its own, and may be dumped again"


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
@called(has_output=False)
def open_replica(database: str, access: str | None, call: Call) -> None:
    """Let others change the replica DATABASE, or not any more.

    A metastore of hms-bridge gives write ids of a replica to loads only, takes compactions of it
    from its initiator only, and lets only loads change the definitions of one that they made.

    A former source, whose place its replica took, is not dumped any more, also after 'repl end':
    --writes makes it one that may be.

    \b
    Examples:
      hms-bridge repl open sales --definitions --metastore sqlite:///replica.db
      hms-bridge repl open sales --close --metastore sqlite:///replica.db
    """
    from hms_bridge.repl.handover.own_part import Access, set_access

    if access is None:
        raise click.UsageError("say what: --writes, --definitions or --close")
    with call.connected() as metastore:
        find_database(metastore, database.lower())
        is_former_source = set_access(metastore, database.lower(), Access[access])
    message = _FORMER_SOURCE if is_former_source else _TOLD[access]
    say(message.format(database.lower()))


@click.command("end")
@click.argument("database")
@called(has_plan=True)
def end_part(database: str, call: Call) -> None:
    """End DATABASE's part in replication: it is neither replica nor source any more.

    After a failover it so becomes a database of its own, which can be written to and dumped; what
    loads left open is aborted. Of a source, files that are replaced from now on are not archived.
    A source whose replica took its place takes writes again, but is not dumped ('repl open').
    What will be lost is told first, with --dry-run, too. While a policy that --metastore keeps
    replicates from or into it, it is refused: pause or remove the policy.

    \b
    Examples:
      hms-bridge repl end sales --dry-run --metastore sqlite:///replica.db
      hms-bridge repl end sales --metastore sqlite:///replica.db
    """
    from hms_bridge.repl.handover.own_part import plan_end, run_end

    name = database.lower()
    with with_policies_at_work(name, call) as (metastore, policies):
        find_database(metastore, name)
        plan = plan_end(metastore, name, policies)
        for loss in plan.losses:
            say(f"warning: {loss}")
        if not call.is_dry_run:
            run_end(metastore, plan)
    call.print_record(
        {
            "database": plan.database.name,
            "properties removed": list(plan.properties),
            "transactions aborted": list(plan.txn_ids),
            "lost": list(plan.losses),
        }
    )
    if call.is_dry_run:
        say("nothing was changed")
