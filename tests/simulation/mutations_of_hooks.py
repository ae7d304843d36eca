"""Protective lines of hooks; see :mod:`tests.simulation.mutations`.

Not here: the row of NOTIFICATION_SEQUENCE that a point holds until its commit, because SQLite lets
one transaction write at a time anyway.
"""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_INSIDE = "tests/service/test_inner_hooks.py::"
_ONCE = "tests/service/test_hooks_at_least_once.py::"
_POSITIONS = "tests/service/test_hook_positions.py::"
_SHIPPED = "tests/hooks/test_shipped.py::"
_CHANGES = "tests/server/test_every_change.py::"
_REPLICATION = "tests/service/test_points_of_replication.py::"

OF_HOOKS = (
    Mutation(
        name="a hook passes over another event than the one that is named",
        file="hms_bridge/notification/hook_positions.py",
        within="next_unheard",
        old="event.key != key",
        new="False",
        test="tests/service/test_hook_positions.py::"
        "test_a_hook_passes_over_what_it_hears_next_and_nothing_else",
    ),
    Mutation(
        name="a change goes on although a hook refuses it",
        file="hms_bridge/hooks/inside.py",
        within="InnerHooks.ask",
        old=("raise _refused('pre-event', name, change.described, error) from error"),
        new="_LOG.error('%s', error)",
        test=f"{_INSIDE}test_a_veto_names_the_hook_and_changes_nothing",
    ),
    Mutation(
        name="a hook that failed without meaning to refuse lets the change pass",
        file="hms_bridge/hooks/inside.py",
        within="InnerHooks.ask",
        old=(
            "try:\n"
            "    ...\n"
            "except KeyboardInterrupt:\n"
            "    raise\n"
            "except BaseException as error:\n"
            "    raise _refused('pre-event', name, change.described, error) "
            "from error"
        ),
        new=(
            "try:\n"
            "    ...\n"
            "except KeyError:\n"
            "    pass\n"
            "except BaseException as error:\n"
            "    raise _refused('pre-event', name, change.described, error) "
            "from error"
        ),
        test=f"{_INSIDE}test_a_hook_with_a_fault_refuses",
    ),
    Mutation(
        name="a hook that asks for an end ends the housekeeping",
        file="hms_bridge/hooks/inside.py",
        within="InnerHooks.tell",
        old="BaseException",
        new="Exception",
        test=f"{_INSIDE}test_a_hook_that_fails_for_ever_does_not_stop_the_housekeeping",
    ),
    Mutation(
        name="a hook may refuse the end of what has begun",
        file="hms_bridge/hooks/inside.py",
        within="InnerHooks.ask",
        old="change.type in NEVER_ASKED",
        new="False",
        test=f"{_INSIDE}"
        "test_a_veto_of_a_commit_leaves_the_transaction_open_and_its_end_is_never_asked",
    ),
    Mutation(
        name="events are committed although a transactional hook failed",
        file="hms_bridge/hooks/inside.py",
        within="InnerHooks.tell",
        old=("raise _refused('transactional', name, _types_of(events), error) from error"),
        new="_LOG.error('%s', error)",
        test=f"{_INSIDE}test_what_a_transactional_hook_writes_is_there_with_the_events_or_neither_is",
    ),
    Mutation(
        name="a deadlock in a transactional hook is an error for the client",
        file="hms_bridge/hooks/inside.py",
        within="_refuse_statement",
        old="isinstance(reason, RetryableBackendError)",
        new="False",
        test=f"{_INSIDE}test_a_deadlock_of_a_transactional_hook_is_tried_again",
    ),
    Mutation(
        name="a failure that a transactional hook caught is committed, as far as that goes",
        file="hms_bridge/hooks/inside.py",
        within="InnerStatements.execute",
        old="self.failure or error",
        new="None",
        test=f"{_INSIDE}test_a_failure_that_a_transactional_hook_catches_undoes_all_the_same",
    ),
    Mutation(
        name="a failback is told as the end of a load",
        file="hms_bridge/service/databases.py",
        within="DatabaseVerbs.alter_database.work",
        old="not is_fenced(before)",
        new="True",
        test="tests/service/test_points.py::test_a_failback_notes_its_event_and_is_no_load",
    ),
    Mutation(
        name="points are written where nobody hears them",
        file="hms_bridge/service/unit_of_work.py",
        within="Transactions._end",
        old=(
            "[draft for write in telling for draft in write.unit.points] if self._is_heard else ()"
        ),
        new="[draft for write in telling for draft in write.unit.points]",
        test=f"{_INSIDE}test_who_is_asked_but_hears_of_nothing_leaves_no_points",
    ),
    Mutation(
        name="a hook is told of points that came after events it has yet to hear",
        file="hms_bridge/notification/hook_points.py",
        within="following",
        old="until.point_id",
        new="1 << 60",
        test=f"{_ONCE}test_commits_between_the_statements_of_a_reader_come_in_their_order",
    ),
    Mutation(
        name="a hook is told of events that came after points it has yet to hear",
        file="hms_bridge/notification/hook_points.py",
        within="following",
        old="event.id <= until.event_id",
        new="event.id > 0",
        test=f"{_ONCE}test_commits_between_the_statements_of_a_reader_come_in_their_order",
    ),
    Mutation(
        name="points are told as they are numbered and not between events",
        file="hms_bridge/model/hook.py",
        within="_place",
        old="event.id",
        new="0",
        test=f"{_POSITIONS}test_events_and_points_come_in_the_order_of_commits",
    ),
    Mutation(
        name="a teller that lost its hook stores its position over another's",
        file="hms_bridge/notification/hook_positions.py",
        within="advance",
        old=(
            "update(HMSB_EVENT_HOOK).where(_ROW.NAME == name, or_(_ROW.OWNER "
            "== owner, _ROW.OWNER.is_not(None) & is_where_it_was))"
        ),
        new="update(HMSB_EVENT_HOOK).where(_ROW.NAME == name)",
        test=f"{_POSITIONS}test_one_process_at_a_time_tells",
    ),
    Mutation(
        name="what was heard by one that was slow counts for nothing",
        file="hms_bridge/notification/hook_positions.py",
        within="advance",
        old="or_(_ROW.OWNER == owner, _ROW.OWNER.is_not(None) & is_where_it_was)",
        new="_ROW.OWNER == owner",
        test=f"{_POSITIONS}test_what_was_heard_by_one_that_was_slow_counts_unless_another_stored_"
        "something",
    ),
    Mutation(
        name="who tells a hook stores his position over that of a replay",
        file="hms_bridge/notification/hook_positions.py",
        within="_taken_away",
        old=(
            "update(HMSB_EVENT_HOOK).where(_ROW.NAME == name).values(OWNER=None, HELD_AT_MS=None)"
        ),
        new=("update(HMSB_EVENT_HOOK).where(_ROW.NAME == name).values(HELD_AT_MS=None)"),
        test=f"{_POSITIONS}test_a_hook_is_told_again_from_an_event_on",
    ),
    Mutation(
        name="a replay takes a hook beyond what it has heard",
        file="hms_bridge/notification/hook_positions.py",
        within="rewind",
        old="0 < event_id <= heard.event_id",
        new="0 < event_id",
        test=f"{_POSITIONS}test_a_hook_is_never_moved_forward",
    ),
    Mutation(
        name="of a dump that died with its marker nobody hears",
        file="hms_bridge/repl/dump/news.py",
        within="DumpNews.settle",
        old="is_finished or is_alone",
        new="is_alone and (not is_finished)",
        test=f"{_REPLICATION}test_a_dump_that_died_with_its_marker_is_told_once",
    ),
    Mutation(
        name="a dump that is being finished is forgotten by one who only plans",
        file="hms_bridge/repl/dump/news.py",
        within="DumpNews.settle",
        old="is_finished or is_alone",
        new="True",
        test=f"{_REPLICATION}test_who_plans_while_another_one_finishes_does_not_settle_it",
    ),
    Mutation(
        name="a dump that was never finished is told as finished",
        file="hms_bridge/service/archive_manifest.py",
        within="_settle_announced",
        old="facts is not None and is_finished",
        new="facts is not None",
        test=f"{_REPLICATION}test_a_dump_that_died_without_its_marker_is_never_told",
    ),
    Mutation(
        name="a policy that is late is told at each round",
        file="hms_bridge/model/lateness.py",
        within="next_watch",
        old="watch.late_at_ms is None and now_ms - watch.since_ms > late_ms",
        new="now_ms - watch.since_ms > late_ms",
        test=f"{_REPLICATION}test_a_policy_that_is_late_is_told_once_each_time",
    ),
    Mutation(
        name="two servers that keep house both tell of a late policy",
        file="hms_bridge/policies/watches.py",
        within="_has_put",
        old=("(_ROW.POLICY_NAME == policy, _ROW.SINCE_MS == seen.since_ms, is_as_seen)"),
        new="(_ROW.POLICY_NAME == policy, _ROW.SINCE_MS == seen.since_ms)",
        test=f"{_REPLICATION}test_of_two_who_keep_house_one_tells",
    ),
    Mutation(
        name="no hook may refuse a role, a grant or a token",
        file="hms_bridge/service/unit_of_work.py",
        within="Transactions._end",
        old="[*map(_change, drafts), *changes]",
        new="[*map(_change, drafts)]",
        test=f"{_CHANGES}test_privileges_that_come_with_a_table_are_asked_and_heard",
    ),
    Mutation(
        name="a hook is given the identifier of a delegation token",
        file="hms_bridge/hooks/changes.py",
        within="token_changed",
        old="hashlib.sha256(identifier.encode()).hexdigest()",
        new="identifier",
        test=f"{_CHANGES}"
        "test_what_hives_log_has_no_event_for_is_asked_and_heard_and_has_no_secrets",
    ),
    Mutation(
        name="half a line of a kill makes the next one unreadable",
        file="hms_bridge/hooks/json_lines.py",
        within="JsonLines._append",
        old="file.tell() and (not _ends_with_line(file.fileno(), file.tell()))",
        new="not file.tell()",
        test=f"{_SHIPPED}test_json_lines_come_one_after_the_other_also_after_half_a_line",
    ),
    Mutation(
        name="what a hook says it could not hear counts as heard",
        file="hms_bridge/service/hooks.py",
        within="HookTeller._is_heard",
        old=(
            "try:\n"
            "    ...\n"
            "except NotHeardError as error:\n"
            "    self._failures += 1\n"
            "    _LOG.error('event hook %s has not heard event %s (%s): %s; it "
            "is told again in %g s, and no other event before that', "
            "self._name, event.key, event.type, error, self._pause_seconds())\n"
            "    return False\n"
            "except BaseException:\n"
            "    self._failures += 1\n"
            "    _LOG.exception('event hook %s failed on event %s (%s); it is "
            "told again, and no other event before that', self._name, "
            "event.key, event.type)\n"
            "    return False"
        ),
        new=(
            "try:\n"
            "    ...\n"
            "except NotHeardError as error:\n"
            "    self._failures += 1\n"
            "    _LOG.error('event hook %s has not heard event %s (%s): %s; it "
            "is told again in %g s, and no other event before that', "
            "self._name, event.key, event.type, error, self._pause_seconds())\n"
            "    return True\n"
            "except BaseException:\n"
            "    self._failures += 1\n"
            "    _LOG.exception('event hook %s failed on event %s (%s); it is "
            "told again, and no other event before that', self._name, "
            "event.key, event.type)\n"
            "    return False"
        ),
        test="tests/service/test_hooks.py::"
        "test_what_is_not_heard_on_purpose_is_a_line_of_the_log_and_comes_again",
    ),
    Mutation(
        name="a redirection counts as heard",
        file="hms_bridge/hooks/webhook.py",
        within="Webhook._post",
        old="300",
        new="400",
        test=f"{_SHIPPED}test_a_webhook_follows_nobody_and_other_answers_are_failures",
    ),
    Mutation(
        name="requests are signed with nothing",
        file="hms_bridge/hooks/webhook.py",
        within="Webhook.with_settings",
        old="len(hooks.webhook_secret) < SECRET_LENGTH_MIN",
        new="False",
        test=f"{_SHIPPED}test_a_webhook_without_a_secret_is_refused_and_none_is_shown",
    ),
    Mutation(
        name="an old request can be sent again under a new time",
        file="hms_bridge/hooks/webhook.py",
        within="signature",
        old="time_seconds",
        new="time_seconds * 0",
        test=f"{_SHIPPED}test_a_webhook_posts_the_event_signed",
    ),
    Mutation(
        name="a program that failed has heard",
        file="hms_bridge/hooks/command.py",
        within="Command.on_event",
        old="code != 0",
        new="code < 0",
        test=f"{_SHIPPED}test_a_command_that_fails_or_hangs_has_not_heard",
    ),
    Mutation(
        name="what a program leaves in the background is waited for",
        file="hms_bridge/hooks/command.py",
        within="_talk",
        old=("pipes.get_map() and (not has_ended) and (time.monotonic() < deadline)"),
        new="pipes.get_map() and time.monotonic() < deadline",
        test=f"{_SHIPPED}test_a_command_has_heard_when_it_ends_whatever_it_leaves_behind",
    ),
    Mutation(
        name="what a killed program has started lives on",
        file="hms_bridge/hooks/command.py",
        within="_run",
        old="os.killpg(process.pid, signal.SIGKILL)",
        new="process.kill()",
        test=f"{_SHIPPED}test_nothing_is_left_of_a_command_that_is_killed",
    ),
    Mutation(
        name="an event whose message no JSON can tell is told to nobody, nor is any after it",
        file="hms_bridge/hooks/told_json.py",
        within="told_json",
        old="(ValueError, RecursionError)",
        new="LookupError",
        test=f"{_SHIPPED}test_a_message_that_not_every_reader_of_json_takes_is_passed_on_as_text",
    ),
    Mutation(
        name="half a character is told as one",
        file="hms_bridge/hooks/told_json.py",
        within="told_json",
        old="line.encode()",
        new="",
        test=f"{_SHIPPED}test_a_message_that_not_every_reader_of_json_takes_is_passed_on_as_text",
    ),
    Mutation(
        name="what a killed program has started in another session lives on",
        file="hms_bridge/hooks/marked_processes.py",
        within="kill_marked",
        old="_PASSES_MAX",
        new="0",
        test=f"{_SHIPPED}test_nothing_is_left_of_a_command_that_is_killed",
    ),
    Mutation(
        name="whoever is killed takes what another run has left with it",
        file="hms_bridge/hooks/command.py",
        within="_run",
        old="kill_marked(f'{RUN}={environment[RUN]}')",
        new=(
            "key = environment['HMS_BRIDGE_EVENT_KEY']\nkill_marked(f'HMS_BRIDGE_EVENT_KEY={key}')"
        ),
        test=f"{_SHIPPED}test_a_command_that_is_killed_takes_nothing_else_with_it",
    ),
    Mutation(
        name="all that a program says is kept in memory",
        file="hms_bridge/hooks/command.py",
        within="_talk",
        old="(end + piece)[-_SHOWN_MAX:]",
        new="end + piece",
        test=f"{_SHIPPED}test_a_command_may_say_more_than_there_is_memory_for",
    ),
    Mutation(
        name="a receiver that sends a byte from time to time is waited for",
        file="hms_bridge/hooks/webhook.py",
        within="_InTime.readinto",
        old="self._answered.settimeout(_left(self._deadline))",
        new="",
        test=f"{_SHIPPED}test_a_receiver_that_answers_bit_by_bit_is_given_up_in_time",
    ),
    Mutation(
        name="who has nothing to tell loses the hook, and tells the next event all the same",
        file="hms_bridge/service/hooks.py",
        within="HookTeller.run_once",
        old=("self._last is None or time.monotonic() - self._stored_at > RENEW_SECONDS"),
        new="self._last is None",
        test="tests/service/test_hooks_at_least_once.py::"
        "test_another_process_takes_no_hook_over_that_is_slow_or_has_nothing_to_hear",
    ),
)
