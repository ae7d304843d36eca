"""Protective lines of promotion and failback, each broken once; read by way of
`mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Edit, Mutation

_PROMOTE = "tests/repl/test_promote.py::"
_FAILBACK = "tests/repl/test_failback.py::"
_VIEWS = "tests/repl/test_failback_views.py::"
_FORMER = "tests/repl/test_former_source.py::"
_PLANS = "tests/repl/test_handover_plans.py::"
_FOUND = "tests/simulation/test_found_handovers.py::"
_TOGETHER = "tests/repl/test_verbs_together.py::"
_ROOM = "hms_bridge/repl/handover/"

HANDOVER = (
    Mutation(
        name="a repair of a policy runs beside its cycles and promotions",
        file="hms_bridge/cli/repl_repair.py",
        within="_ran",
        old=(
            "if work.store is None:\n"
            "    with _alone_with_replica(work), work.opened() as repairs:\n"
            "        return repairs.run(request)"
        ),
        new=("if True:\n    with work.opened() as repairs:\n        return repairs.run(request)"),
        test="tests/cli/test_repl_repair.py::test_who_repairs_a_policy_is_alone_with_it",
    ),
    Mutation(
        name="a fenced source is written to",
        file="hms_bridge/service/replica_gate.py",
        within="_opened",
        old=("if is_fenced(database):\n    ..."),
        new="",
        test=f"{_PROMOTE}test_nobody_writes_to_a_fenced_source",
    ),
    Mutation(
        name="a second replica takes a place that is taken",
        file=f"{_ROOM}promote_plan.py",
        within="_require_one_source",
        old="successor is not None and successor.policy != name",
        new="False",
        test=f"{_FORMER}test_a_second_replica_does_not_take_a_place_that_is_taken",
    ),
    Mutation(
        name="a metastore that heeds no fence is believed",
        file=f"{_ROOM}promote.py",
        within="Promotion._prepare_source",
        old="require_upheld(self._sides, source)",
        new="pass",
        test=f"{_PROMOTE}test_a_metastore_that_heeds_no_fence_is_found_out",
    ),
    Mutation(
        name="a replica takes over before it has everything",
        file=f"{_ROOM}promote.py",
        within="Promotion._require_all",
        old="lacking.txns or lacking.changes",
        new="False",
        test=f"{_PROMOTE}"
        "test_a_commit_that_gets_past_the_fence_is_found_before_the_replica_takes_over",
    ),
    Mutation(
        name="a planned promotion waits for no transaction",
        file=f"{_ROOM}promote.py",
        within="Promotion._drain",
        old=("if writers is None:\n    return"),
        new="return",
        test=f"{_PROMOTE}test_a_planned_switch_waits_for_open_transactions",
    ),
    Mutation(
        name="a promotion that fails leaves its source fenced",
        file=f"{_ROOM}promote.py",
        within="Promotion.run",
        old="self._give_back()",
        new="",
        test=f"{_PROMOTE}test_a_transaction_that_does_not_end_gives_the_source_back",
    ),
    Mutation(
        name="a fence is lifted though the replica has taken over",
        file=f"{_ROOM}promote.py",
        within="Promotion.cancel",
        old="database is not None and Handover.of(database) is not None",
        new="False",
        test=f"{_PROMOTE}test_a_fence_can_be_lifted_before_and_not_after",
    ),
    Mutation(
        name="replays without write ids stay open on a promoted replica",
        file=f"{_ROOM}promote.py",
        within="Promotion._end_replays",
        old="known |= Replays.read(target.resolve, dump.paths).all",
        new="pass",
        test=f"{_PROMOTE}test_what_has_no_write_ids_is_ended_where_only_the_dumps_tell_of_it",
    ),
    Mutation(
        name="a replica that is being promoted stays open to others",
        file=f"{_ROOM}promote.py",
        within="Promotion._begin",
        old="{HANDOVER: handover.format(), OPENED: 'false'}",
        new="{HANDOVER: handover.format()}",
        test=f"{_PROMOTE}test_a_replica_that_is_being_promoted_is_changed_by_nobody",
    ),
    Mutation(
        name="loads go on into a replica that is being promoted",
        file="hms_bridge/repl/load/handed_over.py",
        within="refuse_successor",
        old="database is None or HANDOVER not in database.parameters",
        new="True",
        test=f"{_PROMOTE}test_a_replica_that_is_being_promoted_is_changed_by_nobody",
    ),
    Mutation(
        name="a load that was planned before goes on into a replica that is being promoted",
        file="hms_bridge/repl/load/repl_load.py",
        within="ReplLoad._run",
        old="refuse_successor(replica.find_database())",
        new="",
        test=f"{_PROMOTE}test_nor_by_a_load_that_was_planned_before",
    ),
    Mutation(
        name="a dump of a former source tells people to drop what took its place",
        file="hms_bridge/repl/dump/planner.py",
        within="DumpPlanner._require_going_on",
        old="is_there(self.resolve(previous.paths.beginning))",
        new="False",
        test=f"{_PROMOTE}test_nobody_is_told_to_drop_what_took_the_sources_place",
    ),
    Mutation(
        name="a dump that waits is left without being asked",
        file=f"{_ROOM}promote_plan.py",
        within="_plan_failover",
        old="replica.waiting is not None and (not request.is_dump_left)",
        new="False",
        test=f"{_PROMOTE}test_a_replica_with_a_dump_that_waits_is_refused_by_name",
    ),
    Mutation(
        name="a former source loses what nobody else has",
        file=f"{_ROOM}failback_plan.py",
        within="plan_failback",
        old="lost and (not request.is_discarded)",
        new="False",
        test=f"{_FAILBACK}test_what_never_reached_the_replica_is_named_and_not_lost",
    ),
    Mutation(
        name="a commit of an earlier transaction is no divergence",
        file=f"{_ROOM}divergence.py",
        within="_Finder._committed",
        old="any((pair.txn_id == txn_id for pair in payload.allocated))",
        new="False",
        test=f"{_FAILBACK}test_one_that_committed_after_the_handover_is_a_loss_though_unreported",
    ),
    Mutation(
        name="write ids that a former source used up are given again",
        file=f"{_ROOM}divergence.py",
        within="_Finder._take",
        old="self.used.add(payload.table_name)",
        new="",
        test=f"{_FAILBACK}test_write_ids_without_a_commit_lose_nothing_and_are_mended",
    ),
    Mutation(
        name="a former source that was restored is believed",
        file=f"{_ROOM}failback_look.py",
        within="_divergence",
        old="Divergence(unknown=without_remedy(str(error)))",
        new="Divergence()",
        test=f"{_FAILBACK}test_a_source_restored_from_a_backup_comes_whole",
    ),
    Mutation(
        name="a replica that was open counts as its source",
        file=f"{_ROOM}failback_plan.py",
        within="_whole",
        old="old.divergence.unknown or not handover.is_pure",
        new="old.divergence.unknown",
        test=f"{_FAILBACK}test_a_replica_that_was_open_to_others_comes_whole",
    ),
    Mutation(
        name="an event of another replication hides those of the new source",
        file=f"{_ROOM}failback_plan.py",
        within="_whole",
        old="event_id > (handover.own_event or 0)",
        new="event_id < 0",
        test=f"{_PLANS}test_an_event_of_another_replication_hides_none_of_the_new_source",
    ),
    Mutation(
        name="a table that changed on its own is loaded as if it had not",
        file="hms_bridge/repl/load/handed_over.py",
        within="require_whole",
        old=("if lacking:\n    ..."),
        new=("if False:\n    ..."),
        test=f"{_FAILBACK}test_no_load_takes_such_a_table_for_what_it_is_not",
    ),
    Mutation(
        name="a replica with tables that diverged is promoted",
        file=f"{_ROOM}promote_look.py",
        within="look_at_replica",
        old="BEGUN in table.parameters or table.name in diverged",
        new="BEGUN in table.parameters",
        test=f"{_TOGETHER}test_a_replica_with_tables_that_diverged_is_not_promoted",
    ),
    Mutation(
        name="a repair drops a replica that takes over",
        file="hms_bridge/repl/repair/looking.py",
        within="RepairLooking._replica",
        old="refuse_successor(database)",
        new="",
        also=(
            Edit(
                "hms_bridge/repl/repair/repl_repair.py",
                "ReplRepair._drop",
                "refuse_successor(database)",
                "",
            ),
        ),
        test=f"{_TOGETHER}test_a_repair_drops_no_replica_that_takes_over",
    ),
    Mutation(
        name="others are let into a replica that takes over",
        file="hms_bridge/repl/handover/own_part.py",
        within="set_access",
        old="refuse_successor(database)",
        new="",
        test=f"{_TOGETHER}test_nobody_is_let_into_a_replica_that_takes_over",
    ),
    Mutation(
        name="a mark stops the failover of a lost source",
        file=f"{_ROOM}promote_look.py",
        within="look_at_replica",
        old=(
            "(dump for dump in list_dumps(side.resolve, policy.root, "
            "policy.source.database) if dump.metadata is not None or "
            "dump.state is DumpState.DAMAGED)"
        ),
        new=("(dump for dump in list_dumps(side.resolve, policy.root, policy.source.database))"),
        test=f"{_TOGETHER}test_a_mark_does_not_stop_a_failover",
    ),
    Mutation(
        name="a failback passes over what is of no table",
        file=f"{_ROOM}failback_plan.py",
        within="_require_same_functions",
        old="old.divergence.others",
        new="()",
        test=f"{_TOGETHER}"
        "test_functions_that_changed_at_the_former_source_are_not_given_up_in_silence",
    ),
    Mutation(
        name="a database that somebody took over stays a drill's",
        file="hms_bridge/repl/target_objects.py",
        within="",
        old=(
            "(SOURCE_FOR, TARGET_FOR, FENCED, HANDOVER, DIVERGED, OPENED, "
            "WAS_OPEN, LAST_EVENT, TARGET_LAST_EVENT, CHECKPOINT, "
            "FIRST_INCREMENTAL_PENDING, FIRST_INCREMENTAL_TABLES, ORIGIN, "
            "SCOPE, INCOMPATIBLE, DRILL)"
        ),
        new=(
            "(SOURCE_FOR, TARGET_FOR, FENCED, HANDOVER, DIVERGED, OPENED, "
            "WAS_OPEN, LAST_EVENT, TARGET_LAST_EVENT, CHECKPOINT, "
            "FIRST_INCREMENTAL_PENDING, FIRST_INCREMENTAL_TABLES, ORIGIN, "
            "SCOPE, INCOMPATIBLE)"
        ),
        test=f"{_TOGETHER}test_a_scratch_database_that_somebody_took_over_stays",
    ),
    Mutation(
        name="a replica takes over before its source is fenced",
        file=f"{_ROOM}promote.py",
        within="Promotion._prepare_source",
        old=(
            "if is_first and Handover.of(self._target.database()) is None:\n"
            "    fence(self._sides, source)\n"
            "elif is_first:\n"
            "    hand_over(self._sides, source)"
        ),
        new=("if False:\n    pass\nelif is_first:\n    hand_over(self._sides, source)"),
        also=(
            Edit(
                f"{_ROOM}promote.py",
                "Promotion._take_over",
                "sides.source is not None",
                "False",
            ),
            Edit(
                f"{_ROOM}promote.py",
                "Promotion._prepare_source",
                "require_upheld(self._sides, source)",
                "pass",
            ),
        ),
        test=f"{_PROMOTE}test_nobody_writes_to_a_fenced_source",
        is_simulated=True,
        is_handover=True,
    ),
    Mutation(
        name="a source whose place was taken is dumped",
        file="hms_bridge/repl/dump/planner.py",
        within="require_dumpable",
        old="require_no_successor(database)",
        new="",
        test=f"{_FORMER}test_an_ended_source_is_not_dumped_any_more",
    ),
    Mutation(
        name="a source learns who has its place after that takes writes",
        file=f"{_ROOM}promote.py",
        within="Promotion._take_over",
        old="hand_over",
        new="fence",
        test=f"{_FORMER}test_a_stopped_promotion_has_said_it_before_the_replica_takes_writes",
    ),
    Mutation(
        name="a source that comes back is fenced, but not told who has its place",
        file=f"{_ROOM}promote.py",
        within="Promotion._prepare_source",
        old="hand_over",
        new="fence",
        test=f"{_FORMER}test_a_source_that_comes_back_is_told",
    ),
    Mutation(
        name="a source that an earlier version fenced is never told who has its place",
        file=f"{_ROOM}promote_plan.py",
        within="_plan_late_fence",
        old="source is None or SUCCESSOR in source.database.parameters",
        new="True",
        test=f"{_FORMER}test_one_that_an_earlier_version_fenced_is_told_by_promoting_once_more",
    ),
    Mutation(
        name="an alteration forgets who has a source's place",
        file="hms_bridge/service/replica_gate.py",
        within="require_place_kept",
        old="is_forgotten or not is_fenced(after)",
        new="not is_fenced(after)",
        test=f"{_FORMER}test_whoever_alters_the_database_without_having_seen_it_is_refused",
    ),
    Mutation(
        name="a fenced source whose place was taken is opened",
        file="hms_bridge/repl/handover/own_part.py",
        within="set_access",
        old=(
            "if is_fenced(database):\n"
            "    require_no_successor(database)\n"
            "    raise ReplError(f'database {database.name} is a source that "
            "is handed over to its replica; to give it back: "
            "{lift_fence(database.parameters[FENCED])}')"
        ),
        new=(
            "if is_fenced(database) and SUCCESSOR not in database.parameters:\n"
            "    raise ReplError(f'database {database.name} is a source that "
            "is handed over to its replica; to give it back: "
            "{lift_fence(database.parameters[FENCED])}')"
        ),
        test=f"{_FORMER}test_an_admin_opens_it",
    ),
    Mutation(
        name="a former source that became the replica is called one for ever",
        file=f"{_ROOM}failback.py",
        within="_become_replica",
        old="(*PROPERTIES, SUCCESSOR)",
        new="PROPERTIES",
        also=(
            Edit(
                f"{_ROOM}promote.py",
                "Promotion._take_over",
                "(*PROPERTIES, SUCCESSOR)",
                "PROPERTIES",
            ),
        ),
        test=f"{_FORMER}test_after_a_failback_nothing_is_left_of_it",
    ),
    Mutation(
        name="who began to write before the fence goes on after a promotion",
        file=f"{_ROOM}promote.py",
        within="Promotion._prepare_source",
        old="abort_writers(source)",
        new=("if PromoteStep.ABORT_WRITERS in steps:\n    abort_writers(source)"),
        test=f"{_FOUND}test_who_begins_to_write_before_the_fence_is_aborted_by_a_promotion",
    ),
    Mutation(
        name="who began to write before the fence goes on after a failback",
        file=f"{_ROOM}failback.py",
        within="Failback.run",
        old="abort_writers(ways.old)",
        new=("if FailbackStep.ABORT_WRITERS in plan.steps:\n    abort_writers(ways.old)"),
        test=f"{_FOUND}test_who_begins_to_write_before_the_fence_is_aborted_by_a_failback",
    ),
    Mutation(
        name="replays that have no write id yet stay open for ever",
        file="hms_bridge/repl/handover/own_part.py",
        within="open_replays",
        old="replayed - replays",
        new="False",
        test=f"{_FOUND}test_a_replay_that_a_killed_load_opened_is_ended",
    ),
    Mutation(
        name="events between the handover and the failback are left out",
        file=f"{_ROOM}failback.py",
        within="_become_replica",
        old="own_event",
        new="ways.new.metastore.get_current_event_id()",
        test=f"{_FAILBACK}test_after_a_planned_switch_only_the_difference_goes_back",
        is_simulated=True,
        is_handover=True,
    ),
    Mutation(
        name="a failback gives up what it was not asked to",
        file=f"{_ROOM}failback_plan.py",
        within="plan_failback",
        old="lost and (not request.is_discarded)",
        new="False",
        test=f"{_FAILBACK}test_what_never_reached_the_replica_is_named_and_not_lost",
        is_simulated=True,
        is_handover=True,
    ),
    Mutation(
        name="tables that changed on both sides do not come whole",
        file=f"{_ROOM}failback_plan.py",
        within="_whole",
        old="old.divergence.tables.union",
        new="frozenset",
        test=f"{_FAILBACK}test_tables_that_went_on_either_side",
        is_simulated=True,
        is_handover=True,
    ),
    Mutation(
        name="a planned promotion brings nothing more",
        file=f"{_ROOM}promote.py",
        within="Promotion._prepare_source",
        old=("self._sides.replicate(self._sides.policy, OpenCycle.run)\nself._require_all(source)"),
        new="pass",
        test=f"{_PROMOTE}test_a_planned_switch_loses_no_commit",
        is_simulated=True,
        is_handover=True,
    ),
    Mutation(
        name="write ids of a table that is gone hide rows of the one that comes",
        file=f"{_ROOM}failback.py",
        within="Failback._drop",
        old=("name not in there and store.get_max_allocated_write_id(database, name)"),
        new="False",
        test=f"{_FAILBACK}test_write_ids_of_a_table_that_is_gone_hide_no_rows",
    ),
    Mutation(
        name="a replica's directory moves before its rename is refused",
        file="hms_bridge/service/alter_tables.py",
        within="AlterTableVerbs._move_for.work",
        old=("require_definitions_open(connection, name, f'alter_table {wanted.name}')"),
        new="pass",
        test=f"{_FOUND}test_a_rename_on_a_replica_moves_nothing_before_it_is_refused",
    ),
    Mutation(
        name="a partition of a replica moves before its rename is refused",
        file="hms_bridge/service/rename_partitions.py",
        within="_require_movable",
        old=(
            "require_definitions_open(connection, table.database_name, "
            "f'alter_partition {table.name}')"
        ),
        new="",
        test=f"{_FOUND}test_a_rename_on_a_replica_moves_nothing_before_it_is_refused",
    ),
    Mutation(
        name="an alteration makes a replica of what has taken over",
        file="hms_bridge/service/replica_gate.py",
        within="require_place_kept",
        old="is_successor and is_made_replica and (not is_as_before)",
        new="False",
        test=f"{_PROMOTE}test_who_read_a_database_before_it_changed_places_brings_nothing_back",
    ),
    Mutation(
        name="an alteration lifts a fence that it had not seen",
        file="hms_bridge/service/replica_gate.py",
        within="require_place_kept",
        old=("is_lifted and (not is_ended) and (_described(before) != _described(after))"),
        new="False",
        test=f"{_PROMOTE}test_who_read_a_database_before_it_changed_places_brings_nothing_back",
    ),
    Mutation(
        name="a load that stood still opens a replay in a successor",
        file="hms_bridge/service/transactions.py",
        within="TransactionVerbs._open",
        old="require_follower(unit.connection, name, 'no replayed transaction')",
        new="pass",
        test=f"{_PROMOTE}test_a_load_that_stood_still_replays_nothing_into_a_successor",
    ),
    Mutation(
        name="a promotion's own lease lets others define",
        file="hms_bridge/service/replica_gate.py",
        within="require_definitions_open",
        old="not is_fenced(database) and HANDOVER not in database.parameters",
        new="True",
        test=f"{_FOUND}test_nobody_defines_anything_while_a_promotion_is_at_work",
    ),
    Mutation(
        name="a cancel that stood still lifts the fence of another promotion",
        file=f"{_ROOM}promote.py",
        within="Promotion.cancel",
        old="alone.check()",
        new="",
        test=f"{_FOUND}"
        "test_a_cancel_that_stood_still_lifts_no_fence_of_a_promotion_that_came_later",
    ),
    Mutation(
        name="a rebalance that began before ends on a replica",
        file="hms_bridge/service/compactions.py",
        within="_mark_compacted",
        old="compaction.type is CompactionType.REBALANCE",
        new="False",
        test=f"{_FOUND}test_a_rebalance_that_began_before_does_not_end_on_a_replica",
    ),
    Mutation(
        name="a rebalance that is about to commit does so on a replica",
        file=f"{_ROOM}sides.py",
        within="abort_writers",
        old="writers += open_rebalances(side.metastore, side.database_name)",
        new="",
        test=f"{_FOUND}test_a_rebalance_that_began_before_does_not_end_on_a_replica",
    ),
    Mutation(
        name="functions that no event tells of are passed over",
        file=f"{_ROOM}failback.py",
        within="Failback._plan",
        old="may_differ_unseen(former, old.divergence, handover)",
        new="False",
        test=f"{_FAILBACK}test_functions_that_no_log_tells_of_are_not_passed_over",
    ),
    Mutation(
        name="functions of a replica that was open are passed over",
        file=f"{_ROOM}failback_look.py",
        within="may_differ_unseen",
        old="handover.is_pure and (not divergence.unknown)",
        new="not divergence.unknown",
        test=f"{_FAILBACK}test_functions_of_a_replica_that_was_open_are_not_passed_over",
    ),
    Mutation(
        name="functions that go back by events stop a failback",
        file=f"{_ROOM}divergence.py",
        within="functions_apart",
        old="apart.discard(function_of(event) or '')",
        new="pass",
        test=f"{_FAILBACK}test_functions_of_the_new_source_go_back_where_everything_comes_whole",
    ),
    Mutation(
        name="a planned promotion waits for as long as a clock is set back",
        file="hms_bridge/repl/handover/promote.py",
        within="Promotion._drain",
        old="deadline_ms - steady_ms(clock)",
        new="deadline_ms - clock.now_ms()",
        test="tests/repl/test_promote.py::"
        "test_writers_stay_out_no_longer_because_a_clock_is_set_back",
        also=(
            Edit(
                file="hms_bridge/repl/handover/promote.py",
                within="Promotion._drain",
                old="steady_ms(clock) + rules.timeout_seconds * 1000",
                new="clock.now_ms() + rules.timeout_seconds * 1000",
            ),
        ),
    ),
    Mutation(
        name="a table that a failback has yet to bring is not missed",
        file="hms_bridge/repl/handover/promote_plan.py",
        within="_require_brought_back",
        old=("if replica.missing:\n    ..."),
        new=("if False:\n    ..."),
        test="tests/simulation/test_found_handovers.py::"
        "test_a_failback_that_has_yet_to_bring_a_table_is_not_promoted",
    ),
    Mutation(
        name="what only a lost side had keeps the other from a failover",
        file="hms_bridge/repl/handover/promote_plan.py",
        within="plan_promotion",
        old="not request.is_source_lost",
        new="True",
        test="tests/repl/test_handover_plans.py::"
        "test_what_only_a_lost_side_had_keeps_nobody_from_a_failover",
    ),
    Mutation(
        name="a materialized view stops a failback half-way",
        file=f"{_ROOM}failback.py",
        within="Failback.run",
        old="self._drop_views(plan, ways, lease.check)",
        new="",
        test=f"{_VIEWS}test_a_materialized_view_does_not_stop_the_way_back",
    ),
    Mutation(
        name="a view of another database stops a failback half-way",
        file=f"{_ROOM}failback_plan.py",
        within="plan_failback",
        old=(
            "_require_unread(request.policy.name, old, names)\n"
            "if len(','.join(names)) > _NAMES_LENGTH_MAX:\n"
            "    raise ReplError(f'{len(names)} tables of database "
            "{old.database.name} would come whole, more than can be noted: "
            "begin anew with an empty database there. ' + "
            "begin_anew(new.database.name, old.database.name))"
        ),
        new=(
            "if len(','.join(names)) > _NAMES_LENGTH_MAX:\n"
            "    raise ReplError(f'{len(names)} tables of database "
            "{old.database.name} would come whole, more than can be noted: "
            "begin anew with an empty database there. ' + "
            "begin_anew(new.database.name, old.database.name))"
        ),
        test=f"{_VIEWS}test_a_view_of_another_database_that_would_stop_it_is_named_before",
    ),
    Mutation(
        name="a replica that is ahead of its restored source is a copy to throw away",
        file="hms_bridge/repl/dump/origin.py",
        within="require_same_log",
        old=(
            "f'event {event_id}, at which the last dump ended, is another one "
            "in this metastore: it is not the one that was dumped (look at "
            "--metastore), or it was restored from a backup. ' + "
            "_went_back(previous)"
        ),
        new=(
            "f'event {event_id}, at which the last dump ended, is another one "
            "in this metastore: it is not the one that was dumped (look at "
            "--metastore), or it was restored from a backup. To begin anew'"
        ),
        test="tests/repl/test_origin.py::test_a_source_that_was_restored_and_went_on_is_noticed",
    ),
    Mutation(
        name="a policy is told to be given up a day before what it needs goes",
        file="hms_bridge/service/cleaning.py",
        within="_tell_given_up",
        old="seconds < given_up",
        new="seconds - _DUMP_SECONDS_MAX < given_up",
        test="tests/repl/test_event_pins.py::"
        "test_a_policy_is_not_given_up_before_what_it_needs_goes",
    ),
    Mutation(
        name="a replica that is out of reach runs out of time unseen",
        file="hms_bridge/cli/lag_monitor.py",
        within="_without_replica",
        old="replace(seen, why=f'{seen.why}; and {nothing.why}')",
        new="replace(nothing, why=f'{seen.why}; and {nothing.why}')",
        test="tests/cli/test_repl_lag.py::test_a_replica_out_of_reach_can_run_out_of_time",
    ),
)
