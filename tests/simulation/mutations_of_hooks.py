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
        old="    if event.key != key:\n",
        new="    if False:\n",
        test="tests/service/test_hook_positions.py::"
        "test_a_hook_passes_over_what_it_hears_next_and_nothing_else",
    ),
    Mutation(
        name="a change goes on although a hook refuses it",
        file="hms_bridge/hooks/inside.py",
        old='raise _refused("pre-event", name, change.described, error) from error\n',
        new='_LOG.error("%s", error)\n',
        test=f"{_INSIDE}test_a_veto_names_the_hook_and_changes_nothing",
    ),
    Mutation(
        name="a hook that failed without meaning to refuse lets the change pass",
        file="hms_bridge/hooks/inside.py",
        old="                    hook.before_change(change)\n"
        "                except KeyboardInterrupt:\n                    raise\n",
        new="                    hook.before_change(change)\n"
        "                except KeyError:\n                    pass\n",
        test=f"{_INSIDE}test_a_hook_with_a_fault_refuses",
    ),
    Mutation(
        name="a hook that asks for an end ends the housekeeping",
        file="hms_bridge/hooks/inside.py",
        old='            except BaseException as error:\n                raise _refused("tr',
        new='            except Exception as error:\n                raise _refused("tr',
        test=f"{_INSIDE}test_a_hook_that_fails_for_ever_does_not_stop_the_housekeeping",
    ),
    Mutation(
        name="a hook may refuse the end of what has begun",
        file="hms_bridge/hooks/inside.py",
        old="                if change.type in NEVER_ASKED:\n",
        new="                if False:\n",
        test=f"{_INSIDE}"
        "test_a_veto_of_a_commit_leaves_the_transaction_open_and_its_end_is_never_asked",
    ),
    Mutation(
        name="events are committed although a transactional hook failed",
        file="hms_bridge/hooks/inside.py",
        old='raise _refused("transactional", name, _types_of(events), error) from error\n',
        new='_LOG.error("%s", error)\n',
        test=f"{_INSIDE}test_what_a_transactional_hook_writes_is_there_with_the_events_or_neither_is",
    ),
    Mutation(
        name="a deadlock in a transactional hook is an error for the client",
        file="hms_bridge/hooks/inside.py",
        old="    if isinstance(reason, RetryableBackendError):\n",
        new="    if False:\n",
        test=f"{_INSIDE}test_a_deadlock_of_a_transactional_hook_is_tried_again",
    ),
    Mutation(
        name="a failure that a transactional hook caught is committed, as far as that goes",
        file="hms_bridge/hooks/inside.py",
        old="            self.failure = self.failure or error\n",
        new="            self.failure = None\n",
        test=f"{_INSIDE}test_a_failure_that_a_transactional_hook_catches_undoes_all_the_same",
    ),
    Mutation(
        name="a failback is told as the end of a load",
        file="hms_bridge/service/databases.py",
        old="            if not is_fenced(before):",
        new="            if True:",
        test="tests/service/test_points.py::test_a_failback_notes_its_event_and_is_no_load",
    ),
    Mutation(
        name="points are written where nobody hears them",
        file="hms_bridge/service/unit_of_work.py",
        old=" for draft in write.unit.points] if self._is_heard else ()\n",
        new=" for draft in write.unit.points]\n",
        test=f"{_INSIDE}test_a_server_without_hooks_does_nothing_for_them",
    ),
    Mutation(
        name="a hook is told of points that came after events it has yet to hear",
        file="hms_bridge/notification/hook_points.py",
        old="    points = _read(connection, last.point_id, until.point_id, limit)\n",
        new="    points = _read(connection, last.point_id, 1 << 60, limit)\n",
        test=f"{_ONCE}test_commits_between_the_statements_of_a_reader_come_in_their_order",
    ),
    Mutation(
        name="a hook is told of events that came after points it has yet to hear",
        file="hms_bridge/notification/hook_points.py",
        old="        if event.id <= until.event_id\n",
        new="        if event.id > 0\n",
        test=f"{_ONCE}test_commits_between_the_statements_of_a_reader_come_in_their_order",
    ),
    Mutation(
        name="points are told as they are numbered and not between events",
        file="hms_bridge/model/hook.py",
        old="    return event.id, event.point_id\n",
        new="    return 0, event.point_id\n",
        test=f"{_POSITIONS}test_events_and_points_come_in_the_order_of_commits",
    ),
    Mutation(
        name="a teller that lost its hook stores its position over another's",
        file="hms_bridge/notification/hook_positions.py",
        old="            or_(_ROW.OWNER == owner, _ROW.OWNER.is_not(None) & is_where_it_was),\n",
        new="",
        test=f"{_POSITIONS}test_one_process_at_a_time_tells",
    ),
    Mutation(
        name="what was heard by one that was slow counts for nothing",
        file="hms_bridge/notification/hook_positions.py",
        old="            or_(_ROW.OWNER == owner, _ROW.OWNER.is_not(None) & is_where_it_was),\n",
        new="            _ROW.OWNER == owner,\n",
        test=f"{_POSITIONS}test_what_was_heard_by_one_that_was_slow_counts_unless_another_stored_"
        "something",
    ),
    Mutation(
        name="who tells a hook stores his position over that of a replay",
        file="hms_bridge/notification/hook_positions.py",
        old="        update(HMSB_EVENT_HOOK).where(_ROW.NAME == name)"
        ".values(OWNER=None, HELD_AT_MS=None)\n",
        new="        update(HMSB_EVENT_HOOK).where(_ROW.NAME == name).values(HELD_AT_MS=None)\n",
        test=f"{_POSITIONS}test_a_hook_is_told_again_from_an_event_on",
    ),
    Mutation(
        name="a replay takes a hook beyond what it has heard",
        file="hms_bridge/notification/hook_positions.py",
        old="    if not 0 < event_id <= heard.event_id:\n",
        new="    if not 0 < event_id:\n",
        test=f"{_POSITIONS}test_a_hook_is_never_moved_forward",
    ),
    Mutation(
        name="of a dump that died with its marker nobody hears",
        file="hms_bridge/repl/dump/news.py",
        old="            if is_finished or is_alone:\n",
        new="            if is_alone and not is_finished:\n",
        test=f"{_REPLICATION}test_a_dump_that_died_with_its_marker_is_told_once",
    ),
    Mutation(
        name="a dump that is being finished is forgotten by one who only plans",
        file="hms_bridge/repl/dump/news.py",
        old="            if is_finished or is_alone:\n",
        new="            if True:\n",
        test=f"{_REPLICATION}test_who_plans_while_another_one_finishes_does_not_settle_it",
    ),
    Mutation(
        name="a dump that was never finished is told as finished",
        file="hms_bridge/service/archive_manifest.py",
        old="    if facts is not None and is_finished:\n",
        new="    if facts is not None:\n",
        test=f"{_REPLICATION}test_a_dump_that_died_without_its_marker_is_never_told",
    ),
    Mutation(
        name="a policy that is late is told at each round",
        file="hms_bridge/model/lateness.py",
        old="    if watch.late_at_ms is None and now_ms - watch.since_ms > late_ms:\n",
        new="    if now_ms - watch.since_ms > late_ms:\n",
        test=f"{_REPLICATION}test_a_policy_that_is_late_is_told_once_each_time",
    ),
    Mutation(
        name="two servers that keep house both tell of a late policy",
        file="hms_bridge/policies/watches.py",
        old="_ROW.SINCE_MS == seen.since_ms, is_as_seen)\n",
        new="_ROW.SINCE_MS == seen.since_ms)\n",
        test=f"{_REPLICATION}test_of_two_who_keep_house_one_tells",
    ),
    Mutation(
        name="no hook may refuse a role, a grant or a token",
        file="hms_bridge/service/unit_of_work.py",
        old="            self._inner.ask([*map(_change, drafts), *changes])\n",
        new="            self._inner.ask([*map(_change, drafts)])\n",
        test=f"{_CHANGES}test_privileges_that_come_with_a_table_are_asked_and_heard",
    ),
    Mutation(
        name="a hook is given the identifier of a delegation token",
        file="hms_bridge/hooks/changes.py",
        old='        f"sha256:{hashlib.sha256(identifier.encode()).hexdigest()}",\n',
        new='        f"sha256:{identifier}",\n',
        test=f"{_CHANGES}"
        "test_what_hives_log_has_no_event_for_is_asked_and_heard_and_has_no_secrets",
    ),
    Mutation(
        name="half a line of a kill makes the next one unreadable",
        file="hms_bridge/hooks/json_lines.py",
        old="            if file.tell() and not _ends_with_line(file.fileno(), file.tell()):\n",
        new="            if not file.tell():\n",
        test=f"{_SHIPPED}test_json_lines_come_one_after_the_other_also_after_half_a_line",
    ),
    Mutation(
        name="what a hook says it could not hear counts as heard",
        file="hms_bridge/service/hooks.py",
        old="                self._pause_seconds(),\n            )\n            return False\n",
        new="                self._pause_seconds(),\n            )\n            return True\n",
        test="tests/service/test_hooks.py::"
        "test_what_is_not_heard_on_purpose_is_a_line_of_the_log_and_comes_again",
    ),
    Mutation(
        name="a redirection counts as heard",
        file="hms_bridge/hooks/webhook.py",
        old="            if not 200 <= answer.status < 300:\n",
        new="            if not 200 <= answer.status < 400:\n",
        test=f"{_SHIPPED}test_a_webhook_follows_nobody_and_other_answers_are_failures",
    ),
    Mutation(
        name="requests are signed with nothing",
        file="hms_bridge/hooks/webhook.py",
        old="        if len(hooks.webhook_secret) < SECRET_LENGTH_MIN:\n",
        new="        if False:\n",
        test=f"{_SHIPPED}test_a_webhook_without_a_secret_is_refused_and_none_is_shown",
    ),
    Mutation(
        name="an old request can be sent again under a new time",
        file="hms_bridge/hooks/webhook.py",
        old='    signed = f"{time_seconds}.".encode() + body\n',
        new='    signed = f"{time_seconds * 0}.".encode() + body\n',
        test=f"{_SHIPPED}test_a_webhook_posts_the_event_signed",
    ),
    Mutation(
        name="a program that failed has heard",
        file="hms_bridge/hooks/command.py",
        old="        if code != 0:\n",
        new="        if code < 0:\n",
        test=f"{_SHIPPED}test_a_command_that_fails_or_hangs_has_not_heard",
    ),
    Mutation(
        name="what a program leaves in the background is waited for",
        file="hms_bridge/hooks/command.py",
        old="        while pipes.get_map() and not has_ended and time.monotonic() < deadline:\n",
        new="        while pipes.get_map() and time.monotonic() < deadline:\n",
        test=f"{_SHIPPED}test_a_command_has_heard_when_it_ends_whatever_it_leaves_behind",
    ),
    Mutation(
        name="what a killed program has started lives on",
        file="hms_bridge/hooks/command.py",
        old="                os.killpg(process.pid, signal.SIGKILL)\n",
        new="                process.kill()\n",
        test=f"{_SHIPPED}test_nothing_is_left_of_a_command_that_is_killed",
    ),
    Mutation(
        name="an event whose message no JSON can tell is told to nobody, nor is any after it",
        file="hms_bridge/hooks/told_json.py",
        old="    except (ValueError, RecursionError):\n",
        new="    except LookupError:\n",
        test=f"{_SHIPPED}test_a_message_that_not_every_reader_of_json_takes_is_passed_on_as_text",
    ),
    Mutation(
        name="half a character is told as one",
        file="hms_bridge/hooks/told_json.py",
        old="        line.encode()\n",
        new="",
        test=f"{_SHIPPED}test_a_message_that_not_every_reader_of_json_takes_is_passed_on_as_text",
    ),
    Mutation(
        name="what a killed program has started in another session lives on",
        file="hms_bridge/hooks/marked_processes.py",
        old="    for _ in range(_PASSES_MAX):\n",
        new="    for _ in range(0):\n",
        test=f"{_SHIPPED}test_nothing_is_left_of_a_command_that_is_killed",
    ),
    Mutation(
        name="whoever is killed takes what another run has left with it",
        file="hms_bridge/hooks/command.py",
        old='                kill_marked(f"{RUN}={environment[RUN]}")\n',
        new='                key = environment["HMS_BRIDGE_EVENT_KEY"]\n'
        '                kill_marked(f"HMS_BRIDGE_EVENT_KEY={key}")\n',
        test=f"{_SHIPPED}test_a_command_that_is_killed_takes_nothing_else_with_it",
    ),
    Mutation(
        name="all that a program says is kept in memory",
        file="hms_bridge/hooks/command.py",
        old="                end = (end + piece)[-_SHOWN_MAX:]\n",
        new="                end = end + piece\n",
        test=f"{_SHIPPED}test_a_command_may_say_more_than_there_is_memory_for",
    ),
    Mutation(
        name="a receiver that sends a byte from time to time is waited for",
        file="hms_bridge/hooks/webhook.py",
        old="        self._answered.settimeout(_left(self._deadline))\n",
        new="",
        test=f"{_SHIPPED}test_a_receiver_that_answers_bit_by_bit_is_given_up_in_time",
    ),
    Mutation(
        name="who has nothing to tell loses the hook, and tells the next event all the same",
        file="hms_bridge/service/hooks.py",
        old=" or time.monotonic() - self._stored_at > RENEW_SECONDS:\n",
        new=":\n",
        test="tests/service/test_hooks_at_least_once.py::"
        "test_another_process_takes_no_hook_over_that_is_slow_or_has_nothing_to_hear",
    ),
)
