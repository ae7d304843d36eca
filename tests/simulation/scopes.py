"""Which tables a replication is of: what admins ask for, and what dumps say in the lines that Hive
reads."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hms_bridge.model.repl_scope import ReplScope
from tests.simulation.disk import SimulatedDisk
from tests.simulation.model import Tables


@dataclass(frozen=True)
class Patterns:
    """Of whole names of tables, by Python's engine, not by the product's. None: there is none."""

    included: str | None = None
    excluded: str | None = None

    def covers(self, table: str) -> bool:
        """Whether a table is replicated."""
        if self.included is not None and not _fits(self.included, table):
            return False
        return self.excluded is None or not _fits(self.excluded, table)

    def of(self, tables: Tables) -> Tables:
        """Those of them that are."""
        return {name: table for name, table in tables.items() if self.covers(name)}

    def scope(self, database: str) -> ReplScope:
        """As an admin types it."""
        quoted = [f"'{one}'" for one in (self.included, self.excluded) if one is not None]
        return ReplScope.parse(".".join((database, *quoted)))


ALL_TABLES = Patterns()
CHOICES = (
    ALL_TABLES,
    Patterns("t|q"),
    Patterns("[tqn]"),
    Patterns(".*", "m"),
    Patterns("T.*"),
    Patterns("[^q]"),
    Patterns("n|m|a|b"),
    Patterns("[a-z]", "t|a"),
    Patterns("none"),
)
"""Tables of the simulated source are called t, q, n, m, a and b, and renamed among these."""


@dataclass
class Wishes:
    """How admins replicate now. `patterns` None: nobody has ever said which tables. `is_limited`:
    some dump was to have a limit of events. `is_used`: any of it is, in this schedule."""

    patterns: Patterns | None = None
    event_limit: int | None = None
    is_previous_kept: bool = False
    is_drop_allowed: bool = False
    is_limited: bool = False
    is_used: bool = False

    def scope(self, database: str) -> ReplScope | None:
        """What a dump is asked for."""
        return None if self.patterns is None else self.patterns.scope(database)


def patterns_of_dump(disk: SimulatedDisk, directory: str) -> Patterns:
    """What a finished dump says in the second line of Hive's `_dumpmetadata`."""
    path = f"{directory.removeprefix('file:')}/hive/_dumpmetadata"
    lines = disk.file(path).data.decode().splitlines()
    _, *patterns = lines[1].split("\t") if len(lines) > 1 else [""]
    return Patterns(*patterns)


def last_event_of_dump(disk: SimulatedDisk, directory: str) -> int:
    """Where a replica stands that has loaded it, by the first line of `_dumpmetadata`."""
    path = f"{directory.removeprefix('file:')}/hive/_dumpmetadata"
    kind, first, last, *_ = disk.file(path).data.decode().split("\t")
    return int(first if kind == "BOOTSTRAP" else last)


def _fits(pattern: str, name: str) -> bool:
    return re.fullmatch(pattern, name, re.IGNORECASE) is not None
