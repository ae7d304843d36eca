"""Mutations of where a metastore and what belongs to it is looked for; read by way of
`mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_RELATIVE = "tests/cli/test_relative_places.py::"

OF_PLACES = (
    Mutation(
        name="relative places are of the folder where a verb is typed",
        file="hms_bridge/service/relative_places.py",
        old="    return beside if is_new else noted\n",
        new="    return None\n",
        test=f"{_RELATIVE}test_a_cleaner_typed_elsewhere_archives_where_a_load_looks",
    ),
    Mutation(
        name="an older database is taken for a new one: its places are of another folder",
        file="hms_bridge/service/relative_places.py",
        old="    return beside if is_new else noted\n",
        new="    return noted or beside\n",
        test=f"{_RELATIVE}test_an_older_database_that_no_server_opened_is_as_it_was",
    ),
    Mutation(
        name="a load takes the replica's folder for that of its source's archive",
        file="hms_bridge/cli/origin_options.py",
        old="        yield places_of_source(source, at_source)\n",
        new="        yield places_of_source(source, settings)\n",
        test=f"{_RELATIVE}test_a_load_reads_the_archive_of_the_source_that_is_named",
    ),
    Mutation(
        name="the folder of a server is not noted",
        file="hms_bridge/connect.py",
        old="        if has_relative_places(self.settings):\n",
        new="        if not has_relative_places(self.settings):\n",
        test=f"{_RELATIVE}test_an_older_database_learns_its_folder_from_its_server",
    ),
    Mutation(
        name="a later folder takes the place of the noted one",
        file="hms_bridge/archive/base_folder.py",
        old="    if noted_folder(connection) is None:\n",
        new="    if True:\n",
        test="tests/archive/test_base_folder.py::test_the_first_note_stays",
    ),
    Mutation(
        name="an older database's archive is looked for where a verb is typed",
        file="hms_bridge/connect.py",
        old="        if known and here not in known:\n",
        new="        if known and here in known:\n",
        test=f"{_RELATIVE}test_an_older_databases_archive_is_not_mistaken",
    ),
    Mutation(
        name="sql makes an empty metastore wherever somebody is",
        file="hms_bridge/cli/sql.py",
        old="settings, is_created=False)",
        new="settings, is_created=True)",
        test="tests/cli/test_bad_input.py::test_sql_makes_no_metastore",
    ),
)
