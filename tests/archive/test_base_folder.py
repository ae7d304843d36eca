"""The folder of relative places, as the database keeps it."""

from __future__ import annotations

from hms_bridge.archive.base_folder import note_folder, noted_folder
from tests.support.databases import fresh_database


def test_the_first_note_stays() -> None:
    with fresh_database() as database:
        with database.transaction(write=True) as connection:
            assert noted_folder(connection) is None
            note_folder(connection, "/srv/hive")
            note_folder(connection, "/home/somebody")
        with database.transaction(write=False) as connection:
            assert noted_folder(connection) == "/srv/hive"
