"""Mutations of what copies and drills; read by way of `mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_DRILL = "tests/repl/test_drill.py::"
_COPY = "tests/repl/test_copy_engine.py::"
_POOL = "tests/repl/test_copy_pool.py::"
_JOB = "tests/repl/test_copy_distributed.py::"

OF_COPIES = (
    Mutation(
        name="a drill moves the pin that the next dump needs",
        file="hms_bridge/repl/pins.py",
        within="DumpPins.finish",
        old="self.manifest is None or self.is_apart",
        new="self.manifest is None",
        test=f"{_DRILL}test_a_bootstrap_is_made_where_the_chain_is_not_kept",
    ),
    Mutation(
        name="a drill takes a database of somebody for its own",
        file="hms_bridge/repl/drill/scratch.py",
        within="find_left_behind",
        old="database.parameters.get(DRILL)",
        new="database.parameters.get(DRILL, f'/dumps/{DIRECTORY}/c3Jj/token')",
        test=f"{_DRILL}test_a_database_of_somebody_is_never_taken",
    ),
    Mutation(
        name="a drill removes any directory that a database names",
        file="hms_bridge/repl/drill/scratch.py",
        within="find_left_behind",
        old="not is_place_of_drill(place)",
        new="False",
        test=f"{_DRILL}test_a_database_of_somebody_is_never_taken",
    ),
    Mutation(
        name="a scratch database forgets that a drill made it",
        file="hms_bridge/repl/target_objects.py",
        within="",
        old=("frozenset((*PROPERTIES, SUCCESSOR, BEGUN, WRITE_IDS_ABOVE)) - {LAST_EVENT}"),
        new="frozenset((*PROPERTIES, SUCCESSOR, BEGUN)) - {LAST_EVENT, DRILL}",
        test=f"{_DRILL}test_a_chain_that_is_kept_is_loaded_and_nothing_else_is_touched",
    ),
    Mutation(
        name="a drill that died keeps its pins",
        file="hms_bridge/repl/drill/repl_drill.py",
        within="ReplDrill._remove",
        old="pins.release_loaded((), database_directory(scratch.place, source))",
        new="",
        test=f"{_DRILL}test_a_bootstrap_is_made_where_the_chain_is_not_kept",
    ),
    Mutation(
        name="a drill marks the replication's own dumps as loaded",
        file="hms_bridge/repl/drill/repl_drill.py",
        within="ReplDrill._load",
        old=(
            "replace(plan.request.load, root=plan.scratch.place, "
            "target_database=plan.scratch.database, "
            "external_base=external_base(plan.scratch), "
            "functions_root=plan.request.load.functions_root and "
            "functions_root(plan.scratch))"
        ),
        new=(
            "replace(plan.request.load, target_database=plan.scratch.database, "
            "external_base=external_base(plan.scratch), "
            "functions_root=plan.request.load.functions_root and "
            "functions_root(plan.scratch))"
        ),
        test=f"{_DRILL}test_a_chain_that_is_kept_is_loaded_and_nothing_else_is_touched",
    ),
    Mutation(
        name="a copy is not compared with what its source should be",
        file="changemanager/transfer.py",
        within="copy_verified",
        old="reading.require(checksum)",
        new="",
        test=f"{_COPY}test_other_bytes_than_the_dump_names_get_no_name",
    ),
    Mutation(
        name="a copy is not compared with what was read",
        file="changemanager/transfer.py",
        within="copy_verified",
        old="_require_written(part, reading, checksum)",
        new="",
        test=f"{_COPY}test_what_was_written_is_what_was_read",
    ),
    Mutation(
        name="a file without checksum may change as it is copied",
        file="changemanager/transfer.py",
        within="copy_verified",
        old="before is not None and source.status() != before",
        new="False",
        test=f"{_COPY}test_a_source_that_changes_as_it_is_read",
    ),
    Mutation(
        name="names that are used again are believed",
        file="hms_bridge/repl/format/verify.py",
        within="Reading.is_asked",
        old="DirectoryName.parse(file.sub_directory.partition('/')[0]) is None",
        new="False",
        test=f"{_COPY}test_which_files_are_read_before_anything_is_changed",
    ),
    Mutation(
        name="what a merge cannot have taken counts as merged",
        file="hms_bridge/repl/at_target.py",
        within="_cover",
        old=("there.is_base and (wanted is None or there.max_write_id >= wanted.max_write_id)"),
        new="there.is_base",
        test="tests/repl/test_at_target.py::test_why_a_file_is_absent",
    ),
    Mutation(
        name="a table is whole before its files are there",
        file="hms_bridge/repl/load/copy.py",
        within="_WaitingGroup.has_one_more",
        old=("if not self._missing:\n    self._group.publish()"),
        new="self._group.publish()",
        test=f"{_POOL}test_a_slow_file_of_one_table_holds_up_no_other",
    ),
    Mutation(
        name="a table is published before a loss of power could not take its files",
        file="hms_bridge/repl/load/copy.py",
        within="TargetDirectory.has_one_more",
        old="not self._missing",
        new="False",
        test=f"{_POOL}test_names_are_on_the_disk_when_a_group_is_published",
    ),
    Mutation(
        name="half of another load's file gets the name",
        file="hms_bridge/repl/load/file_copy.py",
        within="_part_name",
        old="str(uuid4())",
        new="'the-same'",
        test=f"{_POOL}test_one_that_lost_its_lease_gives_no_name_to_another_ones_half",
    ),
    Mutation(
        name="files that wait to be copied grow with their number",
        file="hms_bridge/repl/file_pool.py",
        within="FilePool.as_done",
        old="len(waiting) >= _AHEAD or not done.empty()",
        new="not done.empty()",
        test=f"{_POOL}test_groups_are_taken_as_they_are_needed",
    ),
    Mutation(
        name="a table is whole when its first partitions are",
        file="hms_bridge/repl/load/whole_tables.py",
        within="_TableLoad._publish",
        old=("if self._missing:\n    ..."),
        new="",
        test=f"{_POOL}test_a_table_is_whole_with_its_last_partitions",
    ),
    Mutation(
        name="a job is believed that a file is there",
        file="hms_bridge/repl/load/distributed.py",
        within="DistributedCopier._require_there",
        old=("if lacking:\n    ..."),
        new=("if False:\n    ..."),
        test=f"{_JOB}test_what_was_told_of_must_be_there",
    ),
    Mutation(
        name="a file of which a job told nothing counts as copied",
        file="hms_bridge/repl/load/distributed.py",
        within="checked",
        old="copied_one.error is None and copied_one.report.files != 1",
        new="False",
        test=f"{_JOB}test_each_file_is_told_of_once",
    ),
    Mutation(
        name="directories of external tables that lie in each other are copied side by side",
        file="hms_bridge/repl/load/external.py",
        within="copy_external.groups",
        old="_outermost(directories)",
        new="directories",
        test="tests/repl/test_copy_pool.py::"
        "test_directories_that_external_tables_share_are_copied_once",
    ),
    Mutation(
        name="a file that only a job's hosts do not see counts as lost",
        file="hms_bridge/repl/load/distributed.py",
        within="_raise",
        old="(file.uri for file in missing if is_lost(file))",
        new="(file.uri for file in missing)",
        test=f"{_JOB}test_what_only_the_jobs_hosts_do_not_see_is_not_lost",
    ),
    Mutation(
        name="the job of a load that lost its lease goes on",
        file="hms_bridge/repl/load/distributed.py",
        within="DistributedCopier._copy_by_job.while_waiting",
        old="self.before_each()",
        new="",
        test=f"{_JOB}test_a_load_that_lost_its_lease_ends_its_job",
    ),
    Mutation(
        name="each task of a job has the whole bandwidth",
        file="hms_bridge/repl/load/distributed.py",
        within="DistributedCopier._copy_by_job",
        old="max(1, self.bandwidth // at_once)",
        new="self.bandwidth",
        test=f"{_JOB}test_processes_share_a_bandwidth",
    ),
)
