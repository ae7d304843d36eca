"""What REPL STATUS is asked, and what it answers: how a replication stands."""

from __future__ import annotations

from dataclasses import dataclass, field

from changemanager.config import PinBudget
from hms_bridge.model.ids import EventId
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.repl.dump.backlog import Backlog
from hms_bridge.repl.format.directories import DumpState
from hms_bridge.repl.format.untrusted import DumpRules
from hms_bridge.repl.load.known_places import UnlookedFiles


@dataclass(frozen=True, kw_only=True, slots=True)
class StatusRequest:
    """Whose status. ``event_ttl_ms``, ``event_budget_ms``, ``event_budget_bytes`` and ``retain_ms``
    are the source's settings (hive.repl.event.db.listener.timetolive,
    hms.bridge.repl.events.budget and .bytes, hive.repl.cm.retain), as ``archive_budget``
    (hms.bridge.repl.archive.budget). ``own_archive``: the archive that ``retain_ms`` is of; None:
    every one. ``last_success_ms``: when a cycle last brought the replica to its source's state, as
    the history of a policy has it: dumps that were loaded go with later ones.
    ``are_bytes_counted``: look at each file that is still to be copied, which takes a call to the
    storage each. ``roots``: where files of dumps are looked for, besides where metastores say."""

    root: str
    source_database: str
    target_database: str | None = None
    event_ttl_ms: int = 10 * 86_400_000
    event_budget_ms: int = 30 * 86_400_000
    event_budget_bytes: int | None = None
    retain_ms: int = 10 * 86_400_000
    archive_budget: PinBudget = field(default_factory=PinBudget)
    own_archive: str | None = None
    are_bytes_counted: bool = False
    rules: DumpRules = field(default_factory=DumpRules)
    last_success_ms: int | None = None
    roots: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class DumpStatus:
    """One dump, as status shows it."""

    directory: str
    state: DumpState
    finished_ms: int | None
    loaded_ms: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Headroom:
    """How long the replica can still follow, and what ends that: the ``limit``. Negative seconds:
    since when it may be lost."""

    limit: str
    seconds: int


@dataclass(frozen=True, kw_only=True, slots=True)
class StatusReport:
    """How a replication stands. What needs a metastore that was not given is None.

    ``last_event_id``: what Hive's REPL STATUS answers. ``backlog``: what the replica lacks of the
    source after that event; ``rpo_seconds``: the age of the oldest of it, 0 if nothing is lacking.
    ``bytes_to_copy`` is None unless it was asked for. ``events_expire_in_seconds``:
    until the log purges the first event that no dump has. ``archive_expires_in_seconds``: until
    the purge may take a file of the dump to load (None: none is archived, or all are pinned).
    ``budget_ends_in_seconds``: until the purge gives up what is pinned for this replica, as far as
    what is archived now shows. ``missing_files`` of that dump are lost already; ``unlooked``: what
    nobody looked for, which says nothing of the replica. ``is_pinned`` is
    None where the source's own database, which knows, is not looked at. ``troubles``: why the
    replica cannot follow as it is, with what to do, a line each. ``scope``: which tables of the
    source the replica has; only they count. ``unfinished_load``: what is known of a load that has
    begun and not ended: who does it, or did, and how far the replica is. ``is_promoted``: the
    replica has taken its source's place, which is a trouble for whoever takes it for one still.
    """

    source_database: str
    target_database: str | None
    last_event_id: EventId | None
    source_event_id: EventId | None
    backlog: Backlog | None
    rpo_seconds: int | None
    bytes_to_copy: int | None
    is_first_incremental_pending: bool
    is_incompatible: bool
    dumps: tuple[DumpStatus, ...]
    events_expire_in_seconds: int | None
    archive_expires_in_seconds: int | None
    budget_ends_in_seconds: int | None
    missing_files: int
    is_pinned: bool | None
    scope: ReplScope
    troubles: tuple[str, ...]
    unfinished_load: str | None = None
    last_success_ms: int | None = None
    is_promoted: bool = False
    unlooked: UnlookedFiles | None = None
    time_doubt: str = ""
    """Why not all of the time counts at the source; empty if it does, or nobody looked there."""

    @property
    def time_doubt_text(self) -> str:
        """That doubt, and where more is said of it; for people."""
        return f"at the source {self.time_doubt}; see 'hms-bridge cm clock' there"

    @property
    def headroom(self) -> Headroom | None:
        """What will end the replica's way first; None if nothing will, as far as is known."""
        return min(self.headrooms, key=lambda headroom: headroom.seconds, default=None)

    @property
    def headrooms(self) -> tuple[Headroom, ...]:
        """Everything that will end it some day, as far as is known."""
        limits = (
            ("event log", self.events_expire_in_seconds),
            ("archive", self.archive_expires_in_seconds),
            ("archive's budget", self.budget_ends_in_seconds),
        )
        return tuple(Headroom(limit=limit, seconds=n) for limit, n in limits if n is not None)

    @property
    def last_loaded_ms(self) -> int | None:
        """When a dump was loaded last, by those that are still there, and by a policy's history."""
        moments = [dump.loaded_ms for dump in self.dumps if dump.loaded_ms]
        moments += [self.last_success_ms] if self.last_success_ms else []
        return max(moments, default=None)

    @property
    def newest_dump(self) -> DumpStatus | None:
        """The newest dump, finished or not."""
        return self.dumps[0] if self.dumps else None
