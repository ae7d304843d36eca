"""Protective lines of what others write and we read; see :mod:`tests.simulation.mutations`."""

from __future__ import annotations

from tests.simulation.mutation import Mutation

_IDS = "tests/model/test_valid_ids.py::"
_NOTIFICATIONS = "tests/service/test_write_notifications.py::"
_RANGES = "tests/server/test_txn_list_ranges.py::"

OF_FOREIGN_TEXTS = (
    Mutation(
        name="of a range of open transactions only the first is open",
        file="hms_bridge/model/valid_ids.py",
        old="int(last if first else item)))\n",
        new="int(first or item)))\n",
        test=f"{_RANGES}test_seven_open_and_seven_aborted_in_a_row_are_read",
    ),
    Mutation(
        name="a range bounds nothing by its lowest open id",
        file="hms_bridge/model/valid_ids.py",
        old="            if self.open_ids:\n",
        new="            if False:\n",
        test=f"{_IDS}test_ranges_mean_their_ids",
    ),
    Mutation(
        name="an id in an open and an aborted range is final",
        file="hms_bridge/model/valid_ids.py",
        old="_contains(self.aborted_ids, number) and not self.is_open(number)\n",
        new="_contains(self.aborted_ids, number)\n",
        test=f"{_IDS}test_ranges_mean_their_ids",
    ),
    Mutation(
        name="a transaction in an open and an aborted range is final",
        file="hms_bridge/txn/valid_write_ids.py",
        old="        if txn_id in were_aborted and txn_id not in not_ended:\n",
        new="        if txn_id in were_aborted:\n",
        test=f"{_RANGES}test_a_text_of_a_stranger_costs_no_more_than_its_length",
    ),
    Mutation(
        name="files of a neighbour whose name begins alike are recorded with a partition",
        file="hms_bridge/service/notifications.py",
        old="for index, text in enumerate(texts) if index not in others)\n",
        new="for index, text in enumerate(texts))\n",
        test=f"{_NOTIFICATIONS}test_of_a_neighbour_whose_name_begins_alike_nothing_is_recorded",
    ),
    Mutation(
        name="a write names any file",
        file="hms_bridge/service/notifications.py",
        old="        if partition is None or own is None or not path.startswith(own):\n",
        new="        if partition is None or own is None:\n",
        test=f"{_NOTIFICATIONS}test_a_file_of_no_such_neighbour_is_refused",
    ),
)
