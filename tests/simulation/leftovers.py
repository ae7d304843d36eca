"""I13 of files: once all have had their time, nothing lies about that nobody will ever read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.simulation.disk import SimulatedDisk
from tests.simulation.plain_reader import View
from tests.simulation.side import Side
from tests.simulation.story import ViolationError

_DIRECTORY = re.compile(
    r"(?:(?:delete_)?delta_(?P<low>\d+)_(?P<high>\d+)|base_(?P<base>\d+))(?:_\d{4})?"
    r"(?:_v(?P<visibility>\d+))?"
)
LAST_CLEANING = ("keep_house", "clean_all", "keep_house", "clean_all", "keep_house")
"""What is done once all aborts may be forgotten."""
_COPIES = ("/a/", "/b/")
"""Made by those who adopt them, and may have died before."""
_LATE = "SELECT * FROM HMSB_LATE_WRITER"


def require_none(side: Side, disk: SimulatedDisk) -> None:
    """In the directory of the side's database. Raises ViolationError."""
    left = [*_unread(side, disk)]
    if left:
        raise ViolationError("I13", f"{side.name}: left for ever: {left}")
    late = side.raw.execute(_LATE).fetchall()
    if late:
        raise ViolationError("I13", f"{side.name}: remembered for ever: {late}")


def _unread(side: Side, disk: SimulatedDisk) -> Iterator[str]:
    tables = {place: table for table in side.table_ids() for place in side.places(table).values()}
    for below, _ in disk.files(side.directory):
        path = f"{side.directory}/{below}"
        directory, _, name = path.rpartition("/")
        place, _, directory = directory.rpartition("/")
        if not name.startswith("bucket_"):
            continue
        if path.removeprefix(side.directory).startswith(_COPIES) and place not in tables:
            continue
        if place not in tables or _is_aborted(directory, side.view(tables[place])):
            yield path


def _is_aborted(directory: str, view: View) -> bool:
    found = _DIRECTORY.fullmatch(directory)
    if found is None:
        return False
    if found["visibility"]:
        return int(found["visibility"]) in view.hidden_txns
    low, high = int(found["low"] or found["base"]), int(found["high"] or found["base"])
    return low == high and low in view.aborted
