"""What a dump is asked for, what it will do, and what it did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from hms_bridge.model.ids import EventId, TxnId
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.repl.dump.event_limit import limited_end
from hms_bridge.repl.dump.event_source import EventRange
from hms_bridge.repl.dump.scope_change import ScopeChange
from hms_bridge.repl.dump.snapshot_wait import WaitRules
from hms_bridge.repl.format.passed_kinds import PASSED_BY_DEFAULT
from hms_bridge.repl.format.progress import WrittenEvent
from hms_bridge.repl.format.untrusted import given_name
from hms_bridge.repl.lease import LeaseRules


@dataclass(frozen=True, kw_only=True, slots=True)
class IncrementalRules:
    """How events are written. ``batch_size`` None: each directly below, as
    hive.repl.batch.incremental.events=false. ``is_filtered``: leave out transactions of others.
    ``is_unknown_empty``: a write of which nobody knows any more what it wrote wrote nothing.
    ``passed_kinds``: what a replica can do without. ``noted_each``: after so many events is noted
    what is written."""

    batch_size: int | None = 10_000
    is_filtered: bool = True
    is_unknown_empty: bool = False
    passed_kinds: frozenset[str] = PASSED_BY_DEFAULT
    noted_each: int = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class EventCounts:
    """What a range holds. ``dumped`` by dumped kind; ``passed``: of the database, but without a
    place in a dump; ``left_out_count``: of other databases and their transactions.
    ``assumed_empty``: writes that were dumped as empty although they may not have been."""

    dumped: Mapping[str, int] = field(default_factory=dict)
    passed: Mapping[str, int] = field(default_factory=dict)
    left_out_count: int = 0
    assumed_empty: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class DumpRequest:
    """Dump a database below ``root``.

    ``cm_root`` is the archive that file references name; None without ChangeManager.
    ``is_archive_elsewhere_allowed``: it may be on another file system. ``policy`` becomes the value
    of ``repl.source.for`` if the database has none. ``is_bootstrap_forced`` begins anew although a
    dump exists; with ``is_waiting_replaced`` also in place of one that is not loaded. ``is_apart``:
    it is none of those that follow on each other, and moves nothing on that they need; the database
    must be a source already. ``has_checksums`` False leaves checksums and archive out of file
    references: a real Hive that loads from a file system without checksums of its own (local, S3)
    takes a file whose reference has one for changed. Then only files at their source are found.
    ``external_base``: copy data of external tables to this place of the target, with each dump;
    None dumps their metadata only. ``is_previous_kept`` keeps older dumps. ``tables_anew``: tables
    that an incremental dump brings whole instead of their events. ``event_limit``: how many events
    of the log an incremental dump covers at most; None: all that there are. ``scope``: which
    tables, None: those of the dump before, else all; another one than that of the dump before needs
    ``is_scope_changed``, or a bootstrap.
    """

    root: str
    database: str
    cm_root: str | None = None
    is_archive_elsewhere_allowed: bool = False
    policy: str = "hms-bridge"
    is_bootstrap_forced: bool = False
    is_waiting_replaced: bool = False
    is_apart: bool = False
    is_previous_kept: bool = False
    has_checksums: bool = True
    external_base: str | None = None
    tables_anew: tuple[str, ...] = ()
    event_limit: int | None = None
    scope: ReplScope | None = None
    is_scope_changed: bool = False
    wait: WaitRules = field(default_factory=WaitRules)
    lease: LeaseRules = field(default_factory=LeaseRules)
    events: IncrementalRules = field(default_factory=IncrementalRules)
    user: str = "hive"
    host: str = "localhost"

    @property
    def database_name(self) -> str:
        """The database in lower case. Raises ReplError for what is no name."""
        return given_name(self.database, "database")

    @property
    def anew(self) -> frozenset[str]:
        """``tables_anew`` in lower case. Raises ReplError for what is no name."""
        return frozenset(given_name(name, "table") for name in self.tables_anew)


class DumpKind(Enum):
    """What a dump will do."""

    BOOTSTRAP = "bootstrap"
    INCREMENTAL = "incremental"
    DROP = "drop"
    NOTHING = "nothing"
    BLOCKED = "blocked"


@dataclass(frozen=True, kw_only=True, slots=True)
class ResumePlan:
    """An unfinished incremental dump that is gone on with, up to the event where it was to end.

    ``began_at_ms``: when it began, and since when the next dump may need what was archived.
    ``written``: its events that are there whole; all others are made anew.
    """

    directory: str
    until: EventId
    began_at_ms: int
    written: Mapping[EventId, WrittenEvent]


@dataclass(frozen=True, kw_only=True, slots=True)
class DumpPlan:
    """What a dump will do, found out without changing anything.

    ``previous``: the dump it follows on. ``tables``: names, for a bootstrap. ``events``: what an
    incremental dump holds now. ``removed``: older dump directories that go when it is finished.
    ``waits_for``: open writers that a bootstrap will have to wait for, in words. ``anew``: names of
    tables that are brought whole beside the events, or go; ``asked`` those of them for which
    somebody asked. ``files_seen_at``: the newest event as ``previous`` looked at files of tables.
    ``event_limit``: how many events it covers at most, but to ``at_least`` in any case; None: all
    that there are.
    ``left_event_count``: events of the log after it, for the next dump. ``scope``: what the dump is
    of, ``scope_before``: what the replica has. ``resumed``: what it goes on with, if it does.
    """

    kind: DumpKind
    request: DumpRequest
    reason: str
    previous: str | None = None
    after_event_id: EventId | None = None
    until_event_id: EventId | None = None
    tables: tuple[str, ...] = ()
    events: EventCounts = field(default_factory=EventCounts)
    removed: tuple[str, ...] = ()
    waits_for: str = ""
    anew: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    files_seen_at: EventId | None = None
    event_limit: int | None = None
    at_least: EventId | None = None
    left_event_count: int = 0
    scope: ReplScope | None = None
    scope_before: ReplScope | None = None
    resumed: ResumePlan | None = None

    @property
    def scope_now(self) -> ReplScope:
        """What the dump is of."""
        return self.scope or ReplScope(database_name=self.request.database_name)

    @property
    def scope_change(self) -> ScopeChange:
        """From what the replica has to what the dump is of."""
        return ScopeChange(before=self.scope_before or self.scope_now, now=self.scope_now)

    @property
    def wanted(self) -> EventRange:
        """The events that it covers; none for a bootstrap."""
        nothing = EventId(0)
        return EventRange(
            after=self.after_event_id or nothing, until=self.until_event_id or nothing
        )

    def end(self, newest: EventId) -> EventId:
        """The last event of an incremental dump, where the log's newest is this one."""
        if self.resumed is not None:
            return self.resumed.until
        return limited_end(self.wanted.after, newest, self.event_limit, at_least=self.at_least)


