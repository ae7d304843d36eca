"""Protective lines against clocks that are set, wrong places and names of one thing; read by
way of `mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_LEASE = "tests/repl/test_lease.py::"
_ARCHIVE = "tests/repl/test_dump_archive.py::"

EDGES = (
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
        file="hms_bridge/repl/archive_place.py",
        old="    if kind in {FileKind.FILE, FileKind.OTHER}:\n",
        new="    if kind is FileKind.OTHER:\n",
        test=f"{_ARCHIVE}"
        "test_a_dump_with_a_file_for_an_archive_is_refused_before_anything_is_written",
    ),
    Mutation(
        name="what lies above an archive is not looked at",
        file="hms_bridge/repl/archive_place.py",
        old="is None and place.parent != place:",
        new="is None and False:",
        test=f"{_ARCHIVE}"
        "test_a_dump_with_a_file_for_an_archive_is_refused_before_anything_is_written",
    ),
    Mutation(
        name="a load does not look at the archive of its dump",
        file="hms_bridge/repl/load/named_archive.py",
        old="    if archive.volume is resolve",
        new="    if False and archive.volume is resolve",
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
        file="hms_bridge/repl/own_part.py",
        old="    if policies:\n        ends =",
        new="    if False:\n        ends =",
        test="tests/cli/test_repl_policies.py::"
        "test_the_part_of_a_database_does_not_end_under_a_policy",
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
