"""Protective lines of what others write and we read; see :mod:`tests.simulation.mutations`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_IDS = "tests/model/test_valid_ids.py::"
_LISTING = "tests/acid/test_listing.py::"
_NAMES = "tests/model/test_partition_name.py::"
_NOTIFICATIONS = "tests/service/test_write_notifications.py::"
_ROWS = "tests/txn/test_unreadable_rows.py::"
_RANGES = "tests/server/test_txn_list_ranges.py::"

OF_FOREIGN_TEXTS = (
    Mutation(
        name="of a range of open transactions only the first is open",
        file="hms_bridge/model/valid_ids.py",
        within="_ranges",
        old="last if first else item",
        new="first or item",
        test=f"{_RANGES}test_seven_open_and_seven_aborted_in_a_row_are_read",
    ),
    Mutation(
        name="a range bounds nothing by its lowest open id",
        file="hms_bridge/model/valid_ids.py",
        within="_ValidIds.__post_init__",
        old=("if self.open_ids:\n    ..."),
        new=("if False:\n    ..."),
        test=f"{_IDS}test_ranges_mean_their_ids",
    ),
    Mutation(
        name="an id in an open and an aborted range is final",
        file="hms_bridge/model/valid_ids.py",
        within="_ValidIds.is_aborted",
        old="_contains(self.aborted_ids, number) and (not self.is_open(number))",
        new="_contains(self.aborted_ids, number)",
        test=f"{_IDS}test_ranges_mean_their_ids",
    ),
    Mutation(
        name="a transaction in an open and an aborted range is final",
        file="hms_bridge/txn/valid_write_ids.py",
        within="judge",
        old="txn_id in were_aborted and txn_id not in not_ended",
        new="txn_id in were_aborted",
        test=f"{_RANGES}test_a_text_of_a_stranger_costs_no_more_than_its_length",
    ),
    Mutation(
        name="files of a neighbour whose name begins alike are recorded with a partition",
        file="hms_bridge/service/notifications.py",
        within="NotificationVerbs._own_files",
        old="(text for index, text in enumerate(texts) if index not in others)",
        new="(text for index, text in enumerate(texts))",
        test=f"{_NOTIFICATIONS}test_of_a_neighbour_whose_name_begins_alike_nothing_is_recorded",
    ),
    Mutation(
        name="a write names any file",
        file="hms_bridge/service/notifications.py",
        within="NotificationVerbs._own_files",
        old=("partition is None or own is None or (not file.path.startswith(own.path))"),
        new="partition is None or own is None",
        test=f"{_NOTIFICATIONS}test_a_file_of_no_such_neighbour_is_refused",
    ),
    Mutation(
        name="a worker takes an entry that it cannot read",
        file="hms_bridge/txn/compaction_queue.py",
        within="find_next_compaction",
        old="is_readable(dict(zip(_CANDIDATE_NAMES, row, strict=True)))",
        new="dict(zip(_CANDIDATE_NAMES, row, strict=True))",
        test=f"{_ROWS}test_workers_take_the_next_entry",
    ),
    Mutation(
        name="entries that cannot be read hide those behind them",
        file="hms_bridge/txn/compaction_queue.py",
        within="find_next_compaction",
        old=("after = candidate\ncontinue"),
        new="return None",
        test=f"{_ROWS}test_workers_take_the_next_entry",
    ),
    Mutation(
        name="the cleaner takes an entry that cannot be read",
        file="hms_bridge/txn/cleaning.py",
        within="find_ready_to_clean",
        old="filter(is_readable, rows)",
        new="rows",
        test=f"{_ROWS}test_the_cleaner_takes_others_and_leaves_it",
    ),
    Mutation(
        name="an entry that cannot be read is settled as a compaction",
        file="hms_bridge/txn/housekeeping.py",
        within="settle_compactions",
        old="filter(is_readable, rows)",
        new="rows",
        test=f"{_ROWS}test_what_is_not_known_to_be_a_compaction_is_not_settled",
    ),
    Mutation(
        name="a transaction in a strange state does not count as open",
        file="hms_bridge/txn/txn_state.py",
        within="state_of",
        old="TxnState.OPEN",
        new="TxnState.COMMITTED",
        test=f"{_ROWS}test_a_transaction_in_a_state_that_is_not_known_counts_as_open",
    ),
    Mutation(
        name="a transaction of a strange kind counts as a reader alone",
        file="hms_bridge/txn/txn_state.py",
        within="kind_of",
        old="TxnType.DEFAULT",
        new="TxnType.READ_ONLY",
        test=f"{_ROWS}test_a_transaction_of_a_kind_that_is_not_known_stops_nobody",
    ),
    Mutation(
        name="a list whose high watermark or lowest open id lacks is read",
        file="hms_bridge/model/valid_ids.py",
        within="_number",
        old="if not _NUMBER.fullmatch(part):\n    ...",
        new="if not part:\n    return MAX_ID",
        test=f"{_IDS}test_what_lacks_a_number_is_not_everything",
    ),
    Mutation(
        name="what stands between commas is read as Python reads it",
        file="hms_bridge/model/valid_ids.py",
        within="_items",
        old="if not shape.fullmatch(part):\n    ...",
        new="if False:\n    ...",
        test=f"{_IDS}test_what_lacks_a_number_is_not_everything",
    ),
    Mutation(
        name="files of a directory on which Hive fails are originals",
        file="hms_bridge/acid/listing.py",
        within="_Sorter._is_original",
        old="is_named_like_directory(part)",
        new="False",
        test=f"{_LISTING}test_no_originals_lie_where_hive_fails",
    ),
    Mutation(
        name="a partition name without a value is that of the default partition",
        file="hms_bridge/model/partition_name.py",
        within="parse_partition_name",
        old="not separator or not key or (not value)",
        new="not separator or not key",
        test=f"{_NAMES}test_a_name_has_key_and_value_at_each_level",
    ),
)
