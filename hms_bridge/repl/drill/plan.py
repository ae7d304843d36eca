"""What a drill is asked for, what it will do, and what it found. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from hms_bridge.model.counted import counted
from hms_bridge.model.ids import EventId
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.repl.compare.described import CompareReport
from hms_bridge.repl.compare.table_comparison import Depth
from hms_bridge.repl.dump.plan import DumpRequest
from hms_bridge.repl.format.chain import Chain
from hms_bridge.repl.format.verify import VerifyReport
from hms_bridge.repl.load.plan import LoadRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class DrillRequest:
    """``dump`` and ``load`` as the replication itself makes them; of ``load`` neither root nor
    target counts. ``scratch_database``: what the drill makes in the target's metastore.
    ``is_kept``: it stays there afterwards, until the next drill."""

    dump: DumpRequest
    load: LoadRequest
    scratch_database: str
    depth: Depth = field(default_factory=Depth)
    is_kept: bool = False


class DrillKind(Enum):
    """What is loaded."""

    CHAIN = "chain"
    BOOTSTRAP = "bootstrap"


@dataclass(frozen=True, kw_only=True, slots=True)
class Scratch:
    """A database that a drill makes for itself, and the directory where it keeps its own dumps and
    data of external tables."""

    database: str
    place: str


@dataclass(frozen=True, kw_only=True, slots=True)
class DrillPlan:
    """``dumps`` are copied to the scratch place and loaded from there, oldest first; none: a
    bootstrap dump is made there. ``reason`` says why that. ``last_event_id``: where the newest dump
    of the replication ends, loaded or not; ``scope``: what that is of. ``left_behind``: of a drill
    that died, and goes first. ``file_count`` and ``byte_count`` are None where only the dump to be
    made will show."""

    kind: DrillKind
    reason: str
    request: DrillRequest
    scratch: Scratch
    dumps: tuple[str, ...]
    last_event_id: EventId
    scope: ReplScope
    file_count: int | None
    byte_count: int | None
    left_behind: Scratch | None


@dataclass(frozen=True, kw_only=True, slots=True)
class DrillReport:
    """What a drill found.

    ``rpo_seconds``: how old the oldest change of the source was that no finished dump had when the
    drill began, 0 if they had all; None where the event log does not reach back.
    ``rto_seconds``: from the first look at the dumps until all of them were loaded.
    ``dump_seconds``: None unless a dump was made for it.
    """

    plan: DrillPlan
    rpo_seconds: int | None
    rto_seconds: float
    dump_seconds: float | None
    compare_seconds: float
    dump_count: int
    event_count: int
    file_count: int
    byte_count: int
    compared: CompareReport


def plan_drill(
    request: DrillRequest,
    *,
    chain: Chain,
    verified: Sequence[VerifyReport],
    last_event_id: EventId,
    scope: ReplScope,
    scratch: Scratch,
    left_behind: Scratch | None,
) -> DrillPlan:
    """The chain if it is whole and every file that it names can be had, else a new bootstrap.
    ``verified``: the verdict on each dump of the chain, none for a broken one."""
    reason = chain.broken
    lost = [report for report in verified if report.unfound]
    if lost:
        missing = counted(len(lost[0].unfound), "file")
        reason = f"{missing} of {lost[0].directory} can be had no more (repl verify lists them)"
    is_chain = not reason
    return DrillPlan(
        kind=DrillKind.CHAIN if is_chain else DrillKind.BOOTSTRAP,
        reason="every dump since the last bootstrap is kept, with its files"
        if is_chain
        else reason,
        request=request,
        scratch=scratch,
        dumps=chain.directories if is_chain else (),
        last_event_id=last_event_id,
        scope=scope,
        file_count=sum(len(report.files) for report in verified) if is_chain else None,
        byte_count=sum(report.size_bytes for report in verified) if is_chain else None,
        left_behind=left_behind,
    )
