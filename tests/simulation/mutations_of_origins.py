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
        old="        if not self._real_roots.has(place.volume, real):\n",
        new="        if not self._real_roots.has(place.volume, real) and not self.roots:\n",
        test=f"{_CONTAINED}test_places_within_roots_are_resolved_and_no_others",
    ),
    Mutation(
        name="links within a root are not followed before it is asked",
        file="changemanager/containment.py",
        old="        if not self._real_roots.has(place.volume, real):\n",
        new="        if not self._real_roots.has(place.volume, place.path):\n",
        test=f"{_LOAD}test_a_link_within_the_places_does_not_lead_out",
    ),
    Mutation(
        name="a file system that only a dump names is connected to",
        file="changemanager/containment.py",
        old="        if parsed.scheme and parsed.server not in self._real_roots.servers:\n",
        new="        if parsed.scheme and not self._real_roots.servers:\n",
        test=f"{_LOAD}test_no_host_that_only_a_dump_names_is_connected_to",
    ),
    Mutation(
        name="a directory that became a link is followed as a file is opened",
        file="changemanager/filesystem/local.py",
        old='_DIRECTORY = os.O_DIRECTORY | os.O_NOFOLLOW | getattr(os, "O_PATH", os.O_RDONLY)\n',
        new='_DIRECTORY = os.O_DIRECTORY | getattr(os, "O_PATH", os.O_RDONLY)\n',
        test=f"{_CONTAINED}test_a_link_that_comes_after_the_look_is_not_followed",
    ),
    Mutation(
        name="a file that became a link is followed as it is opened",
        file="changemanager/filesystem/local.py",
        old="_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK\n",
        new="_FILE = os.O_RDONLY | os.O_NONBLOCK\n",
        test=f"{_CONTAINED}test_a_link_that_comes_after_the_look_is_not_followed",
    ),
    Mutation(
        name="what became a pipe is read",
        file="changemanager/filesystem/local.py",
        old="    if not S_ISREG(os.fstat(opened).st_mode):\n",
        new="    if S_ISDIR(os.fstat(opened).st_mode):\n",
        test=f"{_CONTAINED}test_what_is_no_plain_file_any_more_is_not_waited_for",
    ),
    Mutation(
        name="an archive is believed because the dump names it",
        file="hms_bridge/repl/load/source_roots.py",
        old='        if is_cm_enough and is_archived and refused[file.cmroot or ""] is None:\n',
        new="        if is_cm_enough and is_archived:\n",
        test=f"{_ROOTS}test_a_file_that_only_its_archive_may_give_is_not_looked_for_elsewhere",
    ),
    Mutation(
        name="directories of external tables are not judged",
        file="hms_bridge/repl/load/source_roots.py",
        old="        why = outside(directory.source)\n",
        new="        why = outside(directory.source) if files is None else None\n",
        test=f"{_ROOTS}test_directories_of_external_tables_are_judged",
    ),
    Mutation(
        name="a load goes on outside of its roots",
        file="hms_bridge/repl/load/admission.py",
        old="        if plan.refused:\n            raise self._refusal",
        new="        if plan.refused and named:\n            raise self._refusal",
        test=f"{_ROOTS}test_who_calls_the_library_names_places_too",
    ),
    Mutation(
        name="what is noted counts beside what is named",
        file="hms_bridge/repl/load/admission.py",
        old="        if request.roots or self.note is None:\n",
        new="        if self.note is None:\n",
        test=f"{_ROOTS}test_places_that_are_named_count_alone",
    ),
    Mutation(
        name="a dump is trusted without a word",
        file="hms_bridge/repl/load/admission.py",
        old="        if plan.refused and request.is_origin_trusted:\n",
        new="        if plan.refused and not request.roots:\n",
        test=f"{_ROOTS}test_a_replica_of_an_earlier_version_is_asked_once",
    ),
    Mutation(
        name="a root within another is one of its own",
        file="hms_bridge/repl/load/source_roots.py",
        old="        if all(path_below(root, upper) is None for upper in kept):\n",
        new="        if root not in kept:\n",
        test=f"{_ROOTS}test_a_root_within_another_says_nothing_of_its_own",
    ),
    Mutation(
        name="the copy reads what the plan did not allow",
        file="hms_bridge/repl/load/repl_load.py",
        old="        copier = Copier(sources, ",
        new="        copier = Copier(self._resolve, ",
        test=f"{_ROOTS}test_a_link_that_comes_after_the_plan_is_not_followed",
    ),
    Mutation(
        name="a dump of ours that lost its manifest is taken for Hive's",
        file="hms_bridge/repl/load/planner.py",
        old="        if not request.is_from_hive:\n",
        new="        if request.is_from_hive:\n",
        test=f"{_LOAD}test_a_dump_without_manifest_is_of_hive_only_if_somebody_says_so",
    ),
    Mutation(
        name="a link in place of a directory of a dump is passed over",
        file="hms_bridge/repl/format/texts.py",
        old="        if child.kind is FileKind.LINK:\n",
        new="        if child.kind is FileKind.OTHER:\n",
        test=f"{_LOAD}test_a_link_for_a_tables_directory_does_not_lose_the_table",
    ),
)
