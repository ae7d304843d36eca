"""Policies of replication over the metastore's own database: a method, a transaction."""

from __future__ import annotations

from hms_bridge.backend.work import sql
from hms_bridge.hooks import points
from hms_bridge.model.replication import CycleResult
from hms_bridge.policies import cycles, load_roots, policies, totals
from hms_bridge.service.unit_of_work import UnitOfWork, Verbs, reads, writes


def _begin_cycle(unit: UnitOfWork, policy: str, host: str) -> int:
    number, killed = cycles.begin_cycle(unit, policy, host)
    unit.points += [points.cycle_ended(policy, cycle.number, cycle.result) for cycle in killed]
    return number


def _end_cycle(unit: UnitOfWork, policy: str, number: int, result: CycleResult) -> None:
    cycles.end_cycle(unit, policy, number, result)
    unit.points.append(points.cycle_ended(policy, number, result))


class SqlPolicyStore(Verbs):
    """Implements ``hms_bridge.policy_store.PolicyStore``."""

    add_policies = writes(sql(policies.add_policies))
    changed_by = reads(sql(policies.changed_by))
    get_policy = reads(sql(policies.get_policy))
    get_policies = reads(sql(policies.get_policies))
    get_names_at_work = reads(sql(policies.get_names_at_work))
    set_paused = writes(sql(policies.set_paused))
    begin_removal = writes(sql(policies.begin_removal))
    get_names_ending = reads(sql(policies.get_names_ending))
    remove_policy = writes(sql(policies.remove_policy))

    begin_cycle = writes(_begin_cycle)
    end_cycle = writes(_end_cycle)
    get_cycles = reads(cycles.get_cycles)
    get_totals = reads(sql(totals.get_totals))

    get_load_roots = reads(sql(load_roots.get_load_roots))
    set_load_roots = writes(sql(load_roots.set_load_roots))
