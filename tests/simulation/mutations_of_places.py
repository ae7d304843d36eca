"""Mutations of where a metastore and what belongs to it is looked for; read by way of
`mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_RELATIVE = "tests/cli/test_relative_places.py::"

OF_PLACES = (
    Mutation(
        name="relative places are of the folder where a verb is typed",
        file="hms_bridge/service/relative_places.py",
        within="folder_of",
        old="beside if is_new else noted",
        new="None",
        test=f"{_RELATIVE}test_a_cleaner_typed_elsewhere_archives_where_a_load_looks",
    ),
    Mutation(
        name="an older database is taken for a new one: its places are of another folder",
        file="hms_bridge/service/relative_places.py",
        within="folder_of",
        old="beside if is_new else noted",
        new="noted or beside",
        test=f"{_RELATIVE}test_an_older_database_that_no_server_opened_is_as_it_was",
    ),
    Mutation(
        name="a load takes the replica's folder for that of its source's archive",
        file="hms_bridge/cli/origin_options.py",
        within="asked_source",
        old="places_of_source(source, at_source)",
        new="places_of_source(source, settings)",
        test=f"{_RELATIVE}test_a_load_reads_the_archive_of_the_source_that_is_named",
    ),
    Mutation(
        name="the folder of a server is not noted",
        file="hms_bridge/connect.py",
        within="LocalStore.note_folder",
        old="has_relative_places(self.settings)",
        new="not has_relative_places(self.settings)",
        test=f"{_RELATIVE}test_an_older_database_learns_its_folder_from_its_server",
    ),
    Mutation(
        name="a later folder takes the place of the noted one",
        file="hms_bridge/archive/base_folder.py",
        within="note_folder",
        old="noted_folder(connection) is None",
        new="True",
        test="tests/archive/test_base_folder.py::test_the_first_note_stays",
    ),
    Mutation(
        name="an older database's archive is looked for where a verb is typed",
        file="hms_bridge/connect.py",
        within="known_archive_root",
        old="here not in known",
        new="here in known",
        test=f"{_RELATIVE}test_an_older_databases_archive_is_not_mistaken",
    ),
    Mutation(
        name="sql makes an empty metastore wherever somebody is",
        file="hms_bridge/cli/sql.py",
        within="sql",
        old="connected(metastore_url, settings, is_created=False)",
        new="connected(metastore_url, settings, is_created=True)",
        test="tests/cli/test_bad_input.py::test_sql_makes_no_metastore",
    ),
)
