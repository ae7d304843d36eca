"""The initiator: looks for tables and partitions to compact, and queues them.

A pass asks the metastore what was written to since it was compacted, looks at each such directory
and decides (compaction/initiator_plan.py). What did not change since the last look is not looked at
again, but for a pass now and then. Two initiators do no harm: the queue takes a target once.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from changemanager.errors import ChangeManagerError
from changemanager.location import Resolver
from hms_bridge.clock import Clock
from hms_bridge.compaction.initiator_plan import (
    Candidate,
    InitiatorDecision,
    InitiatorPlan,
    Verdict,
    decide,
    decide_without_look,
)
from hms_bridge.compaction.snapshot import take_snapshot
from hms_bridge.compaction.target import CompactionTarget, find_target
from hms_bridge.config.settings import CompactorSettings
from hms_bridge.errors import CompactionError, HmsBridgeError, NoSuchObjectError
from hms_bridge.metastore import LocalMetastore
from hms_bridge.model.catalog import Table
from hms_bridge.model.compaction import (
    NEVER_QUEUED,
    Compaction,
    CompactionRequest,
    CompactionState,
    CompactionType,
    PotentialCompaction,
    ShowCompactionsRequest,
)
from hms_bridge.model.ids import CompactionId, TxnId
from hms_bridge.model.target import Scope, TableName

_LOG = logging.getLogger(__name__)
_FULL_PASS_EVERY = 12
"""Of so many passes one looks at everything: write ids that were open may have been aborted."""
_MESSAGE_LENGTH_MAX = 2000


@dataclass(frozen=True, kw_only=True, slots=True)
class InitiatorOutcome:
    """What became of a decision that was to be carried out. ``id`` is that of the queue entry."""

    decision: InitiatorDecision
    id: CompactionId | None
    message: str


class Initiator:
    """Queues compactions. ``initiator_id`` and ``version`` stand in the queue."""

    def __init__(
        self,
        metastore: LocalMetastore,
        resolver: Resolver,
        settings: CompactorSettings,
        clock: Clock,
        *,
        initiator_id: str,
        version: str,
    ) -> None:
        self._metastore = metastore
        self._resolver = resolver
        self._settings = settings
        self._clock = clock
        self._initiator_id = initiator_id
        self._version = version
        self._settled: frozenset[PotentialCompaction] = frozenset()
        self._pass_count = 0

    def run_once(self) -> tuple[InitiatorOutcome, ...]:
        """One pass: plan what has changed since the last one, and carry it out."""
        is_full = self._pass_count % _FULL_PASS_EVERY == 0
        self._pass_count += 1
        candidates = self._potential()
        known = frozenset() if is_full else self._settled
        plan = self._plan(tuple(potential for potential in candidates if potential not in known))
        outcomes = self.run(plan)
        settled = {
            decision.target for decision in plan.decisions if decision.verdict is Verdict.NOTHING
        }
        self._settled = frozenset(
            potential
            for potential in candidates
            if potential in known or potential.target in settled
        )
        return outcomes

    def plan(self) -> InitiatorPlan:
        """What a pass over everything would do now. Changes nothing."""
        return self._plan(self._potential())

    def run(self, plan: InitiatorPlan) -> tuple[InitiatorOutcome, ...]:
        """Queue what the plan asks for, and note down in the history what is blocked."""
        outcomes = []
        for decision in plan.decisions:
            if decision.verdict is Verdict.REQUEST:
                outcomes.append(self._request(decision))
            elif decision.verdict is Verdict.BLOCKED:
                outcomes.append(self._record_blocked(decision))
        return tuple(outcomes)

    def _potential(self) -> tuple[PotentialCompaction, ...]:
        settings = self._settings
        return self._metastore.find_potential_compactions(
            settings.aborted_txn_threshold, settings.aborted_txn_time_threshold_ms
        )

    def _plan(self, potentials: Sequence[PotentialCompaction]) -> InitiatorPlan:
        by_table: dict[TableName, list[PotentialCompaction]] = defaultdict(list)
        for potential in potentials:
            by_table[potential.target.name].append(potential)
        databases: dict[str, Mapping[str, str]] = {}
        decisions: list[InitiatorDecision] = []
        for name, targets in sorted(by_table.items()):
            if name.database not in databases:
                databases[name.database] = self._database_parameters(name.database)
            decisions += self._decide_table(name, targets, databases[name.database])
        return InitiatorPlan(decisions=tuple(decisions))

    def _database_parameters(self, name: str) -> Mapping[str, str]:
        try:
            return self._metastore.get_database(name).parameters
        except NoSuchObjectError:
            return {}

    def _decide_table(
        self,
        name: TableName,
        targets: Sequence[PotentialCompaction],
        database_parameters: Mapping[str, str],
    ) -> Iterator[InitiatorDecision]:
        entries = self._metastore.show_compactions(
            ShowCompactionsRequest(scope=Scope(name.database, name.table))
        )
        get_table = cache(partial(self._metastore.get_table, name.database, name.table))
        for potential in sorted(targets, key=lambda each: each.target.partition or ""):
            own = tuple(
                entry for entry in entries if entry.target.partition == potential.target.partition
            )
            candidate = Candidate(
                potential=potential, database_parameters=database_parameters, entries=own
            )
            try:
                yield self._decide(candidate, get_table)
            except (HmsBridgeError, ChangeManagerError, OSError) as error:
                reason = f"it could not be looked at: {error}"
                yield candidate.decided(Verdict.BLOCKED, reason, CompactionType.MINOR)

    def _decide(self, candidate: Candidate, get_table: Callable[[], Table]) -> InitiatorDecision:
        try:
            table = get_table()
        except NoSuchObjectError:
            return candidate.decided(Verdict.LEFT_ALONE, "the table is gone")
        candidate = replace(
            candidate, table_parameters=table.parameters, is_partitioned=table.is_partitioned
        )
        decided = decide_without_look(candidate, self._settings, self._clock.now_ms())
        if decided is not None:
            return decided
        try:
            target = find_target(self._metastore, candidate.potential.target)
        except CompactionError as error:
            return candidate.decided(Verdict.LEFT_ALONE, str(error))
        return self._look(candidate, target)

    def _look(self, candidate: Candidate, target: CompactionTarget) -> InitiatorDecision:
        snapshot = take_snapshot(self._metastore, self._resolver, target, TxnId(0))
        return decide(candidate, snapshot.state, snapshot.write_ids.high_watermark, self._settings)

    def _request(self, decision: InitiatorDecision) -> InitiatorOutcome:
        request = CompactionRequest(
            target=decision.target,
            type=decision.type or CompactionType.MAJOR,
            initiator_id=self._initiator_id,
            initiator_version=self._version,
            pool_name=decision.pool_name,
            is_automatic=True,
        )
        try:
            answer = self._metastore.compact(request)
        except HmsBridgeError as error:
            _LOG.warning("%s could not be queued: %s", decision.target, error)
            return InitiatorOutcome(decision=decision, id=None, message=str(error))
        message = answer.error_message or f"{request.type.name.lower()}: {decision.reason}"
        _LOG.info("%s: %s", decision.target, message)
        return InitiatorOutcome(decision=decision, id=answer.id, message=message)

    def _record_blocked(self, decision: InitiatorDecision) -> InitiatorOutcome:
        """Once for each failure: a line of the history at each pass would drive out the others."""
        _LOG.warning("%s: %s", decision.target, decision.reason)
        entry = Compaction(
            id=NEVER_QUEUED,
            target=decision.target,
            type=decision.type or CompactionType.MINOR,
            state=CompactionState.DID_NOT_INITIATE,
            initiator_id=self._initiator_id,
            initiator_version=self._version,
            error_message=decision.reason[:_MESSAGE_LENGTH_MAX],
        )
        try:
            if not self._is_recorded(entry):
                self._metastore.mark_failed(entry)
        except HmsBridgeError as error:
            _LOG.warning("could not note down why %s is blocked: %s", decision.target, error)
        return InitiatorOutcome(decision=decision, id=None, message=decision.reason)

    def _is_recorded(self, entry: Compaction) -> bool:
        entries = self._metastore.show_compactions(
            ShowCompactionsRequest(scope=Scope(entry.target.database, entry.target.table))
        )
        own = [sibling for sibling in entries if sibling.target.partition == entry.target.partition]
        newest = max(own, key=lambda sibling: sibling.id, default=None)
        return (
            newest is not None
            and newest.state is CompactionState.DID_NOT_INITIATE
            and newest.error_message == entry.error_message
        )
