"""What is told of one side: what it must show, who reads it, and what its last load promised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.simulation.definitions import Columns
from tests.simulation.model import Model, TableModel, Tables
from tests.simulation.plain_reader import Rows, View
from tests.simulation.scopes import ALL_TABLES, Patterns


@dataclass
class ViolationError(Exception):
    """An invariant does not hold."""

    invariant: str
    text: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.text}"


@dataclass
class OpenReader:
    """A snapshot that somebody reads by: what it must go on seeing, partition by partition."""

    txn_id: int
    table: str
    view: View
    rows: dict[str, Rows]
    places: dict[str, str]
    columns: Columns
    is_unsettled: bool = False


@dataclass
class Loaded:
    """What the replica must be since the last load that said OK: one of these, table by table."""

    choices: list[Tables]
    event_id: int
    patterns: Patterns = ALL_TABLES
    kept: frozenset[str] = frozenset()
    """Tables outside of the patterns of which the load has said that they stay: of a former source
    that a failback made a replica, no load made what had not changed."""

    @property
    def of_replica(self) -> list[Tables]:
        """What of them is replicated."""
        return [self.patterns.of(tables) for tables in self.choices]


@dataclass
class Story:
    """Of one side. `is_master`: what its clients commit counts, and nobody else changes it."""

    is_master: bool = False
    model: Model = field(default_factory=Model)
    readers: dict[int, OpenReader] = field(default_factory=dict)
    loaded: Loaded | None = None
    loads_begun: int = 0
    """How many loads have begun to change it; `loads_at_work`: and have not ended yet."""
    loads_at_work: int = 0
    bootstrap_end: int | None = None
    """When the last bootstrap of it ended."""
    on_moved: list[Callable[[str, str, str], None]] = field(default_factory=list)
    """Told of each partition that was renamed: table, old name, new one."""
    on_renamed: list[Callable[[str, str], None]] = field(default_factory=list)
    """Told of each table that was renamed: old name, new one."""
    dropped: dict[str, tuple[TableModel, View]] = field(default_factory=dict)
    """Tables as they were when they were dropped, and which write ids counted."""
    left_rows: dict[str, dict[str, Rows]] = field(default_factory=dict)
    """Of adopted tables: rows of partitions that nobody has registered yet. Whoever adds such a
    partition, also a writer, shows them."""
    last_event: int = -1
    seen_table_ids: set[int] = field(default_factory=set)
