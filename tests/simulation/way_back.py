"""The way out of a failback of some tables only, as its refusal names it."""

from __future__ import annotations

import copy
from dataclasses import replace

from hms_bridge.repl.dump.repl_dump import ReplDump
from hms_bridge.repl.handover.own_part import plan_end, run_end
from hms_bridge.repl.load.repl_load import ReplLoad
from tests.simulation.checks import require_loaded
from tests.simulation.policy_runs import PolicyRuns
from tests.simulation.story import Loaded

_ROOT = "file:/back"
_DATABASE = "src_back"


def bring_back(admin: PolicyRuns) -> None:
    """The tables come into a database of their own at the former source, whose others belong to
    their writers again. What is brought must be so (I11)."""
    cluster = admin.cluster
    new = cluster.roles.now
    former, store = cluster.other(new), new.metastore
    cluster.work_at(new)
    dump = replace(
        admin.dump_request(), root=_ROOT, scope=None, is_scope_changed=False, event_limit=None
    )
    dumper = ReplDump(store, cluster.resolve, cluster.host_clock, cluster.token, store.manifest)
    dumper.run(dumper.plan(dump))
    load = replace(admin.load_request(), root=_ROOT, target_database=_DATABASE)
    loader = ReplLoad(former.metastore, cluster.resolve, clock=cluster.host_clock)
    report = loader.run(loader.plan(load))
    brought = copy.copy(former)
    brought.database_name = _DATABASE
    reached = int(report.last_event_id or 0)
    require_loaded(brought, Loaded(new.story.model.between(reached, new.event_id()), reached))
    if former.parameter("hms.bridge.repl.fenced"):
        plan = plan_end(former.metastore, former.database_name)
        cluster.roles.ended.add(former.name)
        run_end(former.metastore, plan)
    cluster.roles.is_split = cluster.roles.is_brought_back = True
