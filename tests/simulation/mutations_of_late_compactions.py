"""Mutations of what keeps compactions of a dropped or renamed table from the next one there."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_TESTS = "tests/service/test_compactions_of_dropped_tables.py::"
_LATE = "hms_bridge/txn/late_compactions.py"
_WRITERS = "hms_bridge/txn/late_writers.py"
_TABLE = _TESTS + "test_it_shows_nothing_in_the_next_table"
_PARTITION = _TESTS + "test_it_shows_nothing_in_the_next_partition"

OF_LATE_COMPACTIONS = (
    Mutation(
        name="a compaction of a dropped table goes on",
        file=_LATE,
        within="end_compactions",
        old="ids",
        new="[]",
        test=_PARTITION,
    ),
    Mutation(
        name="dropping a partition ends the compactions of all others",
        file=_LATE,
        within="end_compactions",
        old="partitions is None or row.partition in partitions",
        new="True",
        test=_TESTS + "test_compactions_of_other_partitions_go_on",
    ),
    Mutation(
        name="nobody remembers who compacted a dropped table",
        file=_WRITERS,
        within="note_writers",
        old=(
            "[*work.connection.execute(_written(table).where(is_late)).all(), "
            "*compactions_of(work.connection, table, is_late)]"
        ),
        new="[*work.connection.execute(_written(table).where(is_late)).all()]",
        test=_TABLE,
    ),
    Mutation(
        name="the abort of a late compaction is forgotten at once",
        file="hms_bridge/txn/housekeeping.py",
        within="forget_txns",
        old=(
            "and_(~exists().where(TXN_COMPONENTS.c.TC_TXNID == _T.TXN_ID), "
            "~exists().where(MIN_HISTORY_WRITE_ID.c.MH_TXNID == _T.TXN_ID), "
            "~_is_late_compaction(_T.TXN_ID, _T.TXN_TYPE))"
        ),
        new=(
            "and_(~exists().where(TXN_COMPONENTS.c.TC_TXNID == _T.TXN_ID), "
            "~exists().where(MIN_HISTORY_WRITE_ID.c.MH_TXNID == _T.TXN_ID))"
        ),
        test=_TABLE,
    ),
    Mutation(
        name="no cleaner looks for what a late compaction brought to a new table",
        file=_WRITERS,
        within="take_over",
        old="give_to(connection, table, compactions)",
        new="",
        test=_TABLE,
    ),
    Mutation(
        name="no cleaner looks where a partition was before its aborts are forgotten",
        file="cleaner/handlers/aborted.py",
        within="AbortedHandler._clean_where_it_was",
        old="target.partition is None",
        new="True",
        test="tests/cleaner/test_late_writers.py::"
        "test_what_an_open_writer_brings_to_a_dropped_partition_goes_too",
    ),
    Mutation(
        name="what was aborted in a partition goes by its new name",
        file="hms_bridge/txn/resources.py",
        within="rename_partition",
        old="_widen_aborted(connection, here)",
        new="pass",
        test="tests/cleaner/test_late_writers.py::"
        "test_what_comes_late_to_where_a_partition_was_goes_before_it_is_forgotten",
    ),
    Mutation(
        name="a drop deletes what it saw before a compaction ended",
        file="hms_bridge/txn/write_ids.py",
        within="writers_of",
        old="frozenset((tuple(row) for row in compactions))",
        new="frozenset()",
        test=_TESTS + "test_one_that_ends_while_its_table_is_dropped_goes_too",
    ),
    Mutation(
        name="a table is made of what another one left there",
        file=_WRITERS,
        within="require_own",
        old="not is_own",
        new="False",
        test=_TESTS + "test_a_table_is_not_made_of_what_another_one_left",
    ),
    Mutation(
        name="a table is not made of what was written for it",
        file=_WRITERS,
        within="require_own",
        old="name.min_write_id in written and name.max_write_id in written",
        new="False",
        test=_TESTS + "test_a_table_is_made_of_what_was_written_for_it",
    ),
    Mutation(
        name="a late writer's place is known by one of its names only",
        file=_WRITERS,
        within="take_over",
        old="_L.LW_PLACE.in_(spellings(table.storage.location or ''))",
        new="_L.LW_PLACE == table.storage.location",
        test="tests/service/test_writers_of_dropped_tables.py::"
        "test_a_place_is_the_same_however_it_is_spelled",
    ),
)
