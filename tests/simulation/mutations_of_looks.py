"""Mutations of what says where a look at a dump finds files; read by way of
`mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_LOOKS = "tests/cli/test_places_of_looks.py::"

OF_LOOKS = (
    Mutation(
        name="a look goes wherever a dump says",
        file="hms_bridge/repl/format/verify.py",
        within="verify_reader",
        old="resolve if sources_for is None else sources_for(reader, all_named)",
        new="resolve",
        test=f"{_LOOKS}test_verify_looks_nowhere_that_only_a_dump_names",
    ),
    Mutation(
        name="status goes wherever a dump says",
        file="hms_bridge/repl/status/repl_status.py",
        within="ReplStatus._archive_expiry",
        old="known.within",
        new="None",
        test=f"{_LOOKS}test_status_and_lag_look_nowhere_that_only_a_dump_names",
    ),
    Mutation(
        name="an archive that only a dump names is resolved to compare it",
        file="hms_bridge/repl/format/verify.py",
        within="verify_reader.look",
        old="_uri(places, cmroot)",
        new="_uri(resolve, cmroot)",
        test=f"{_LOOKS}test_verify_looks_nowhere_that_only_a_dump_names",
    ),
    Mutation(
        name="what nobody looked for is called lost",
        file="hms_bridge/repl/format/verify.py",
        within="_verdict",
        old="Whereabouts.NOT_LOOKED_FOR if located.outside else located.whereabouts",
        new="located.whereabouts",
        test=f"{_LOOKS}test_a_replica_before_its_first_load_is_not_red",
    ),
    Mutation(
        name="verify is content with what it did not look for",
        file="hms_bridge/repl/format/verify.py",
        within="VerifyReport.exit_code",
        old="self.unlooked",
        new="self.missing",
        test=f"{_LOOKS}test_verify_says_the_command_that_names_the_places",
    ),
    Mutation(
        name="a load goes on without what nobody looked for",
        file="hms_bridge/repl/format/verify.py",
        within="VerifyReport.require_complete",
        old="self.unfound",
        new="self.missing",
        test=f"{_LOOKS}test_a_load_does_not_go_on_without_what_nobody_looked_for",
    ),
    Mutation(
        name="an archive within hides that a source is to be asked for",
        file="hms_bridge/repl/load/source_roots.py",
        within="plan_roots",
        old="is_cm_enough and is_archived and refused[file.cmroot or ''] is None",
        new="is_archived and refused[file.cmroot or ''] is None",
        test=f"{_LOOKS}test_the_metastore_says_where_a_table_is_elsewhere",
    ),
)
