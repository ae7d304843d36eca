"""Mutations of what a client learns, and has made, of directories that it names; read by way of
`mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_LOCATIONS = "tests/service/test_locations_of_clients.py::"
_FILES = "hms_bridge/service/warehouse_files.py"

OF_LOCATIONS = (
    Mutation(
        name="a directory is made wherever a client names one",
        file=_FILES,
        within="WarehouseFiles._is_made_here",
        old="self._is_below_a_root(location)",
        new="location",
        test=f"{_LOCATIONS}test_a_table_tells_nothing_of_a_place_outside",
    ),
    Mutation(
        name="files are counted wherever a client names a directory",
        file=_FILES,
        within="WarehouseFiles.count",
        old=("if not self._is_below_a_root(location):\n    ..."),
        new="",
        test=f"{_LOCATIONS}test_a_table_tells_nothing_of_a_place_outside",
    ),
    Mutation(
        name="files are named to all wherever a client makes a table over them",
        file=_FILES,
        within="WarehouseFiles.references",
        old="not self._is_below_a_root(location)",
        new="False",
        test=f"{_LOCATIONS}test_a_table_tells_nothing_of_a_place_outside",
    ),
    Mutation(
        name="a replica lacks the files of a managed table outside",
        file=_FILES,
        within="WarehouseFiles.references",
        old="is_source",
        new="False",
        test=f"{_LOCATIONS}test_a_replica_would_lack_the_files_of_a_managed_table_outside",
    ),
    Mutation(
        name="a directory beside a root counts as below it",
        file="hms_bridge/service/directories.py",
        within="Directories.is_below_any",
        old=("(place.is_below(self._resolve(root)) for root in roots if is_below(uri, root))"),
        new="(place.parent and True for root in roots)",
        test=f"{_LOCATIONS}test_a_table_tells_nothing_of_a_place_outside",
    ),
    Mutation(
        name="a walk has no end",
        file="hms_bridge/service/directories.py",
        within="WalkLimit.of",
        old="number > self.names_max or time.monotonic() > until",
        new="False",
        test=f"{_LOCATIONS}test_what_is_too_much_is_unknown",
    ),
    Mutation(
        name="a drop lists without end where a client put a database",
        file=_FILES,
        within="WarehouseFiles.look",
        old="not is_known",
        new="is_known",
        test=f"{_LOCATIONS}test_a_drop_does_not_list_without_end_where_a_client_put_a_database",
    ),
    Mutation(
        name="files that a client names are copied into the archive",
        file=_FILES,
        within="WarehouseFiles.known_root",
        old="raise MetaError(_unread(location))",
        new="return location",
        test="tests/server/test_recycling.py::test_nor_is_what_a_client_gave_a_table_elsewhere",
    ),
    Mutation(
        name="statistics that nobody could count are trusted",
        file="hms_bridge/service/file_statistics.py",
        within="_with_trust",
        old="environment.get(STATISTICS_BY) != 'TASK'",
        new="environment.get(STATISTICS_BY) == 'USER'",
        test=f"{_LOCATIONS}test_a_table_tells_nothing_of_a_place_outside",
    ),
    Mutation(
        name="a truncation puts a base wherever a client names a directory",
        file="hms_bridge/service/truncations.py",
        within="TruncationVerbs._add_bases",
        old="self._roots_of",
        new="self._require_all_alone",
        test=f"{_LOCATIONS}test_nothing_is_put_into_a_directory_outside",
    ),
)
