"""``hms-bridge repl dump --discard``."""

from __future__ import annotations

from hms_bridge.cli.dump_jobs import dump_job
from hms_bridge.cli.output import say
from hms_bridge.cli.repl_options import Call
from hms_bridge.repl.dump.discard import DiscardPlan, DiscardRequest, ReplDiscard


def discard_dump(request: DiscardRequest, call: Call) -> None:
    """Show the plan; carry it out, unless nothing may be changed. Raises ReplError."""
    with call.source() as (metastore, manifest):
        job = dump_job(ReplDiscard, metastore, manifest, call.settings)
        plan = job.plan(request)
        if not call.is_dry_run:
            job.run(plan)
    call.print_record(_record(plan))
    if manifest is None:
        say("note: pins of the dump, if any, are in the source's database; release them there")
    say("nothing was changed" if call.is_dry_run else "the next dump can be made")


def _record(plan: DiscardPlan) -> dict[str, object]:
    kind = plan.metadata.type.lower() if plan.metadata is not None else None
    after = plan.resume_at
    return {
        "removed": plan.directory,
        "kind": kind,
        "state": plan.state.value,
        "pin released": plan.pin,
        "next dump": "bootstrap" if after is None else f"incremental, after event {after}",
    }
