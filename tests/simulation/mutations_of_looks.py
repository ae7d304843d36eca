"""Mutations of what says where a look at a dump finds files; read by way of
`mutations.MUTATIONS`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_LOOKS = "tests/cli/test_places_of_looks.py::"

OF_LOOKS = (
    Mutation(
        name="a look goes wherever a dump says",
        file="hms_bridge/repl/format/verify.py",
        old="(resolve if sources_for is None else sources_for(reader, all_named))\n",
        new="(resolve if sources_for is not None else resolve)\n",
        test=f"{_LOOKS}test_verify_looks_nowhere_that_only_a_dump_names",
    ),
    Mutation(
        name="status goes wherever a dump says",
        file="hms_bridge/repl/status/repl_status.py",
        old="            sources_for=known.within,\n",
        new="            sources_for=known.within if known.roots is None else None,\n",
        test=f"{_LOOKS}test_status_and_lag_look_nowhere_that_only_a_dump_names",
    ),
    Mutation(
        name="an archive that only a dump names is resolved to compare it",
        file="hms_bridge/repl/format/verify.py",
        old="cmroot is None or _uri(places, cmroot) == own\n",
        new="cmroot is None or _uri(resolve, cmroot) == own\n",
        test=f"{_LOOKS}test_verify_looks_nowhere_that_only_a_dump_names",
    ),
    Mutation(
        name="what nobody looked for is called lost",
        file="hms_bridge/repl/format/verify.py",
        old="Whereabouts.NOT_LOOKED_FOR if located.outside else",
        new="Whereabouts.NOT_LOOKED_FOR if located.location else",
        test=f"{_LOOKS}test_a_replica_before_its_first_load_is_not_red",
    ),
    Mutation(
        name="verify is content with what it did not look for",
        file="hms_bridge/repl/format/verify.py",
        old="        return 3 if self.unlooked else 0\n",
        new="        return 3 if self.missing else 0\n",
        test=f"{_LOOKS}test_verify_says_the_command_that_names_the_places",
    ),
    Mutation(
        name="a load goes on without what nobody looked for",
        file="hms_bridge/repl/format/verify.py",
        old="        lost = self.unfound\n",
        new="        lost = self.missing\n",
        test=f"{_LOOKS}test_a_load_does_not_go_on_without_what_nobody_looked_for",
    ),
    Mutation(
        name="an archive within hides that a source is to be asked for",
        file="hms_bridge/repl/load/source_roots.py",
        old="        if is_cm_enough and is_archived and",
        new="        if is_archived and",
        test=f"{_LOOKS}test_the_metastore_says_where_a_table_is_elsewhere",
    ),
)
