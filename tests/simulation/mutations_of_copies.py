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
        old="        if self.manifest is None or self.is_apart:\n            return\n"
        "        since_ms",
        new="        if self.manifest is None:\n            return\n        since_ms",
        test=f"{_DRILL}test_a_bootstrap_is_made_where_the_chain_is_not_kept",
    ),
    Mutation(
        name="a drill takes a database of somebody for its own",
        file="hms_bridge/repl/drill/scratch.py",
        old="    place = database.parameters.get(DRILL)\n",
        new='    place = database.parameters.get(DRILL, f"/dumps/{DIRECTORY}/c3Jj/token")\n',
        test=f"{_DRILL}test_a_database_of_somebody_is_never_taken",
    ),
    Mutation(
        name="a drill removes any directory that a database names",
        file="hms_bridge/repl/drill/scratch.py",
        old="    if not is_place_of_drill(place):\n",
        new="    if False:\n",
        test=f"{_DRILL}test_a_database_of_somebody_is_never_taken",
    ),
    Mutation(
        name="a scratch database forgets that a drill made it",
        file="hms_bridge/repl/target_objects.py",
        old="SUCCESSOR, BEGUN, WRITE_IDS_ABOVE)) - {LAST_EVENT}\n",
        new="SUCCESSOR, BEGUN)) - {LAST_EVENT, DRILL}\n",
        test=f"{_DRILL}test_a_chain_that_is_kept_is_loaded_and_nothing_else_is_touched",
    ),
    Mutation(
        name="a drill that died keeps its pins",
        file="hms_bridge/repl/drill/repl_drill.py",
        old="        pins.release_loaded((), database_directory(scratch.place, source))\n",
        new="",
        test=f"{_DRILL}test_a_bootstrap_is_made_where_the_chain_is_not_kept",
    ),
    Mutation(
        name="a drill marks the replication's own dumps as loaded",
        file="hms_bridge/repl/drill/repl_drill.py",
        old="            root=plan.scratch.place,\n            target_database=",
        new="            target_database=",
        test=f"{_DRILL}test_a_chain_that_is_kept_is_loaded_and_nothing_else_is_touched",
    ),
    Mutation(
        name="a copy is not compared with what its source should be",
        file="changemanager/transfer.py",
        old="        reading.require(checksum)\n",
        new="",
        test=f"{_COPY}test_other_bytes_than_the_dump_names_get_no_name",
    ),
    Mutation(
        name="a copy is not compared with what was read",
        file="changemanager/transfer.py",
        old="        _require_written(part, reading, checksum)\n",
        new="",
        test=f"{_COPY}test_what_was_written_is_what_was_read",
    ),
    Mutation(
        name="a file without checksum may change as it is copied",
        file="changemanager/transfer.py",
        old="        if before is not None and source.status() != before:\n",
        new="        if False:\n",
        test=f"{_COPY}test_a_source_that_changes_as_it_is_read",
    ),
    Mutation(
        name="names that are used again are believed",
        file="hms_bridge/repl/format/verify.py",
        old='        return DirectoryName.parse(file.sub_directory.partition("/")[0]) is None\n',
        new="        return False\n",
        test=f"{_COPY}test_which_files_are_read_before_anything_is_changed",
    ),
    Mutation(
        name="what a merge cannot have taken counts as merged",
        file="hms_bridge/repl/at_target.py",
        old=" and (wanted is None or there.max_write_id >= wanted.max_write_id)",
        new="",
        test="tests/repl/test_at_target.py::test_why_a_file_is_absent",
    ),
    Mutation(
        name="a table is whole before its files are there",
        file="hms_bridge/repl/load/copy.py",
        old="        if not self._missing:\n            self._group.publish()\n",
        new="        self._group.publish()\n",
        test=f"{_POOL}test_a_slow_file_of_one_table_holds_up_no_other",
    ),
    Mutation(
        name="a table is published before a loss of power could not take its files",
        file="hms_bridge/repl/load/copy.py",
        old="            is_whole = not self._missing\n",
        new="            is_whole = False\n",
        test=f"{_POOL}test_names_are_on_the_disk_when_a_group_is_published",
    ),
    Mutation(
        name="half of another load's file gets the name",
        file="hms_bridge/repl/load/file_copy.py",
        old="    return str(uuid4())\n",
        new='    return "the-same"\n',
        test=f"{_POOL}test_one_that_lost_its_lease_gives_no_name_to_another_ones_half",
    ),
    Mutation(
        name="files that wait to be copied grow with their number",
        file="hms_bridge/repl/file_pool.py",
        old="                while len(waiting) >= _AHEAD or not done.empty():\n",
        new="                while not done.empty():\n",
        test=f"{_POOL}test_groups_are_taken_as_they_are_needed",
    ),
    Mutation(
        name="a table is whole when its first partitions are",
        file="hms_bridge/repl/load/whole_tables.py",
        old="        if self._missing:\n            return\n",
        new="",
        test=f"{_POOL}test_a_table_is_whole_with_its_last_partitions",
    ),
    Mutation(
        name="a job is believed that a file is there",
        file="hms_bridge/repl/load/distributed.py",
        old="        if lacking:\n",
        new="        if False:\n",
        test=f"{_JOB}test_what_was_told_of_must_be_there",
    ),
    Mutation(
        name="a file of which a job told nothing counts as copied",
        file="hms_bridge/repl/load/distributed.py",
        old="copied_one.error is None and copied_one.report.files != 1",
        new="False",
        test=f"{_JOB}test_each_file_is_told_of_once",
    ),
    Mutation(
        name="directories of external tables that lie in each other are copied side by side",
        file="hms_bridge/repl/load/external.py",
        old="        for directory in _outermost(directories):\n",
        new="        for directory in directories:\n",
        test="tests/repl/test_copy_pool.py::"
        "test_directories_that_external_tables_share_are_copied_once",
    ),
    Mutation(
        name="a file that only a job's hosts do not see counts as lost",
        file="hms_bridge/repl/load/distributed.py",
        old="    lost = tuple(file.uri for file in missing if is_lost(file))\n",
        new="    lost = tuple(file.uri for file in missing)\n",
        test=f"{_JOB}test_what_only_the_jobs_hosts_do_not_see_is_not_lost",
    ),
    Mutation(
        name="the job of a load that lost its lease goes on",
        file="hms_bridge/repl/load/distributed.py",
        old="            self.before_each()\n            reported += size_bytes\n",
        new="            reported += size_bytes\n",
        test=f"{_JOB}test_a_load_that_lost_its_lease_ends_its_job",
    ),
    Mutation(
        name="each task of a job has the whole bandwidth",
        file="hms_bridge/repl/load/distributed.py",
        old="max(1, self.bandwidth // at_once)",
        new="self.bandwidth",
        test=f"{_JOB}test_processes_share_a_bandwidth",
    ),
)
