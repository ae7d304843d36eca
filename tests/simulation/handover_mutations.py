"""Protective lines of promotion and failback, each broken once; read by way of
`mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Edit, Mutation

_PROMOTE = "tests/repl/test_promote.py::"
_FAILBACK = "tests/repl/test_failback.py::"
_PLANS = "tests/repl/test_handover_plans.py::"
_TOGETHER = "tests/repl/test_verbs_together.py::"
_ROOM = "hms_bridge/repl/handover/"

HANDOVER = (
    Mutation(
        name="a fenced source is written to",
        file="hms_bridge/service/replica_gate.py",
        old='    if is_fenced(database):\n        return "false"\n',
        new="",
        test=f"{_PROMOTE}test_nobody_writes_to_a_fenced_source",
    ),
    Mutation(
        name="a metastore that heeds no fence is believed",
        file=f"{_ROOM}promote.py",
        old="            require_upheld(self._sides, source)\n",
        new="            pass\n",
        test=f"{_PROMOTE}test_a_metastore_that_heeds_no_fence_is_found_out",
    ),
    Mutation(
        name="a replica takes over before it has everything",
        file=f"{_ROOM}promote.py",
        old="        if lacking.txns or lacking.changes:\n",
        new="        if False:\n",
        test=f"{_PROMOTE}"
        "test_a_commit_that_gets_past_the_fence_is_found_before_the_replica_takes_over",
    ),
    Mutation(
        name="a planned promotion waits for no transaction",
        file=f"{_ROOM}promote.py",
        old="            if writers is None:\n                return\n",
        new="            return\n",
        test=f"{_PROMOTE}test_a_planned_switch_waits_for_open_transactions",
    ),
    Mutation(
        name="a promotion that fails leaves its source fenced",
        file=f"{_ROOM}promote.py",
        old="                    self._give_back()\n",
        new="",
        test=f"{_PROMOTE}test_a_transaction_that_does_not_end_gives_the_source_back",
    ),
    Mutation(
        name="a fence is lifted though the replica has taken over",
        file=f"{_ROOM}promote.py",
        old="            if Handover.of(database) is not None:\n",
        new="            if False:\n",
        test=f"{_PROMOTE}test_a_fence_can_be_lifted_before_and_not_after",
    ),
    Mutation(
        name="replays without write ids stay open on a promoted replica",
        file=f"{_ROOM}promote.py",
        old="                known |= Replays.read(target.resolve, dump.paths).all\n",
        new="                pass\n",
        test=f"{_PROMOTE}test_what_has_no_write_ids_is_ended_too",
    ),
    Mutation(
        name="a replica that is being promoted stays open to others",
        file=f"{_ROOM}promote.py",
        old='{HANDOVER: handover.format(), OPENED: "false"}',
        new="{HANDOVER: handover.format()}",
        test=f"{_PROMOTE}test_a_replica_that_is_being_promoted_is_changed_by_nobody",
    ),
    Mutation(
        name="loads go on into a replica that is being promoted",
        file="hms_bridge/repl/load/handed_over.py",
        old="    if database is None or HANDOVER not in database.parameters:\n",
        new="    if True:\n",
        test=f"{_PROMOTE}test_a_replica_that_is_being_promoted_is_changed_by_nobody",
    ),
    Mutation(
        name="a load that was planned before goes on into a replica that is being promoted",
        file="hms_bridge/repl/load/repl_load.py",
        old="        refuse_successor(replica.find_database())\n",
        new="",
        test=f"{_PROMOTE}test_nor_by_a_load_that_was_planned_before",
    ),
    Mutation(
        name="a dump of a former source tells people to drop what took its place",
        file="hms_bridge/repl/dump/repl_dump.py",
        old="            if is_there(self._resolve(previous.paths.beginning)):\n",
        new="            if False:\n",
        test=f"{_PROMOTE}test_nobody_is_told_to_drop_what_took_the_sources_place",
    ),
    Mutation(
        name="a dump that waits is left without being asked",
        file=f"{_ROOM}promote_plan.py",
        old="    if replica.waiting is not None and not request.is_dump_left:\n",
        new="    if False:\n",
        test=f"{_PROMOTE}test_a_replica_with_a_dump_that_waits_is_refused_by_name",
    ),
    Mutation(
        name="a former source loses what nobody else has",
        file=f"{_ROOM}failback_plan.py",
        old="    if lost and not request.is_discarded:\n",
        new="    if False:\n",
        test=f"{_FAILBACK}test_what_never_reached_the_replica_is_named_and_not_lost",
    ),
    Mutation(
        name="a commit of an earlier transaction is no divergence",
        file=f"{_ROOM}divergence.py",
        old="            if any(pair.txn_id == txn_id for pair in payload.allocated):\n",
        new="            if False:\n",
        test=f"{_FAILBACK}test_one_that_committed_after_the_handover_is_a_loss_though_unreported",
    ),
    Mutation(
        name="write ids that a former source used up are given again",
        file=f"{_ROOM}divergence.py",
        old="        self.used.add(payload.table_name)\n",
        new="",
        test=f"{_FAILBACK}test_write_ids_without_a_commit_lose_nothing_and_are_mended",
    ),
    Mutation(
        name="a former source that was restored is believed",
        file=f"{_ROOM}look.py",
        old="        return Divergence(unknown=str(error))\n",
        new="        return Divergence()\n",
        test=f"{_FAILBACK}test_a_source_restored_from_a_backup_comes_whole",
    ),
    Mutation(
        name="a replica that was open counts as its source",
        file=f"{_ROOM}failback_plan.py",
        old="    if old.divergence.unknown or not handover.is_pure:\n",
        new="    if old.divergence.unknown:\n",
        test=f"{_FAILBACK}test_a_replica_that_was_open_to_others_comes_whole",
    ),
    Mutation(
        name="an event of another replication hides those of the new source",
        file=f"{_ROOM}failback_plan.py",
        old="event_id > (handover.own_event or 0)",
        new="event_id < 0",
        test=f"{_PLANS}test_an_event_of_another_replication_hides_none_of_the_new_source",
    ),
    Mutation(
        name="a table that changed on its own is loaded as if it had not",
        file="hms_bridge/repl/load/handed_over.py",
        old="    if lacking:\n",
        new="    if False:\n",
        test=f"{_FAILBACK}test_no_load_takes_such_a_table_for_what_it_is_not",
    ),
    Mutation(
        name="a replica with tables that diverged is promoted",
        file=f"{_ROOM}look.py",
        old=" or table.name in diverged\n",
        new="\n",
        test=f"{_TOGETHER}test_a_replica_with_tables_that_diverged_is_not_promoted",
    ),
    Mutation(
        name="a repair drops a replica that takes over",
        file="hms_bridge/repl/repair/looking.py",
        old="        refuse_successor(database)\n",
        new="",
        also=(
            Edit(
                "hms_bridge/repl/repair/repl_repair.py",
                "            refuse_successor(database)\n",
                "",
            ),
        ),
        test=f"{_TOGETHER}test_a_repair_drops_no_replica_that_takes_over",
    ),
    Mutation(
        name="others are let into a replica that takes over",
        file="hms_bridge/repl/own_part.py",
        old="    refuse_successor(database)\n",
        new="",
        test=f"{_TOGETHER}test_nobody_is_let_into_a_replica_that_takes_over",
    ),
    Mutation(
        name="a mark stops the failover of a lost source",
        file=f"{_ROOM}look.py",
        old="                if dump.metadata is not None or dump.state is DumpState.DAMAGED\n",
        new="",
        test=f"{_TOGETHER}test_a_mark_does_not_stop_a_failover",
    ),
    Mutation(
        name="a failback passes over what is of no table",
        file=f"{_ROOM}failback_plan.py",
        old="    if old.divergence.others:\n",
        new="    if False:\n",
        test=f"{_TOGETHER}"
        "test_functions_that_changed_at_the_former_source_are_not_given_up_in_silence",
    ),
    Mutation(
        name="a database that somebody took over stays a drill's",
        file="hms_bridge/repl/own_part.py",
        old="    INCOMPATIBLE,\n    DRILL,\n)",
        new="    INCOMPATIBLE,\n)",
        test=f"{_TOGETHER}test_a_scratch_database_that_somebody_took_over_stays",
    ),
)
