"""By what a table or partition is known again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetMark:
    """What shows that a target is still the same: its table's id and time, the directory of table
    or partition as it is stored, and whether its files are archived before they are deleted.

    ``moves``: directories of it that a rename is moving.
    """

    table_id: int
    create_time: int
    location: str
    is_replication_source: bool
    moves: tuple[str, ...] = ()
