"""``hms-bridge repl dump --discard``."""

from __future__ import annotations

from hms_bridge.cli.dump_jobs import dump_job
from hms_bridge.cli.output import print_record, say
from hms_bridge.cli.sides import source_side
from hms_bridge.config.settings import Settings
from hms_bridge.repl.dump.discard import DiscardPlan, DiscardRequest, ReplDiscard


def discard_dump(
    request: DiscardRequest,
    metastore_url: str,
    settings: Settings,
    output_format: str,
    *,
    is_dry_run: bool,
) -> None:
    """Show the plan; carry it out, unless nothing may be changed. Raises ReplError."""
    with source_side(metastore_url, settings) as (metastore, manifest):
        job = dump_job(ReplDiscard, metastore, manifest, settings)
        plan = job.plan(request)
        if not is_dry_run:
            job.run(plan)
    print_record(_record(plan), output_format)
    if manifest is None:
        say("note: pins of the dump, if any, are in the source's database; release them there")
    say("nothing was changed" if is_dry_run else "the next dump can be made")


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