@dataclass(frozen=True, kw_only=True, slots=True)
class DumpReport:
    """What a dump did. ``directory`` and ``last_event_id`` are what REPL DUMP answers.

    ``idle_txn_ids``: transactions that were open at the bootstrap without a trace in the database.
    ``left_event_count``: events of the log after it that were there, for the next dump. ``scope``:
    what it is of, None for none that was made.
    """

    kind: DumpKind
    reason: str
    directory: str | None = None
    from_event_id: EventId | None = None
    to_event_id: EventId | None = None
    last_event_id: EventId | None = None
    tables: Mapping[str, int] = field(default_factory=dict)
    events: EventCounts = field(default_factory=EventCounts)
    file_count: int = 0
    idle_txn_ids: tuple[TxnId, ...] = ()
    removed: tuple[str, ...] = ()
    left_event_count: int = 0
    scope: ReplScope | None = None


def blocked_by(request: DumpRequest, directory: str) -> DumpPlan:
    """The plan where a dump that is not loaded stands in the way."""
    return DumpPlan(
        kind=DumpKind.BLOCKED,
        request=request,
        reason=(
            f"{directory} is not loaded yet; load it first (repl load), or, if nobody wants it, "
            f"end it (repl dump {request.database_name} --discard); then dump again"
        ),
        previous=directory,
    )
