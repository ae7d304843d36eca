"""Two sides of a table, as they were found, and what a comparison says of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from hms_bridge.acid.names import DirectoryName
from hms_bridge.model.ids import EventId, WriteId
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.repl.compare.definitions import Definition
from hms_bridge.rows.row_sum import SeenRows


class Verdict(Enum):
    """What a finding is; the value is what programs read."""

    EQUAL = "equal"
    DIFFERENT = "different"
    UNDECIDED = "undecided"
    LAID_OUT = "laid out differently"
    NOT_COMPARED = "not compared"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One line of a comparison. ``table`` None: of the database, or of a function; ``partition``
    None: of the table. ``source`` and ``replica``: what each side has, None where it has nothing of
    the kind or that says nothing. ``why`` explains all but differences."""

    verdict: Verdict
    table: str | None = None
    partition: str | None = None
    what: str
    source: str | None = None
    replica: str | None = None
    why: str = ""


def different(
    what: str, source: str | None, replica: str | None, table: str | None = None
) -> Finding:
    """A difference between both sides of a table, or of the database."""
    return Finding(
        verdict=Verdict.DIFFERENT, table=table, what=what, source=source, replica=replica
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundDirectory:
    """A base or delta that a snapshot reads. ``name`` is without a compaction's transaction.
    ``is_compacted``: a compactor may have made it; ``is_own``: certainly, and here, as what a load
    copies loses that transaction. ``is_ahead``: it may hold nothing but rows that are not seen yet.
    """

    name: DirectoryName
    is_compacted: bool = False
    is_own: bool = False
    is_ahead: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundFile:
    """A file that a snapshot reads. ``path`` is relative to the table or partition, with the
    directory's ``name``; ``directory`` None: at the root, or in a table without transactions.
    ``checksum`` None: not asked for."""

    path: str
    size_bytes: int
    directory: FoundDirectory | None = None
    checksum: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundFiles:
    """What a snapshot reads of one place; ``directories`` may be without files."""

    files: tuple[FoundFile, ...]
    directories: tuple[FoundDirectory, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class DescribedPlace:
    """What is in the directory of a table or partition. ``found`` None: not looked at; ``rows``
    None: not read; ``fault``: why what is there cannot be read, ``unread``: why it was not.
    ``strays``: paths of files that no reader of ACID tables opens. ``statistics``: of its columns;
    none if they are not asked for."""

    definition: Definition = field(default_factory=dict)
    found: FoundFiles | None = None
    rows: SeenRows | None = None
    fault: str = ""
    unread: str = ""
    strays: tuple[str, ...] = ()
    statistics: Definition = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class DescribedTable:
    """One side of a table. ``places``: by partition name, "" for a table without partitions.
    ``write_ids`` None: it has no transactions, or only its definition is compared.
    ``constraints``: by name, as the target's database would have them."""

    definition: Definition
    constraints: Definition = field(default_factory=dict)
    write_ids: ValidWriteIdList | None = None
    places: Mapping[str, DescribedPlace] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Circumstances:
    """What else decides. ``changed_partitions``: what the source did after the common event to
    partitions, by name. ``forgotten``: write ids of which the side that shows them may not know
    any more whether they were committed. ``excused``: constraints that may differ, by name, what
    that makes of them, and why. ``changed_statistics``: what the source did since to those of the
    table's columns."""

    changed_partitions: Mapping[str, str] = field(default_factory=dict)
    excused: Mapping[str, tuple[Verdict, str]] = field(default_factory=dict)
    forgotten: frozenset[WriteId] = frozenset()
    changed_statistics: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """How much was found equal or not, in numbers: of what the source has. Of the same rows the
    replica may have other files, where a side has compacted."""

    tables: int = 0
    partitions: int = 0
    files: int = 0
    rows: int = 0
    constraints: int = 0
    functions: int = 0

    def __add__(self, other: Compared) -> Compared:
        return Compared(
            tables=self.tables + other.tables,
            partitions=self.partitions + other.partitions,
            files=self.files + other.files,
            rows=self.rows + other.rows,
            constraints=self.constraints + other.constraints,
            functions=self.functions + other.functions,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class CompareReport:
    """The verdict on a replica. ``event_id``: the source's event at which both were compared at
    last; ``source_event_id``: the source's newest. ``scope``: the tables that the replica is to
    have."""

    source_database: str
    target_database: str
    event_id: EventId
    source_event_id: EventId
    findings: tuple[Finding, ...]
    compared: Compared
    scope: ReplScope

    def of(self, verdict: Verdict) -> tuple[Finding, ...]:
        """All findings of a kind."""
        return tuple(finding for finding in self.findings if finding.verdict is verdict)

    @property
    def exit_code(self) -> int:
        """2 for a difference; else 3 if something can be decided only later; else 0."""
        if self.of(Verdict.DIFFERENT):
            return 2
        return 3 if self.of(Verdict.UNDECIDED) else 0
