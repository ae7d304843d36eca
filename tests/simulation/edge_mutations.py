"""Protective lines against clocks that are set, wrong places and names of one thing; read by
way of `mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_LEASE = "tests/repl/test_lease.py::"
_ARCHIVE = "tests/repl/test_dump_archive.py::"
_NAMES = "tests/cli/test_repl_wrong_names.py::"
_LINKS = "tests/cli/test_archive_links.py::"
_PINS = "hms_bridge/repl/pins.py"
_PINS_TEST = "tests/repl/test_policy_pins.py::"

EDGES = (
    Mutation(
        name="a status of what nobody knows says that all is well",
        file="hms_bridge/repl/status/repl_status.py",
        old="        self._require_known(request, dumps)\n",
        new="",
        test=f"{_NAMES}test_a_monitor_takes_it_for_unknown",
    ),
    Mutation(
        name="loaded dumps hide that the replica is not there",
        file="hms_bridge/repl/status/repl_status.py",
        old="                self._not_there(request, dumps),\n",
        new="",
        test=f"{_NAMES}test_a_replica_that_is_looked_for_in_the_wrong_place",
    ),
    Mutation(
        name="a replica whose source lost its database can be promoted by nobody",
        file="hms_bridge/repl/handover/sides.py",
        old="    if source is None or find_database(source) is not None:\n",
        new="    if True:\n",
        test=f"{_NAMES}test_a_source_whose_database_is_gone_is_a_lost_one",
    ),
    Mutation(
        name="an archive behind a link is none",
        file="changemanager/archive_directory.py",
        old="place.volume.status(place.volume.real_path(place.path))",
        new="place.volume.status(place.path)",
        test=f"{_LINKS}test_a_cleaner_archives_into_it",
    ),
    Mutation(
        name="an archive on a disk that is not mounted is an empty one",
        file="changemanager/archive_directory.py",
        old="is None and not _is_link(place) and place",
        new="is None and place",
        test=f"{_LINKS}test_a_disk_that_is_not_mounted_is_no_empty_archive",
    ),
    Mutation(
        name="all replications of a database share what is kept for the next dump",
        file=_PINS,
        old='    return f"{_POLICY}{database}:{root}"\n',
        new='    return f"{_POLICY}{database}"\n',
        test=f"{_PINS_TEST}test_one_that_goes_on_keeps_what_the_other_needs",
    ),
    Mutation(
        name="the pin of earlier versions is left to end by its budget",
        file=_PINS,
        old="        self._take_over(self.manifest)\n        if policy_pin(",
        new="        if policy_pin(",
        test=f"{_PINS_TEST}test_the_pin_of_versions_before_is_taken_over",
    ),
    Mutation(
        name="the pin of earlier versions goes over to one replication alone",
        file=_PINS,
        old="sorted({self.root, *self._pinned_roots(pins)})",
        new="[self.root]",
        test=f"{_PINS_TEST}test_the_pin_of_versions_before_is_taken_over",
    ),
    Mutation(
        name="whoever takes over a pin forgets that it was given up",
        file=_PINS,
        old="            if shared.given_up is not None:\n",
        new="            if False:\n",
        test=f"{_PINS_TEST}test_a_dump_that_fails_takes_it_over_as_it_is",
    ),
    Mutation(
        name="the pin of earlier versions goes before what it holds is held",
        file=_PINS,
        old="        there = {pin.holder for pin in pins}\n",
        new="        there = {pin.holder for pin in pins}\n"
        "        manifest.remove_pin(shared.holder)\n",
        test=f"{_PINS_TEST}test_a_dump_that_fails_takes_it_over_as_it_is",
    ),
    Mutation(
        name="status does not see the pin of earlier versions",
        file=_PINS,
        old=" or known.get(shared_holder(database))",
        new="",
        test=f"{_PINS_TEST}test_until_its_first_dump_a_replication_goes_by_that_pin",
    ),
    Mutation(
        name="a way back releases the dumps of other policies",
        file=_PINS,
        old='dump_holder(self.database, f"{self.root}/")',
        new='dump_holder(self.database, "")',
        test=f"{_PINS_TEST}test_a_way_back_releases_what_is_its_own",
    ),
    Mutation(
        name="a step of the time takes a lease from a living holder",
        file="hms_bridge/repl/lease.py",
        old="enough_ms = rules.watch_ms if silent_ms",
        new="enough_ms = 0 if silent_ms",
        test=f"{_LEASE}test_a_step_of_the_metastores_clock_before_the_first_look_takes_no_lease",
    ),
    Mutation(
        name="watching for a lease is measured by the time of day",
        file="hms_bridge/repl/lease.py",
        old="rules, now_ms = self._rules, steady_ms(self._clock)",
        new="rules, now_ms = self._rules, self._clock.now_ms()",
        test=f"{_LEASE}test_a_time_that_is_set_back_during_the_watch_does_not_prolong_it",
    ),
    Mutation(
        name="an outage of the metastore counts as watching",
        file="hms_bridge/repl/lease.py",
        old="self.watched_ms += min(now_ms - self.looked_at_ms, longest_ms)",
        new="self.watched_ms += now_ms - self.looked_at_ms",
        test=f"{_LEASE}test_an_outage_is_no_time_of_watching",
    ),
    Mutation(
        name="a heartbeat before the first one, by a clock that was set back, is none",
        file="hms_bridge/repl/lease.py",
        old="holder.last_heartbeat_ms != watch.heartbeat_ms:",
        new="holder.last_heartbeat_ms > watch.heartbeat_ms:",
        test=f"{_LEASE}test_a_step_of_the_time_takes_no_lease_from_a_living_holder",
    ),
    Mutation(
        name="a holder trusts the time of day alone",
        file="hms_bridge/repl/lease.py",
        old="return self._clock.now_ms(), steady_ms(self._clock)",
        new="return self._clock.now_ms(), self._clock.now_ms()",
        test=f"{_LEASE}test_a_holder_asks_after_its_lease_by_whichever_clock_went_on",
    ),
    Mutation(
        name="a file is taken for an archive",
        file="changemanager/archive_directory.py",
        old="    if kind is FileKind.DIRECTORY:\n        return None\n",
        new="    if kind is not None:\n        return None\n",
        test=f"{_ARCHIVE}"
        "test_a_dump_with_a_file_for_an_archive_is_refused_before_anything_is_written",
    ),
    Mutation(
        name="what lies above an archive is not looked at",
        file="changemanager/archive_directory.py",
        old="is None and not _is_link(place) and place.parent != place:",
        new="is None and False:",
        test=f"{_ARCHIVE}"
        "test_a_dump_with_a_file_for_an_archive_is_refused_before_anything_is_written",
    ),
    Mutation(
        name="a load does not look at the archive of its dump",
        file="hms_bridge/repl/load/named_archive.py",
        old="    if resolve(named).volume is resolve",
        new="    if False and resolve(named).volume is resolve",
        test=f"{_ARCHIVE}test_a_load_whose_dump_names_a_file_for_an_archive_changes_nothing",
    ),
    Mutation(
        name="a place that is a file is tried again and again",
        file="hms_bridge/repl/cycles/runner.py",
        old="return cause.errno not in _LASTING",
        new="return True",
        test="tests/repl/test_policy_cycles.py::"
        "test_a_root_that_is_a_file_or_below_one_is_tried_once",
    ),
    Mutation(
        name="the part of a database ends under a policy",
        file="hms_bridge/repl/handover/own_part.py",
        old="    if policies:\n        ends =",
        new="    if False:\n        ends =",
        test="tests/cli/test_repl_policies.py::"
        "test_the_part_of_a_database_does_not_end_under_a_policy",
    ),
    Mutation(
        name="another policy of the name is passed over as the same",
        file="hms_bridge/policies/policies.py",
        old="        if there == policy:\n",
        new="        if there is not None and not is_replacing:\n",
        test="tests/policies/test_policy_store.py::"
        "test_a_policy_is_replaced_only_where_that_is_meant",
    ),
    Mutation(
        name="a policy that is there just so is refused",
        file="hms_bridge/policies/policies.py",
        old="        if there == policy:\n",
        new="        if there == policy and is_replacing:\n",
        test="tests/policies/test_policy_store.py::"
        "test_a_policy_that_is_there_just_so_may_be_added_again",
    ),
    Mutation(
        name="a truncation passes for statistics",
        file="hms_bridge/repl/format/noted_statistics.py",
        old='    if payload.is_true("isTruncateOp"):\n',
        new="    if False:\n",
        test="tests/repl/test_backlog.py::test_a_truncation_is_a_change_though_only_counts_tell_it",
    ),
    Mutation(
        name="counts of a table without transactions pass for statistics",
        file="hms_bridge/repl/format/noted_statistics.py",
        old="    return table.is_transactional and _rest_of",
        new="    return _rest_of",
        test="tests/repl/test_failback.py::test_files_that_only_counts_tell_of_are_named_and_not_lost",
    ),
    Mutation(
        name="counts of a partition without transactions pass for statistics",
        file="hms_bridge/repl/format/noted_statistics.py",
        old="    return table.is_transactional and _rest_of",
        new="    return _rest_of",
        test="tests/repl/test_backlog.py::"
        "test_counts_of_a_partition_without_transactions_are_a_change",
    ),
    Mutation(
        name="any change of a table passes for statistics",
        file="hms_bridge/repl/format/noted_statistics.py",
        old="table.is_transactional and _rest_of(before) == _rest_of(after)\n",
        new="table.is_transactional\n",
        test="tests/repl/test_backlog.py::test_a_property_beside_what_was_counted_is_a_change",
    ),
    Mutation(
        name="any change of a partition passes for statistics",
        file="hms_bridge/repl/format/noted_statistics.py",
        old="table.is_transactional and _rest_of(before) == _rest_of(after)\n",
        new="table.is_transactional\n",
        test="tests/repl/test_backlog.py::"
        "test_counts_of_a_partition_are_no_change_unless_it_is_moved",
    ),
    Mutation(
        name="statistics of a former source stay for its new rows",
        file="hms_bridge/repl/handover/divergence.py",
        old="            self.used |= names_of_event(event, self._database)\n"
        "        elif event.type not in",
        new="            pass\n        elif event.type not in",
        test="tests/repl/test_failback.py::test_what_was_counted_without_a_write_comes_whole",
    ),
    Mutation(
        name="one root in two spellings is two",
        file="hms_bridge/policies/policies.py",
        old="is_same_directory(policy.root, other.root)",
        new="policy.root == other.root",
        test="tests/policies/test_policy_store.py::"
        "test_one_directory_with_two_spellings_is_one_root",
    ),
    Mutation(
        name="the metastore that keeps policies has two names",
        file="hms_bridge/policies/same_place.py",
        old="    if url is None:\n        return _key(own)\n",
        new="    if url is None:\n        return ()\n",
        test="tests/policies/test_policy_store.py::"
        "test_the_metastore_that_keeps_policies_is_one_target_by_its_url_too",
    ),
    Mutation(
        name="one metastore with two names is two targets",
        file="hms_bridge/policies/same_place.py",
        old="        return _key(make_url(url.strip()))\n",
        new="        return ('', str(make_url(url.strip())))\n",
        test="tests/policies/test_policy_store.py::test_one_metastore_with_two_names_is_one_target",
    ),
)
