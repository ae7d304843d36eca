"""Whether a table or partition should be compacted, and how. No I/O.

First from what the metastore knows (:func:`decide_without_look`), then from its directory
(:func:`decide`). Source of the rules: Hive's Initiator and CompactorUtil (docs/hive/compaction.md
§13, §14); what a real Hive decided for six tables is in the tests. Aborted writes with directories
of their own are the cleaner's (hive.compactor.clean.aborts.using.cleaner, which is Hive 4's
default); only where they share a delta with other writes a compaction is needed to get rid of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from hms_bridge.acid.directory import AcidState
from hms_bridge.config.settings import CompactorSettings
from hms_bridge.errors import CompactionError
from hms_bridge.model.compaction import (
    Compaction,
    CompactionState,
    CompactionType,
    PotentialCompaction,
)
from hms_bridge.model.counted import counted
from hms_bridge.model.ids import WriteId
from hms_bridge.model.properties import (
    FIRST_INCREMENTAL_PENDING,
    NO_AUTO_COMPACTION,
    WORKER_POOL,
)
from hms_bridge.model.target import Target

_OVERRIDE = "compactorthreshold."
_DELTA_COUNT = f"{_OVERRIDE}hive.compactor.delta.num.threshold"
_DELTA_SHARE = f"{_OVERRIDE}hive.compactor.delta.pct.threshold"


class Verdict(Enum):
    """What the initiator does with a table or partition."""

    REQUEST = "request"
    NOTHING = "nothing"
    """It is well as it is."""
    LEFT_ALONE = "left alone"
    """It is not for the initiator: queued already, switched off, or of a kind nobody compacts."""
    BLOCKED = "blocked"
    """Its compactions fail, or it cannot be looked at: the history says so."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DirectorySizes:
    """What the decision looks at in a directory."""

    base_size_bytes: int
    delta_size_bytes: int
    delta_count: int

    @classmethod
    def of(cls, state: AcidState) -> DirectorySizes:
        """Of a snapshot: its base, or else its originals; its deltas and delete deltas."""
        base = state.base.size_bytes if state.base else sum(f.size_bytes for f in state.originals)
        return cls(
            base_size_bytes=base,
            delta_size_bytes=sum(delta.size_bytes for delta in state.deltas),
            delta_count=len(state.deltas),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class InitiatorDecision:
    """What becomes of one table or partition, and why. ``type`` is None unless it is requested."""

    target: Target
    verdict: Verdict
    reason: str
    type: CompactionType | None = None
    pool_name: str | None = None
    sizes: DirectorySizes | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class InitiatorPlan:
    """The decisions of one pass, made without changing anything."""

    decisions: tuple[InitiatorDecision, ...]

    @property
    def requests(self) -> tuple[InitiatorDecision, ...]:
        """Those that ask for a compaction."""
        return tuple(decision for decision in self.decisions if decision.verdict is Verdict.REQUEST)


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """What the metastore knows of a table or partition that may need a compaction.

    ``entries``: its queue entries and history. ``is_partitioned``: the table is.
    """

    potential: PotentialCompaction
    database_parameters: Mapping[str, str] = field(default_factory=dict)
    table_parameters: Mapping[str, str] = field(default_factory=dict)
    is_partitioned: bool = False
    entries: Sequence[Compaction] = ()

    def decided(
        self,
        verdict: Verdict,
        reason: str,
        kind: CompactionType | None = None,
        sizes: DirectorySizes | None = None,
    ) -> InitiatorDecision:
        """A decision about it."""
        return InitiatorDecision(
            target=self.potential.target,
            verdict=verdict,
            reason=reason,
            type=kind,
            pool_name=self._property(WORKER_POOL) or None,
            sizes=sizes,
        )

    def _property(self, name: str) -> str:
        return self.table_parameters.get(name) or self.database_parameters.get(name) or ""

    @property
    def is_switched_off(self) -> bool:
        """Whether the table or its database says ``no_auto_compaction=true``."""
        return any(
            key.lower() == NO_AUTO_COMPACTION and value.strip().lower() == "true"
            for parameters in (self.table_parameters, self.database_parameters)
            for key, value in parameters.items()
        )

    @property
    def is_being_replicated(self) -> bool:
        """Whether the database is a replica that no incremental load has reached yet."""
        return self.database_parameters.get(FIRST_INCREMENTAL_PENDING, "").lower() == "true"


def decide_without_look(
    candidate: Candidate, settings: CompactorSettings, now_ms: int
) -> InitiatorDecision | None:
    """What needs no look at the directory; None if one is needed."""
    busy = next((entry for entry in candidate.entries if _is_under_way(entry)), None)
    if busy is not None:
        return candidate.decided(
            Verdict.LEFT_ALONE, f"compaction {busy.id} is {busy.state.word} already"
        )
    if candidate.is_being_replicated:
        return candidate.decided(
            Verdict.LEFT_ALONE, "a replica whose first incremental load has not come yet"
        )
    if candidate.is_switched_off:
        return candidate.decided(Verdict.LEFT_ALONE, f"{NO_AUTO_COMPACTION} is true")
    if candidate.is_partitioned and candidate.potential.target.partition is None:
        return candidate.decided(
            Verdict.LEFT_ALONE, "written to as a whole; its partitions are looked at one by one"
        )
    failures = _failures_in_a_row(candidate.entries)
    if len(failures) >= settings.failed_compactions_threshold:
        newest_ms = failures[0].enqueued_ms or failures[0].ended_ms or 0
        if not settings.failed_retry_ms or newest_ms + settings.failed_retry_ms >= now_ms:
            return candidate.decided(
                Verdict.BLOCKED,
                f"its last {counted(len(failures), 'compaction')} failed, the last one with: "
                f"{failures[0].error_message or 'no message'}; find out why, then compact it by "
                "hand",
                failures[0].type,
            )
    return None


def decide(
    candidate: Candidate, state: AcidState, highest: WriteId, settings: CompactorSettings
) -> InitiatorDecision:
    """From the directory. ``state`` is the compactor's view of it, up to ``highest``.

    Raises CompactionError for a property of the table that is no number.
    """
    sizes = DirectorySizes.of(state)
    waiting = next((entry for entry in candidate.entries if _reached(entry, highest)), None)
    if waiting is not None:
        return candidate.decided(
            Verdict.LEFT_ALONE,
            f"compaction {waiting.id} took everything and waits for the cleaner",
            sizes=sizes,
        )
    kind, reason = _needed(candidate, state, sizes, settings)
    verdict = Verdict.NOTHING if kind is None else Verdict.REQUEST
    return candidate.decided(verdict, reason, kind, sizes)


def _needed(
    candidate: Candidate, state: AcidState, sizes: DirectorySizes, settings: CompactorSettings
) -> tuple[CompactionType | None, str]:
    potential = candidate.potential
    if state.has_uncompacted_aborts and potential.has_too_many_aborts:
        return CompactionType.MAJOR, "too many aborted writes share deltas with others"
    if state.has_uncompacted_aborts and potential.has_old_abort and sizes.delta_count > 1:
        return CompactionType.MINOR, "an old aborted write shares a delta with others"
    share_max = _override(candidate, _DELTA_SHARE, settings.delta_share_threshold, float)
    count_max = _override(candidate, _DELTA_COUNT, settings.delta_count_threshold, int)
    if sizes.base_size_bytes:
        share = sizes.delta_size_bytes / sizes.base_size_bytes
        if share > share_max:
            return (
                CompactionType.MAJOR,
                f"deltas are {share:.0%} of the base, more than {share_max:.0%}",
            )
    if not sizes.delta_size_bytes and _has_obsolete_base(state):
        return CompactionType.MAJOR, "an older base is left over for the cleaner"
    if sizes.delta_count <= count_max:
        return None, f"{sizes.delta_count} deltas, not more than {count_max:g}"
    if not sizes.base_size_bytes and sizes.delta_size_bytes:
        return CompactionType.MAJOR, f"{sizes.delta_count} deltas, more than {count_max:g}, no base"
    return CompactionType.MINOR, f"{sizes.delta_count} deltas, more than {count_max:g}"


def _override(
    candidate: Candidate, name: str, default: float, number: type[int] | type[float]
) -> float:
    text = candidate.table_parameters.get(name)
    if text is None:
        return default
    try:
        value = number(text)
    except ValueError:
        raise CompactionError(
            f"property {name} of the table is '{text}', which is no number; change or remove it"
        ) from None
    return value


def _has_obsolete_base(state: AcidState) -> bool:
    return any(
        shadowed.directory is not None and shadowed.directory.name.is_base
        for shadowed in state.obsolete
    )


def _is_under_way(entry: Compaction) -> bool:
    return entry.state in (CompactionState.INITIATED, CompactionState.WORKING)


def _reached(entry: Compaction, highest: WriteId) -> bool:
    """Whether it is compacted up to there and not cleaned: the queue would refuse another."""
    is_ready = entry.state is CompactionState.READY_FOR_CLEANING
    return is_ready and entry.highest_write_id == highest


def _failures_in_a_row(entries: Sequence[Compaction]) -> list[Compaction]:
    """Failed compactions since the last one that succeeded, newest first."""
    ended = [
        compaction
        for compaction in entries
        if compaction.state in (CompactionState.FAILED, CompactionState.SUCCEEDED)
    ]
    failures: list[Compaction] = []
    for compaction in sorted(ended, key=lambda entry: entry.id, reverse=True):
        if compaction.state is CompactionState.SUCCEEDED:
            break
        failures.append(compaction)
    return failures
