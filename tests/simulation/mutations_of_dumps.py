"""Mutations of going on with a killed dump, and of what is kept for the next one; read by way of
`mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Edit, Mutation

_RESUME = "tests/repl/test_dump_resume.py::"
_EVENTS = "tests/repl/test_event_budget.py::"

OF_DUMPS = (
    Mutation(
        name="a dump waits for as long as a clock is set back",
        file="hms_bridge/repl/dump/snapshot_wait.py",
        within="wait_for_snapshot",
        old="deadline_ms - steady_ms(clock)",
        new="deadline_ms - clock.now_ms()",
        test="tests/repl/test_snapshot_wait.py::"
        "test_a_dump_waits_no_longer_because_a_clock_is_set_back",
        also=(
            Edit(
                file="hms_bridge/repl/dump/snapshot_wait.py",
                within="wait_for_snapshot",
                old="steady_ms(clock) + rules.timeout_seconds * 1000",
                new="clock.now_ms() + rules.timeout_seconds * 1000",
            ),
        ),
    ),
    Mutation(
        name="what a discarded dump followed on is older than dumps before it, by a clock of then",
        file="hms_bridge/repl/dump/discard.py",
        within="ReplDiscard._write_position",
        old="later_than(dumps, self._clock.now_ms())",
        new="self._clock.now_ms()",
        test="tests/repl/test_discard.py::"
        "test_the_next_dump_begins_there_though_a_clock_was_set_back",
    ),
    Mutation(
        name="a dump that goes on takes torn texts for whole",
        file="hms_bridge/repl/dump/resumed.py",
        within="whole_events.is_whole",
        old="_digest(resolve, f'{paths.hive}/{name}') == digest",
        new="_digest(resolve, f'{paths.hive}/{name}') is not None",
        test=f"{_RESUME}test_a_text_that_was_torn_is_made_anew",
    ),
    Mutation(
        name="a dump that goes on lets go of what was archived before it did",
        file="hms_bridge/repl/dump/repl_dump.py",
        within="ReplDump._run",
        old="began_at_ms = min(began_at_ms, plan.resumed.began_at_ms)",
        new="pass",
        test=f"{_RESUME}test_what_was_archived_since_it_began_is_kept_for_the_next",
    ),
    Mutation(
        name="a dump that goes on takes over events of another history",
        file="hms_bridge/repl/dump/progress.py",
        within="DumpProgress.take_over",
        old="written.log_hash",
        new="event_hash(event)",
        test=f"{_RESUME}test_an_event_that_is_another_one_now_is_made_anew",
    ),
    Mutation(
        name="a dump that goes on forgets writes that nobody knows",
        file="hms_bridge/repl/dump/incremental.py",
        within="IncrementalDump._texts",
        old="len(unreported.unknown_writes) == unknown_count",
        new="len(unreported.unknown_writes) >= unknown_count",
        test="tests/repl/test_unreported_writes.py::"
        "test_a_write_that_nobody_knows_is_refused_though_a_killed_dump_has_written_its_event",
    ),
    Mutation(
        name="a dump that goes on is of another request",
        file="hms_bridge/repl/dump/resumed.py",
        within="find_unfinished",
        old="begun is None or begun.request != request_note(request)",
        new="begun is None",
        test=f"{_RESUME}test_another_command_begins_anew",
    ),
    Mutation(
        name="a dump that goes on follows on another dump",
        file="hms_bridge/repl/dump/resumed.py",
        within="find_unfinished",
        old="(begun.previous, begun.after) != (previous.paths.root, wanted.after)",
        new="False",
        test=f"{_RESUME}test_it_follows_on_the_same_dump_only",
    ),
    Mutation(
        name="a dump that goes on ends where a new one would",
        file="hms_bridge/repl/dump/plan.py",
        within="DumpPlan.end",
        old=("if self.resumed is not None:\n    ..."),
        new="",
        test=f"{_RESUME}test_its_end_stays_and_the_next_dump_brings_the_rest",
    ),
    Mutation(
        name="a note leads a dump that goes on to any file",
        file="hms_bridge/repl/format/progress.py",
        within="WrittenEvent.parse",
        old="place is None or int(place[2]) != fields['event'] or (not texts)",
        new="place is None",
        test=f"{_RESUME}test_a_note_that_leads_out_of_the_dump_is_not_followed",
    ),
    Mutation(
        name="a refused dump is gone on with for ever",
        file="hms_bridge/repl/dump/repl_dump.py",
        within="ReplDump._given_up_if_refused",
        old="forget_progress(self._resolve, paths)",
        new="",
        test="tests/repl/test_unreported_writes.py::"
        "test_a_write_that_nobody_knows_is_refused_though_a_killed_dump_has_written_its_event",
    ),
    Mutation(
        name="a budget of bytes takes events that another policy needs",
        file="hms_bridge/model/event_block.py",
        within="kept_since_seconds",
        old="since = block.oldest_seconds",
        new="",
        test=f"{_EVENTS}test_what_another_policy_needs_and_what_is_young_stays",
    ),
    Mutation(
        name="a budget of bytes counts events that nobody may purge yet",
        file="hms_bridge/service/cleaning.py",
        within="_purge_events",
        old="sizes.blocks(unit.connection, before)",
        new="sizes.blocks(unit.connection)",
        test=f"{_EVENTS}test_what_another_policy_needs_and_what_is_young_stays",
    ),
    Mutation(
        name="a policy is given up for its events' bytes without a word",
        file="hms_bridge/service/cleaning.py",
        within="_tell_given_up",
        old="seconds < given_up",
        new="seconds < too_old",
        test=f"{_EVENTS}test_a_policy_that_keeps_too_much_is_given_up_loudly",
    ),
    Mutation(
        name="a block that a purge has parted counts as whole",
        file="hms_bridge/notification/event_sizes.py",
        within="EventSizes.blocks",
        old="number * BLOCK >= oldest",
        new="True",
        test=f"{_EVENTS}test_a_whole_block_is_summed_once_and_again_where_a_purge_parted_it",
    ),
    Mutation(
        name="what a dump saw beyond the event of the next one may be another history",
        file="hms_bridge/repl/dump/origin.py",
        within="require_same_log",
        old="event_id >= after",
        new="event_id == after",
        test="tests/repl/test_origin.py::"
        "test_what_a_killed_load_brought_of_a_discarded_dump_is_not_taken_for_another_writes",
    ),
    Mutation(
        name="a dump forgets what a discarded one before it has seen",
        file="hms_bridge/repl/dump/origin.py",
        within="write_origin",
        old="at > last",
        new="at < 0",
        test="tests/repl/test_origin.py::"
        "test_what_a_discarded_dump_has_seen_is_remembered_by_the_next_discarded_one",
    ),
    Mutation(
        name="a dump in parts lets go what the next part needs",
        file="hms_bridge/repl/dump/repl_dump.py",
        within="ReplDump._run",
        old="pins.finish(began_at_ms, left_since_ms)",
        new="pins.finish(began_at_ms)",
        test="tests/repl/test_event_limit.py::"
        "test_what_a_part_leaves_for_the_next_one_is_kept_however_old_it_is",
    ),
)
