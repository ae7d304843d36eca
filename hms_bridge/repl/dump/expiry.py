"""Loaded dumps that nobody needs any more are removed when they are old (hive.repl.dumpdir.ttl).

Kept older dumps (hive.repl.retain.prev.dump.dir) stay for ever otherwise. Hive deletes whatever is
old below the root of dumps, loaded or not (docs/hive/replication.md §33). Here the newest chain
stays, from its bootstrap dump on, and the newest loaded one, and every dump that is not loaded.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from changemanager.location import Location
from changemanager.plausible_time import TimeJudgement, judge
from hms_bridge.errors import BusyError, HmsBridgeError, ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.repl.dump.verb import DumpVerb, what_is_strange
from hms_bridge.repl.format.chain import newest_chain
from hms_bridge.repl.format.directories import DumpDirectory, DumpState, list_dumps
from hms_bridge.repl.lease import LeaseRules

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpiryRequest:
    """The dumps of a database below ``root``; ``ttl_ms``: how old a loaded one has to be."""

    root: str
    database_name: str
    ttl_ms: int
    user: str = "hive"
    host: str = "localhost"
    lease: LeaseRules


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpiryDecision:
    """What becomes of a dump. ``finished_at_ms``: since 1970; of one that is not finished, when its
    directory was changed."""

    directory: str
    state: DumpState
    finished_at_ms: int
    is_removed: bool
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpiryPlan:
    """What will go and what stays, newest first."""

    request: ExpiryRequest
    decisions: tuple[ExpiryDecision, ...]

    @property
    def removed(self) -> tuple[str, ...]:
        """The directories that go."""
        return tuple(decision.directory for decision in self.decisions if decision.is_removed)


class ReplExpiry(DumpVerb):
    """Removes expired dumps of one source."""

    def plan(self, request: ExpiryRequest) -> ExpiryPlan:
        """Changes nothing."""
        dumps = list_dumps(self._resolve, request.root, request.database_name)
        decisions = decide(
            dumps,
            request.ttl_ms,
            self._time(),
            strange=lambda dump: what_is_strange(self._place(dump)),
        )
        return ExpiryPlan(request=request, decisions=tuple(decisions))

    def run(self, plan: ExpiryPlan) -> tuple[str, ...]:
        """Carry a plan out; the directories that went. Raises BusyError while a dump is made,
        ReplError if dumps have come or gone since the plan."""
        if not plan.removed:
            return ()
        request = plan.request
        with self._alone(request, request.database_name) as lease:
            now = set(self.plan(request).removed)
            if not now.issuperset(plan.removed):
                raise ReplError(
                    f"dumps of {request.database_name} have changed since the plan; plan again"
                )
            pins = self._pins(request.database_name, request.root)
            for directory in plan.removed:
                lease.check()
                pins.release(directory)
                self._remove(request.database_name, directory, reason="it is loaded and expired")
        return plan.removed

    def _time(self) -> TimeJudgement:
        """By the source's database; where it is out of reach, by the clock alone."""
        now_ms = self._clock.now_ms()
        if self._manifest is None:
            return TimeJudgement(now_ms=now_ms)
        return judge(now_ms, self._manifest.known_times())

    def _place(self, dump: DumpDirectory) -> Location:
        return self._resolve(dump.paths.root)


def decide(
    dumps: Sequence[DumpDirectory],
    ttl_ms: int,
    time: TimeJudgement,
    *,
    strange: Callable[[DumpDirectory], str],
) -> Iterator[ExpiryDecision]:
    """What becomes of each dump; ``dumps``: newest first. ``strange``: what one holds that dumps do
    not; empty for a dump."""
    loaded = [dump for dump in dumps if dump.state is DumpState.LOADED]
    # If the newest does not get loaded, the next dump goes on from the newest that was.
    chain = (*newest_chain(dumps).directories, *newest_chain(loaded).directories)
    for dump in dumps:
        why = _kept_because(dump, chain, ttl_ms, time)
        if not why and (what := strange(dump)):
            why = f"it does not look like a dump ({what})"
        yield ExpiryDecision(
            directory=dump.paths.root,
            state=dump.state,
            finished_at_ms=dump.time_ms,
            is_removed=not why,
            why=why or "it is loaded, and older than hive.repl.dumpdir.ttl",
        )


def _kept_because(
    dump: DumpDirectory, chain: Sequence[str], ttl_ms: int, time: TimeJudgement
) -> str:
    if dump.state is not DumpState.LOADED:
        return "it is not loaded"
    if dump.paths.root in chain:
        return "the newest dump follows on it, or is it"
    if time.age_ms(dump.time_ms) <= ttl_ms:
        why = "it is younger than hive.repl.dumpdir.ttl"
        is_doubted = time.confirmed().age_ms(dump.time_ms) > ttl_ms
        return f"{why}: {time.doubt}" if is_doubted else why
    return ""


def remove_expired(
    metastore: Metastore, expiry: ReplExpiry, request_of: Callable[[str], ExpiryRequest]
) -> None:
    """Expired dumps of all databases that are sources here. Dumps of others below the root are
    somebody else's. What fails is logged, and comes again."""
    for name in metastore.get_databases():
        try:
            if metastore.get_database(name).is_replication_source:
                expiry.run(expiry.plan(request_of(name)))
        except BusyError:
            continue
        except (HmsBridgeError, OSError) as error:
            _LOG.warning("expired dumps of %s stay: %s", name, error)
