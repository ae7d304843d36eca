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
        within="ReplStatus.look",
        old="self._require_known(request, dumps)",
        new="",
        test=f"{_NAMES}test_a_monitor_takes_it_for_unknown",
    ),
    Mutation(
        name="loaded dumps hide that the replica is not there",
        file="hms_bridge/repl/status/repl_status.py",
        within="ReplStatus.look",
        old=(
            "_without_empty(gap, self._not_there(request, dumps), None if "
            "is_promoted else self._successor(source), _marked(dumps), "
            "_lost_files(missing), *(given_up_text(pin, source) for pin in "
            "own_pins), _not_compatible(source, is_incompatible))"
        ),
        new=(
            "_without_empty(gap, None if is_promoted else "
            "self._successor(source), _marked(dumps), _lost_files(missing), "
            "*(given_up_text(pin, source) for pin in own_pins), "
            "_not_compatible(source, is_incompatible))"
        ),
        test=f"{_NAMES}test_a_replica_that_is_looked_for_in_the_wrong_place",
    ),
    Mutation(
        name="a replica whose source lost its database can be promoted by nobody",
        file="hms_bridge/repl/handover/sides.py",
        within="without_lost_source",
        old="source is None or find_database(source) is not None",
        new="True",
        test=f"{_NAMES}test_a_source_whose_database_is_gone_is_a_lost_one",
    ),
    Mutation(
        name="an archive behind a link is none",
        file="changemanager/archive_directory.py",
        within="_kind",
        old="place.volume.real_path(place.path)",
        new="place.path",
        test=f"{_LINKS}test_a_cleaner_archives_into_it",
    ),
    Mutation(
        name="an archive on a disk that is not mounted is an empty one",
        file="changemanager/archive_directory.py",
        within="hindrance",
        old=(
            "(kind := _kind(place)) is None and (not _is_link(place)) and (place.parent != place)"
        ),
        new="(kind := _kind(place)) is None and place.parent != place",
        test=f"{_LINKS}test_a_disk_that_is_not_mounted_is_no_empty_archive",
    ),
    Mutation(
        name="all replications of a database share what is kept for the next dump",
        file=_PINS,
        within="policy_holder",
        old="f'{_POLICY}{database}:{root}'",
        new="f'{_POLICY}{database}'",
        test=f"{_PINS_TEST}test_one_that_goes_on_keeps_what_the_other_needs",
    ),
    Mutation(
        name="the pin of earlier versions is left to end by its budget",
        file=_PINS,
        within="DumpPins.begin",
        old="self._take_over(self.manifest)",
        new="",
        test=f"{_PINS_TEST}test_the_pin_of_versions_before_is_taken_over",
    ),
    Mutation(
        name="the pin of earlier versions goes over to one replication alone",
        file=_PINS,
        within="DumpPins._take_over",
        old="sorted({self.root, *self._pinned_roots(pins)})",
        new="[self.root]",
        test=f"{_PINS_TEST}test_the_pin_of_versions_before_is_taken_over",
    ),
    Mutation(
        name="whoever takes over a pin forgets that it was given up",
        file=_PINS,
        within="DumpPins._take_over",
        old="shared.given_up is not None",
        new="False",
        test=f"{_PINS_TEST}test_a_dump_that_fails_takes_it_over_as_it_is",
    ),
    Mutation(
        name="the pin of earlier versions goes before what it holds is held",
        file=_PINS,
        within="DumpPins._take_over",
        old=(
            "for root in sorted({self.root, *self._pinned_roots(pins)}):\n"
            "    holder = policy_holder(self.database, root)\n"
            "    if holder in there:\n"
            "        continue\n"
            "    manifest.put_pin(replace(shared, holder=holder, "
            "given_up=None))\n"
            "    if shared.given_up is not None:\n"
            "        manifest.give_up(holder, "
            "seen_created_at_ms=shared.created_at_ms, given_up=shared.given_up)"
        ),
        new=(
            "manifest.remove_pin(shared.holder)\n"
            "for root in sorted({self.root, *self._pinned_roots(pins)}):\n"
            "    holder = policy_holder(self.database, root)\n"
            "    if holder in there:\n"
            "        continue\n"
            "    manifest.put_pin(replace(shared, holder=holder, "
            "given_up=None))\n"
            "    if shared.given_up is not None:\n"
            "        manifest.give_up(holder, "
            "seen_created_at_ms=shared.created_at_ms, given_up=shared.given_up)"
        ),
        test=f"{_PINS_TEST}test_a_dump_that_fails_takes_it_over_as_it_is",
    ),
    Mutation(
        name="status does not see the pin of earlier versions",
        file=_PINS,
        within="policy_pin",
        old=("known.get(policy_holder(database, root)) or known.get(shared_holder(database))"),
        new="known.get(policy_holder(database, root))",
        test=f"{_PINS_TEST}test_until_its_first_dump_a_replication_goes_by_that_pin",
    ),
    Mutation(
        name="a way back releases the dumps of other policies",
        file=_PINS,
        within="DumpPins.release_all",
        old="f'{self.root}/'",
        new="''",
        test=f"{_PINS_TEST}test_a_way_back_releases_what_is_its_own",
    ),
    Mutation(
        name="a step of the time takes a lease from a living holder",
        file="hms_bridge/repl/lease.py",
        within="_Acquisition._take_if_dead",
        old="rules.watch_ms",
        new="0",
        test=f"{_LEASE}test_a_step_of_the_metastores_clock_before_the_first_look_takes_no_lease",
    ),
    Mutation(
        name="watching for a lease is measured by the time of day",
        file="hms_bridge/repl/lease.py",
        within="_Acquisition._take_if_dead",
        old="steady_ms(self._clock)",
        new="self._clock.now_ms()",
        test=f"{_LEASE}test_a_time_that_is_set_back_during_the_watch_does_not_prolong_it",
    ),
    Mutation(
        name="an outage of the metastore counts as watching",
        file="hms_bridge/repl/lease.py",
        within="_Watch.look",
        old="min(now_ms - self.looked_at_ms, longest_ms)",
        new="now_ms - self.looked_at_ms",
        test=f"{_LEASE}test_an_outage_is_no_time_of_watching",
    ),
    Mutation(
        name="a heartbeat before the first one, by a clock that was set back, is none",
        file="hms_bridge/repl/lease.py",
        within="_Acquisition._take_if_dead",
        old="holder.last_heartbeat_ms != watch.heartbeat_ms",
        new="holder.last_heartbeat_ms > watch.heartbeat_ms",
        test=f"{_LEASE}test_a_step_of_the_time_takes_no_lease_from_a_living_holder",
    ),
    Mutation(
        name="a holder trusts the time of day alone",
        file="hms_bridge/repl/lease.py",
        within="Lease._now",
        old="steady_ms(self._clock)",
        new="self._clock.now_ms()",
        test=f"{_LEASE}test_a_holder_asks_after_its_lease_by_whichever_clock_went_on",
    ),
    Mutation(
        name="a file is taken for an archive",
        file="changemanager/archive_directory.py",
        within="hindrance",
        old="kind is FileKind.DIRECTORY",
        new="kind is not None",
        test=f"{_ARCHIVE}"
        "test_a_dump_with_a_file_for_an_archive_is_refused_before_anything_is_written",
    ),
    Mutation(
        name="what lies above an archive is not looked at",
        file="changemanager/archive_directory.py",
        within="hindrance",
        old=(
            "(kind := _kind(place)) is None and (not _is_link(place)) and (place.parent != place)"
        ),
        new="(kind := _kind(place)) is None and False",
        test=f"{_ARCHIVE}"
        "test_a_dump_with_a_file_for_an_archive_is_refused_before_anything_is_written",
    ),
    Mutation(
        name="a load does not look at the archive of its dump",
        file="hms_bridge/repl/load/named_archive.py",
        within="require_archive",
        old="resolve(named).volume is resolve(reader.paths.root).volume",
        new="False and resolve(named).volume is resolve(reader.paths.root).volume",
        test=f"{_ARCHIVE}test_a_load_whose_dump_names_a_file_for_an_archive_changes_nothing",
    ),
    Mutation(
        name="a place that is a file is tried again and again",
        file="hms_bridge/repl/cycles/runner.py",
        within="may_pass",
        old="cause.errno not in _LASTING",
        new="True",
        test="tests/repl/test_policy_cycles.py::"
        "test_a_root_that_is_a_file_or_below_one_is_tried_once",
    ),
    Mutation(
        name="the part of a database ends under a policy",
        file="hms_bridge/repl/handover/own_part.py",
        within="plan_end",
        old=("if policies:\n    ..."),
        new=("if False:\n    ..."),
        test="tests/cli/test_repl_policies.py::"
        "test_the_part_of_a_database_does_not_end_under_a_policy",
    ),
    Mutation(
        name="another policy of the name is passed over as the same",
        file="hms_bridge/policies/policies.py",
        within="changed_by",
        old="there == policy",
        new="there is not None and (not is_replacing)",
        test="tests/policies/test_policy_store.py::"
        "test_a_policy_is_replaced_only_where_that_is_meant",
    ),
    Mutation(
        name="a policy that is there just so is refused",
        file="hms_bridge/policies/policies.py",
        within="changed_by",
        old="there == policy",
        new="there == policy and is_replacing",
        test="tests/policies/test_policy_store.py::"
        "test_a_policy_that_is_there_just_so_may_be_added_again",
    ),
    Mutation(
        name="a truncation passes for statistics",
        file="hms_bridge/repl/format/noted_statistics.py",
        within="counts_alone",
        old="payload.is_true('isTruncateOp')",
        new="False",
        test="tests/repl/test_backlog.py::test_a_truncation_is_a_change_though_only_counts_tell_it",
    ),
    Mutation(
        name="counts of a table without transactions pass for statistics",
        file="hms_bridge/repl/format/noted_statistics.py",
        within="counts_alone",
        old="table.is_transactional and _rest_of(before) == _rest_of(after)",
        new="_rest_of(before) == _rest_of(after)",
        test="tests/repl/test_failback.py::test_files_that_only_counts_tell_of_are_named_and_not_lost",
    ),
    Mutation(
        name="counts of a partition without transactions pass for statistics",
        file="hms_bridge/repl/format/noted_statistics.py",
        within="counts_alone",
        old="table.is_transactional and _rest_of(before) == _rest_of(after)",
        new="_rest_of(before) == _rest_of(after)",
        test="tests/repl/test_backlog.py::"
        "test_counts_of_a_partition_without_transactions_are_a_change",
    ),
    Mutation(
        name="any change of a table passes for statistics",
        file="hms_bridge/repl/format/noted_statistics.py",
        within="counts_alone",
        old="table.is_transactional and _rest_of(before) == _rest_of(after)",
        new="table.is_transactional",
        test="tests/repl/test_backlog.py::test_a_property_beside_what_was_counted_is_a_change",
    ),
    Mutation(
        name="any change of a partition passes for statistics",
        file="hms_bridge/repl/format/noted_statistics.py",
        within="counts_alone",
        old="table.is_transactional and _rest_of(before) == _rest_of(after)",
        new="table.is_transactional",
        test="tests/repl/test_backlog.py::"
        "test_counts_of_a_partition_are_no_change_unless_it_is_moved",
    ),
    Mutation(
        name="statistics of a former source stay for its new rows",
        file="hms_bridge/repl/handover/divergence.py",
        within="_Finder.note",
        old=(
            "if notes_statistics_alone(event):\n"
            "    self.used |= names_of_event(event, self._database)\n"
            "elif event.type not in WITHOUT_A_CHANGE:\n"
            "    names = names_of_event(event, self._database)\n"
            "    self.lost.update(names)\n"
            "    if not names:\n"
            "        self.others.append(event.type)"
        ),
        new=(
            "if notes_statistics_alone(event):\n"
            "    pass\n"
            "elif event.type not in WITHOUT_A_CHANGE:\n"
            "    names = names_of_event(event, self._database)\n"
            "    self.lost.update(names)\n"
            "    if not names:\n"
            "        self.others.append(event.type)"
        ),
        test="tests/repl/test_failback.py::test_what_was_counted_without_a_write_comes_whole",
    ),
    Mutation(
        name="one root in two spellings is two",
        file="hms_bridge/policies/policies.py",
        within="_require_apart",
        old="is_same_directory(policy.root, other.root)",
        new="policy.root == other.root",
        test="tests/policies/test_policy_store.py::"
        "test_one_directory_with_two_spellings_is_one_root",
    ),
    Mutation(
        name="the metastore that keeps policies has two names",
        file="hms_bridge/policies/same_place.py",
        within="metastore_key",
        old="_key(own)",
        new="()",
        test="tests/policies/test_policy_store.py::"
        "test_the_metastore_that_keeps_policies_is_one_target_by_its_url_too",
    ),
    Mutation(
        name="one metastore with two names is two targets",
        file="hms_bridge/policies/same_place.py",
        within="metastore_key",
        old="_key(make_url(url.strip()))",
        new="('', str(make_url(url.strip())))",
        test="tests/policies/test_policy_store.py::test_one_metastore_with_two_names_is_one_target",
    ),
)
