"""Mutations of how dumps find out what a write did; read by way of `mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_EDGES = "tests/repl/test_edges.py::test_"
_EMPTIED = f"{_EDGES}a_partition_that_was_overwritten_with_nothing_and_renamed_is_empty"

OF_WRITES = (
    Mutation(
        name="what was emptied is looked for under the name that the partition had",
        file="hms_bridge/repl/dump/unreported_writes.py",
        within="UnreportedWrites.is_emptied",
        old=(
            "self._partition_changes.key_at(name, "
            "partition_key(write.partition), since=commit.id, until=until)"
        ),
        new=(
            "self._partition_changes.key_at(name, "
            "partition_key(write.partition), since=until, until=until)"
        ),
        test=_EMPTIED,
    ),
    Mutation(
        name="what was emptied under an earlier name, and is not found, counts as untouched",
        file="hms_bridge/repl/dump/unreported_writes.py",
        within="UnreportedWrites.is_emptied",
        old=(
            "before, after = (self._partition_changes.key_at(name, "
            "partition_key(write.partition), since=commit.id, until=until) for "
            "until in (listing.after, listing.until))\n"
            "if after is None:\n"
            "    return False"
        ),
        new=(
            "before, after = (self._partition_changes.key_at(name, "
            "partition_key(write.partition), since=until, until=until) for "
            "until in (listing.after, listing.until))\n"
            "if listing.writes.emptied(after, write.write_id) is None:\n"
            "    return False"
        ),
        test=_EMPTIED,
    ),
    Mutation(
        name="a directory that is not there says that nothing was overwritten",
        file="hms_bridge/repl/dump/table_writes.py",
        within="TableWrites.emptied",
        old="place is None or not place.is_there",
        new="place is None",
        test=f"{_EDGES}an_overwrite_with_nothing_in_a_directory_that_is_not_there_stops_the_dump",
    ),
    Mutation(
        name="a base that is taken away while it is read counts as empty",
        file="hms_bridge/repl/dump/table_writes.py",
        within="TableWrites._overwritten",
        old="not self._is_whole(place, base)",
        new="False",
        test=f"{_EDGES}a_base_that_is_taken_away_while_it_is_read_is_not_taken_for_empty",
    ),
    Mutation(
        name="a write that nobody reported is dumped under the later name of its partition",
        file="hms_bridge/repl/dump/partition_changes.py",
        within="PartitionChanges.key_before",
        old="key = change.key",
        new="pass",
        test=f"{_EDGES}rows_of_a_partition_that_was_renamed_since_come_along",
    ),
    Mutation(
        name="directories of added partitions are not brought to the disk",
        file="hms_bridge/service/directories.py",
        within="Directories.make_all",
        old="sorted(changed.values(), key=lambda place: len(place.path))",
        new="()",
        test="tests/service/test_made_directories.py::test_they_are_on_the_disk",
    ),
)
