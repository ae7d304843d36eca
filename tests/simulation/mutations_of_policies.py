"""Mutations of what policies and their verbs promise; read by way of `mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_END = "tests/cli/test_repl_policy_end.py::"

_REPAIR = "tests/cli/test_repl_repair.py::"
_HALF = "tests/repl/test_half_dropped.py::"
_PLANS = "tests/repl/test_handover_plans.py::"

OF_POLICIES = (
    Mutation(
        name="a fence whose replica is promoted is to be lifted, says a promotion",
        file="hms_bridge/repl/handover/promote_plan.py",
        within="_require_one_source",
        old="successor.policy != name",
        new="FENCED not in source.database.parameters",
        test=f"{_PLANS}test_bad_states_are_refused",
    ),
    Mutation(
        name="a fence whose replica is promoted is to be lifted, says a failback",
        file="hms_bridge/repl/handover/failback_plan.py",
        within="_require_free",
        old="successor is not None and successor.policy == by",
        new="False",
        test=f"{_PLANS}test_a_source_that_two_policies_took_is_given_back_by_none",
    ),
    Mutation(
        name="the place of a drill that was killed takes over what roots shared",
        file="hms_bridge/repl/pins.py",
        within="DumpPins._pinned_roots",
        old="not is_place_of_drill(root)",
        new="True",
        test="tests/repl/test_policy_pins.py::test_a_drill_that_was_killed_gets_no_part_of_it",
    ),
    Mutation(
        name="a repair without a policy runs beside its cycles",
        file="hms_bridge/cli/repl_repair.py",
        within="_alone_with_replica",
        old="(wanted, *runs)",
        new="(wanted,)",
        test=f"{_REPAIR}test_without_a_policy_a_repair_is_alone_all_the_same",
    ),
    Mutation(
        name="two repairs without a policy run side by side",
        file="hms_bridge/cli/repl_repair.py",
        within="_alone_with_replica",
        old="(wanted, *runs)",
        new="runs",
        test=f"{_REPAIR}test_without_a_policy_a_repair_is_alone_all_the_same",
    ),
    Mutation(
        name="a drill of a policy goes by the settings of whoever types it",
        file="hms_bridge/cli/named_sides.py",
        within="named_sides",
        old="side_settings(policy.target)",
        new="settings",
        test="tests/cli/test_repl_drill.py::test_a_policy_says_where_both_sides_are",
    ),
    Mutation(
        name="nobody is told that a policy is of other tables by now",
        file="hms_bridge/cli/named_sides.py",
        within="NamedSides.is_of_other_tables",
        old="self.scope.patterns_text != there.patterns_text",
        new="False",
        test="tests/cli/test_repl_compare.py::test_a_policy_says_where_both_sides_are",
    ),
    Mutation(
        name="a fence closes tables that were never replicated, unasked",
        file="hms_bridge/repl/handover/promote_plan.py",
        within="_plan_late_fence",
        old="_require_others_may_close(request, steps, replica)",
        new="",
        test=f"{_PLANS}test_a_fence_closes_other_tables_only_if_that_is_said",
        is_simulated=True,
        is_handover=True,
        is_scope=True,
    ),
    Mutation(
        name="a promotion that goes on closes tables that were never replicated",
        file="hms_bridge/repl/handover/promote_plan.py",
        within="plan_promotion",
        old="_require_others_may_close(request, steps, database)",
        new="",
        test=f"{_PLANS}test_a_fence_closes_other_tables_only_if_that_is_said",
    ),
    Mutation(
        name="a promotion amid a load of fewer tables closes all of its source",
        file="hms_bridge/repl/handover/promote_plan.py",
        within="_require_all_tables",
        old="limited = replica.half_dropped",
        new="pass",
        test=f"{_HALF}test_it_does_not_close_the_tables_that_are_gone_here",
    ),
    Mutation(
        name="a promotion amid a load of fewer tables forgets that some are gone",
        file="hms_bridge/repl/handover/promote.py",
        within="Promotion._begin",
        old="plan.left_with is not None",
        new="False",
        test=f"{_HALF}test_its_way_back_does_not_take_what_is_gone_for_all",
    ),
    Mutation(
        name="what is held for a policy outlives it",
        file="hms_bridge/cli/policy_pins.py",
        within="let_go",
        old="pins.end()",
        new="True",
        test=f"{_END}test_a_policy_that_is_removed_keeps_nothing_in_the_archive",
    ),
    Mutation(
        name="a policy is removed under a cycle that pins anew",
        file="hms_bridge/cli/repl_policy.py",
        within="_alone",
        old=("with held_lease(store.metastore, store.clock, wanted):\n    yield"),
        new="yield",
        test=f"{_END}test_a_policy_is_not_removed_under_a_cycle",
    ),
    Mutation(
        name="a policy that is changed loses the settings that are not named",
        file="hms_bridge/cli/policy_given.py",
        within="GivenSide.changed",
        old="kept | dict(self.settings)",
        new="dict(self.settings)",
        test="tests/cli/test_repl_policies.py::"
        "test_a_policy_that_is_changed_keeps_what_is_not_named",
    ),
    Mutation(
        name="a policy of a mistyped database is kept",
        file="hms_bridge/cli/policy_given.py",
        within="require_database_at_source",
        old="find_database(source, policy.source.database)",
        new="pass",
        test="tests/cli/test_repl_policies.py::test_a_policy_of_what_is_not_there_is_refused",
    ),
    Mutation(
        name="a process id of another machine counts as one that has ended",
        file="hms_bridge/session/holding_process.py",
        within="has_ended",
        old=("match is None or match['machine'] is None or match['machine'] != _machine()"),
        new="match is None or match['machine'] is None",
        test="tests/session/test_holding_process.py::"
        "test_of_another_machine_and_of_what_is_not_marked_nobody_knows",
    ),
    Mutation(
        name="a process that lives is taken for another one of its number that the system tells of",
        file="hms_bridge/session/holding_process.py",
        within="_machine",
        old="str(own_number) != str(os.getpid())",
        new="False",
        test="tests/session/test_holding_process.py::"
        "test_where_processes_have_other_numbers_than_their_system_tells_nobody_knows",
    ),
    Mutation(
        name="a process that lives counts as one that has ended",
        file="hms_bridge/session/holding_process.py",
        within="has_ended",
        old="state[0] in _ENDED_STATES or state[1] != match['began']",
        new="True",
        test="tests/session/test_holding_process.py::test_one_that_lives_has_not_ended",
    ),
    Mutation(
        name="a lease of a process that is gone is waited for",
        file="hms_bridge/repl/lease.py",
        within="_Acquisition._take_if_dead",
        old="has_ended(holder.agent)",
        new="False",
        test="tests/repl/test_lease.py::"
        "test_on_the_machine_of_a_killed_one_nobody_waits_for_its_silence",
    ),
    Mutation(
        name="a dry run of a promotion does not look whether a fence is heeded",
        file="hms_bridge/repl/handover/promote.py",
        within="Promotion._require_possible",
        old="self._require_heeding(plan)",
        new="",
        test="tests/repl/test_promote.py::test_a_dry_run_finds_out_too_that_no_fence_is_heeded",
    ),
    Mutation(
        name="a repair brings the table of a partition that nobody has",
        file="hms_bridge/repl/repair/repl_repair.py",
        within="ReplRepair.run",
        old="self._looking.require_partitions(request)",
        new="",
        test="tests/cli/test_repl_repair.py::test_a_partition_that_nobody_has_is_no_repair",
    ),
    Mutation(
        name="a change of a policy takes back that it was paused meanwhile",
        file="hms_bridge/policies/policies.py",
        within="_require_unchanged",
        old="kept.get(name) != was",
        new="False",
        test="tests/cli/test_repl_policies.py::"
        "test_a_change_takes_nothing_back_that_somebody_else_did_meanwhile",
    ),
    Mutation(
        name="an import takes back that a policy was paused meanwhile",
        file="hms_bridge/cli/repl_policy.py",
        within="import_policies",
        old="before if is_replacing else {}",
        new="{}",
        test="tests/cli/test_repl_policies.py::"
        "test_an_import_that_replaces_shows_what_and_takes_nothing_back",
    ),
    Mutation(
        name="a cycle that waited goes by what its policy was before",
        file="hms_bridge/repl/cycles/runner.py",
        within="Runner.run",
        old="policy = self._as_it_is_now(policy)",
        new="",
        test="tests/repl/test_policy_cycles.py::"
        "test_a_policy_counts_as_it_is_when_its_turn_has_come",
    ),
    Mutation(
        name="a promotion that waited for a lease goes by what its policy was before",
        file="hms_bridge/repl/handover/sides.py",
        within="OpenSides.alone_with_policy",
        old="self.same_policy()",
        new="",
        test="tests/cli/test_repl_handover.py::"
        "test_a_promotion_goes_by_no_policy_that_was_changed_while_it_waited",
    ),
    Mutation(
        name="the way back begins below a root that is not the policy's any more",
        file="hms_bridge/repl/handover/promote.py",
        within="Promotion._take_over",
        old="sides.same_policy()",
        new="",
        test="tests/cli/test_repl_handover.py::"
        "test_a_policy_that_is_changed_before_its_replica_takes_over_gives_the_source_back",
    ),
    Mutation(
        name="a failback takes back what became of its policy meanwhile",
        file="hms_bridge/repl/handover/failback.py",
        within="Failback._turn",
        old="self._sides.same_policy()",
        new="self._sides.policies.get_policy(ways.way_back.name)",
        test="tests/cli/test_repl_handover.py::"
        "test_a_failback_takes_back_no_change_of_the_policy_that_it_turns",
    ),
    Mutation(
        name="a failback takes back what becomes of its policy at the last moment",
        file="hms_bridge/repl/handover/failback.py",
        within="Failback._turn",
        old=("self._sides.policies.add_policies([turned], is_replacing=True, made_from=made_from)"),
        new="self._sides.policies.add_policies([turned], is_replacing=True)",
        test="tests/cli/test_repl_handover.py::"
        "test_a_failback_takes_back_no_change_of_the_policy_that_it_turns",
    ),
    Mutation(
        name="a removal takes a policy that was changed while it waited",
        file="hms_bridge/policies/policies.py",
        within="begin_removal",
        old="_require_unchanged(connection, {name: made_from})",
        new="",
        test="tests/cli/test_repl_policy_end.py::"
        "test_a_policy_that_is_changed_while_its_removal_waits_stays_with_its_pins",
    ),
    Mutation(
        name="a removal that is killed leaves pins that nobody looks for",
        file="hms_bridge/cli/repl_policy.py",
        within="remove",
        old="store.policies.begin_removal(name, made_from=policy)",
        new="store.policies.remove_policy(name)",
        test="tests/cli/test_repl_policy_end.py::test_a_removal_that_was_killed_is_gone_on_with",
    ),
    Mutation(
        name="a policy is resumed whose pins are let go of",
        file="hms_bridge/policies/policies.py",
        within="set_paused",
        old=("update(HMSB_REPL_POLICY).where(_ROW.NAME == name, _ROW.IS_PAUSED != _ENDING)"),
        new="update(HMSB_REPL_POLICY).where(_ROW.NAME == name)",
        test="tests/cli/test_repl_policy_end.py::test_a_removal_that_was_killed_is_gone_on_with",
    ),
    Mutation(
        name="a policy is replaced whose pins are let go of",
        file="hms_bridge/policies/policies.py",
        within="changed_by",
        old="policy.name in ending",
        new="False",
        test="tests/cli/test_repl_policy_end.py::test_a_removal_that_was_killed_is_gone_on_with",
    ),
    Mutation(
        name="metrics forget replicas whose policies cannot be read",
        file="hms_bridge/cli/repl_lag.py",
        within="_written",
        old="verdicts = [replica.unknown('') for replica in known] or verdicts",
        new="",
        test="tests/cli/test_repl_policies.py::"
        "test_a_replica_stays_visible_while_nobody_can_read_its_policy",
    ),
    Mutation(
        name="nobody counts down while the replica of a policy does not answer",
        file="hms_bridge/cli/lag_monitor.py",
        within="PolicyMonitor._policy",
        old="_without_one_side(replica.unknown(str(error)), urls, settings, look)",
        new="replica.unknown(str(error))",
        test="tests/cli/test_repl_policies.py::"
        "test_the_headroom_of_a_policy_counts_down_while_its_replica_does_not_answer",
    ),
    Mutation(
        name="a policy of a mistyped database is imported",
        file="hms_bridge/cli/repl_policy.py",
        within="import_policies",
        old="replaced is None or policy.source != replaced.source",
        new="False",
        test="tests/cli/test_repl_policies.py::"
        "test_an_imported_policy_of_what_is_not_there_is_refused",
    ),
)
