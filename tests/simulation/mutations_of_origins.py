"""Mutations of what says where files of a dump may come from; read by way of
`mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_CONTAINED = "tests/changemanager/test_containment.py::"
_ROOTS = "tests/repl/test_source_roots.py::"
_LOAD = "tests/cli/test_load_origin.py::"

OF_ORIGINS = (
    Mutation(
        name="a place outside of all roots is resolved",
        file="changemanager/containment.py",
        within="ResolverWithin.__call__",
        old="not self._real_roots.has(place.volume, real)",
        new="not self._real_roots.has(place.volume, real) and (not self.roots)",
        test=f"{_CONTAINED}test_places_within_roots_are_resolved_and_no_others",
    ),
    Mutation(
        name="links within a root are not followed before it is asked",
        file="changemanager/containment.py",
        within="ResolverWithin.__call__",
        old="self._real_roots.has(place.volume, real)",
        new="self._real_roots.has(place.volume, place.path)",
        test=f"{_LOAD}test_a_link_within_the_places_does_not_lead_out",
    ),
    Mutation(
        name="a file system that only a dump names is connected to",
        file="changemanager/containment.py",
        within="ResolverWithin.__call__",
        old="parsed.server not in self._real_roots.servers",
        new="not self._real_roots.servers",
        test=f"{_LOAD}test_no_host_that_only_a_dump_names_is_connected_to",
    ),
    Mutation(
        name="a directory that became a link is followed as a file is opened",
        file="changemanager/filesystem/local.py",
        within="",
        old="os.O_DIRECTORY | os.O_NOFOLLOW",
        new="os.O_DIRECTORY",
        test=f"{_CONTAINED}test_a_link_that_comes_after_the_look_is_not_followed",
    ),
    Mutation(
        name="a file that became a link is followed as it is opened",
        file="changemanager/filesystem/local.py",
        within="",
        old="os.O_RDONLY | os.O_NOFOLLOW",
        new="os.O_RDONLY",
        test=f"{_CONTAINED}test_a_link_that_comes_after_the_look_is_not_followed",
    ),
    Mutation(
        name="what became a pipe is read",
        file="changemanager/filesystem/local.py",
        within="_open_without_links",
        old="not S_ISREG(os.fstat(opened).st_mode)",
        new="S_ISDIR(os.fstat(opened).st_mode)",
        test=f"{_CONTAINED}test_what_is_no_plain_file_any_more_is_not_waited_for",
    ),
    Mutation(
        name="an archive is believed because the dump names it",
        file="hms_bridge/repl/load/source_roots.py",
        within="plan_roots",
        old="is_cm_enough and is_archived and refused[file.cmroot or ''] is None",
        new="is_cm_enough and is_archived",
        test=f"{_ROOTS}test_a_file_that_only_its_archive_may_give_is_not_looked_for_elsewhere",
    ),
    Mutation(
        name="directories of external tables are not judged",
        file="hms_bridge/repl/load/source_roots.py",
        within="plan_roots",
        old="outside(directory.source)",
        new="outside(directory.source) if files is None else None",
        test=f"{_ROOTS}test_directories_of_external_tables_are_judged",
    ),
    Mutation(
        name="a load goes on outside of its roots",
        file="hms_bridge/repl/load/admission.py",
        within="Admission.roots",
        old=("if plan.refused:\n    ..."),
        new=("if plan.refused and named:\n    ..."),
        test=f"{_ROOTS}test_who_calls_the_library_names_places_too",
    ),
    Mutation(
        name="what is noted counts beside what is named",
        file="hms_bridge/repl/load/admission.py",
        within="Admission._named",
        old="request.roots or self.note is None",
        new="self.note is None",
        test=f"{_ROOTS}test_places_that_are_named_count_alone",
    ),
    Mutation(
        name="a dump is trusted without a word",
        file="hms_bridge/repl/load/admission.py",
        within="Admission.roots",
        old="request.is_origin_trusted",
        new="not request.roots",
        test=f"{_ROOTS}test_a_replica_of_an_earlier_version_is_asked_once",
    ),
    Mutation(
        name="a root within another is one of its own",
        file="hms_bridge/repl/load/source_roots.py",
        within="outermost",
        old="all((path_below(root, upper) is None for upper in kept))",
        new="root not in kept",
        test=f"{_ROOTS}test_a_root_within_another_says_nothing_of_its_own",
    ),
    Mutation(
        name="the copy reads what the plan did not allow",
        file="hms_bridge/repl/load/repl_load.py",
        within="ReplLoad._copier",
        old=("Copier(sources, self._copied.add, check_lease, throttle(bandwidth, self._clock))"),
        new=(
            "Copier(self._resolve, self._copied.add, check_lease, throttle(bandwidth, self._clock))"
        ),
        test=f"{_ROOTS}test_a_link_that_comes_after_the_plan_is_not_followed",
    ),
    Mutation(
        name="a dump of ours that lost its manifest is taken for Hive's",
        file="hms_bridge/repl/load/planner.py",
        within="LoadPlanner.plan",
        old="not request.is_from_hive",
        new="request.is_from_hive",
        test=f"{_LOAD}test_a_dump_without_manifest_is_of_hive_only_if_somebody_says_so",
    ),
    Mutation(
        name="a link in place of a directory of a dump is passed over",
        file="hms_bridge/repl/format/texts.py",
        within="child_directories",
        old="FileKind.LINK",
        new="FileKind.OTHER",
        test=f"{_LOAD}test_a_link_for_a_tables_directory_does_not_lose_the_table",
    ),
)
