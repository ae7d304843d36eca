"""Which archived files may go: those that are expired and needed by nobody.

The clock of a file is the time it was archived last: the manifest's, or the file's modification
time where that is later (a Hive beside us refreshes only that) or alone (Hive's own files). A file
goes when its age is strictly more than the retention. Whatever is not understood stays and is
reported: other names, directories, unknown times, names without a checksum. What Hive's purge does:
docs/hive/replication.md §6.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from changemanager.archive import ChangeManager
from changemanager.aside import ASIDE_PREFIX
from changemanager.clock import span_text
from changemanager.errors import ChangeManagerConfigError
from changemanager.filesystem.volume import FileKind
from changemanager.manifest import ArchiveEntry, ArchiveManifest, EntryState
from changemanager.plausible_time import TimeJudgement
from changemanager.sharing import SHARER_PREFIX
from changemanager.transfer import PART_PREFIX
from changemanager.uri import parse_archive_name


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchivedItem:
    """One name of the cmroot, with what the manifest knows of it.

    `is_present` False: the manifest has an entry, the directory no file. `is_tagged`: Hive's
    remain-in-trash, from the manifest or the file (files are asked only once they are expired).
    `problem`: why the file could not be looked at; empty if it could.
    """

    name: str
    kind: FileKind
    size_bytes: int
    mtime_ms: int | None
    entry: ArchiveEntry | None
    is_tagged: bool
    is_present: bool = True
    problem: str = ""

    @property
    def clock_ms(self) -> int | None:
        """When it was archived last, as far as anyone knows."""
        times = [self.mtime_ms, self.entry.archived_at_ms if self.entry else None]
        return max((time for time in times if time is not None), default=None)


class Disposition(Enum):
    """What the purge does with a name."""

    DELETE = "delete"
    TRASH = "trash"
    FORGET = "forget"
    """No file, an expired entry: the row goes."""
    YOUNG = "young"
    PINNED = "pinned"
    NO_TRASH = "no trash"
    """Dropped without PURGE, no trash directory is configured, and not kept long enough."""
    NO_TIME = "no time"
    NO_CHECKSUM = "no checksum"
    """`<name>_null`, which Hive makes on a file system without checksums."""
    UNKNOWN = "unknown"
    """A directory, or a name that no ChangeManager makes."""

    @property
    def is_kept(self) -> bool:
        """Whether the file stays."""
        return self not in {Disposition.DELETE, Disposition.TRASH, Disposition.FORGET}


@dataclass(frozen=True, kw_only=True, slots=True)
class PurgeDecision:
    """One name, what becomes of it, and why; `holders` are who pins it (overridden or not), and
    `given_up` those of them that would still hold it, had they not outlived their budget."""

    item: ArchivedItem
    disposition: Disposition
    reason: str
    holders: tuple[str, ...] = ()
    given_up: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outlived:
    """That a pin, made at a time, holds a file no more."""

    created_at_ms: int
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PinEnd:
    """A holder that a purge gives up, its pin as it was seen, and what goes of what that held."""

    holder: str
    created_at_ms: int
    reason: str
    file_count: int
    size_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PurgePlan:
    """What a purge would do at one time. `overridden` holders were set aside on purpose, those of
    `ends` have outlived their budget."""

    cmroot: str
    time: TimeJudgement
    retain_ms: int
    overridden: frozenset[str]
    decisions: tuple[PurgeDecision, ...]
    ends: tuple[PinEnd, ...] = ()

    @property
    def doubt(self) -> str:
        """Why the clock is not believed, if files stay for that; empty if none does."""
        if self.time.refusal:
            return self.time.refusal
        times_ms = [decision.item.clock_ms for decision in self.of(Disposition.YOUNG)]
        if_right = self.time.confirmed()
        count = sum(ms is not None and is_expired(ms, if_right, self.retain_ms) for ms in times_ms)
        if not count:
            return ""
        what = "1 file stays" if count == 1 else f"{count} files stay"
        return f"{what} that may be expired: {self.time.within(self.retain_ms).doubt}"

    @property
    def removals(self) -> tuple[PurgeDecision, ...]:
        """Archived files that nothing keeps, in the order of the decisions."""
        return tuple(decision for decision in self.decisions if not decision.disposition.is_kept)

    @property
    def freed_bytes(self) -> int:
        """Bytes that would leave the cmroot."""
        return sum(
            decision.item.size_bytes for decision in self.removals if decision.item.is_present
        )

    def of(self, disposition: Disposition) -> tuple[PurgeDecision, ...]:
        """The decisions of one kind."""
        return tuple(decision for decision in self.decisions if decision.disposition is disposition)


_WAITING_FOR_TIME = frozenset(
    {Disposition.DELETE, Disposition.TRASH, Disposition.FORGET, Disposition.NO_TRASH}
)


def is_expired(clock_ms: int, time: TimeJudgement, retain_ms: int) -> bool:
    """Whether an age is more than the retention; one that is just as long is not."""
    return time.age_ms(clock_ms) > retain_ms


def plan_purge(
    items: Sequence[ArchivedItem],
    *,
    cmroot: str,
    time: TimeJudgement,
    retain_ms: int,
    holders: Mapping[str, tuple[str, ...]],
    overridden: frozenset[str] = frozenset(),
    outlived: Mapping[str, Mapping[str, Outlived]] | None = None,
    has_trash: bool,
    trash_retain_ms: int | None = None,
) -> PurgePlan:
    """Decide for every name, without any I/O. What was dropped without PURGE, and has no trash to
    go to, stays ``trash_retain_ms`` longer (None: for ever). ``outlived``: by name, the holders
    that hold it no more.

    Raises ChangeManagerConfigError for a retention that is not longer than 0.
    """
    if retain_ms <= 0:
        raise ChangeManagerConfigError(
            "hive.repl.cm.retain must be longer than 0: a purge would remove everything"
        )
    rules = _Rules(time, retain_ms, holders, overridden, outlived or {}, has_trash, trash_retain_ms)
    decisions = tuple(rules.decide(item) for item in items)
    return PurgePlan(
        cmroot=cmroot,
        time=time,
        retain_ms=retain_ms,
        overridden=overridden,
        decisions=decisions,
        ends=_ends(decisions, rules.outlived),
    )


@dataclass(frozen=True, slots=True)
class _Rules:
    """What the purge goes by: see :func:`plan_purge`."""

    time: TimeJudgement
    retain_ms: int
    holders: Mapping[str, tuple[str, ...]]
    overridden: frozenset[str]
    outlived: Mapping[str, Mapping[str, Outlived]]
    has_trash: bool
    trash_retain_ms: int | None

    def decide(self, item: ArchivedItem) -> PurgeDecision:
        """What becomes of one name."""
        held = self.holders.get(item.name, ())
        counting = set(held) - self.overridden
        ended = counting & self.outlived.get(item.name, {}).keys()
        disposition, reason = _recognise(item, has_trash=self.has_trash)
        if disposition in _WAITING_FOR_TIME:
            clock_ms = item.clock_ms
            if is_interrupted(item) and not item.is_present:
                reason = "its purge was interrupted after the file was gone"
            elif clock_ms is None:
                disposition, reason = Disposition.NO_TIME, "neither row nor modification time"
            elif not is_expired(clock_ms, self.time, self.retain_ms):
                disposition = Disposition.YOUNG
                left_ms = self.retain_ms - self.time.age_ms(clock_ms)
                reason = self.time.refusal or f"expires in {span_text(left_ms + 1)}"
            elif counting - ended:
                disposition = Disposition.PINNED
                reason = "held by " + ", ".join(sorted(counting - ended))
            elif disposition is Disposition.NO_TRASH and self._is_trash_over(clock_ms):
                disposition = Disposition.DELETE
                reason = "dropped without PURGE, and kept long enough without a trash directory"
            elif held:
                reason += self._in_spite_of(held, ended)
        return PurgeDecision(
            item=item,
            disposition=disposition,
            reason=reason,
            holders=held,
            given_up=() if disposition.is_kept else tuple(sorted(ended)),
        )

    def _in_spite_of(self, held: Sequence[str], ended: Collection[str]) -> str:
        overridden = [holder for holder in held if holder in self.overridden]
        text = f"; overridden: {', '.join(overridden)}" if overridden else ""
        return text + (f"; beyond the budget of {', '.join(sorted(ended))}" if ended else "")

    def _is_trash_over(self, clock_ms: int) -> bool:
        return self.trash_retain_ms is not None and is_expired(
            clock_ms, self.time, self.retain_ms + self.trash_retain_ms
        )


def _ends(
    decisions: Sequence[PurgeDecision], outlived: Mapping[str, Mapping[str, Outlived]]
) -> tuple[PinEnd, ...]:
    ends = []
    for holder in sorted({holder for decision in decisions for holder in decision.given_up}):
        items = [decision.item for decision in decisions if holder in decision.given_up]
        why = outlived[items[0].name][holder]
        ends.append(
            PinEnd(
                holder=holder,
                created_at_ms=why.created_at_ms,
                reason=why.reason,
                file_count=len(items),
                size_bytes=sum(item.size_bytes for item in items if item.is_present),
            )
        )
    return tuple(ends)


def is_interrupted(item: ArchivedItem) -> bool:
    """Whether a purge claimed it and did not come to its end."""
    return item.entry is not None and item.entry.state is EntryState.PURGING


def _recognise(item: ArchivedItem, *, has_trash: bool) -> tuple[Disposition, str]:
    """What would become of an item if it were expired and not held."""
    parsed = parse_archive_name(item.name)
    is_part = item.name.startswith(PART_PREFIX)
    is_aside = item.name.startswith(ASIDE_PREFIX)
    is_null = parsed is not None and parsed.checksum is None
    rules = (
        (not item.is_present, Disposition.FORGET, "the manifest has a row, the cmroot no file"),
        (
            item.kind is not FileKind.FILE,
            Disposition.UNKNOWN,
            f"a {item.kind.value}, which no ChangeManager makes",
        ),
        (bool(item.problem), Disposition.UNKNOWN, item.problem),
        (is_aside, Disposition.UNKNOWN, "a purge is at work on it, or died; the next one settles"),
        (is_part, Disposition.DELETE, "an unfinished copy"),
        (is_null, Disposition.NO_CHECKSUM, "Hive had no checksum: its content cannot be proved"),
        (
            parsed is None and item.entry is None,
            Disposition.UNKNOWN,
            "the name is not <name>_<checksum>",
        ),
        (
            item.is_tagged and not has_trash,
            Disposition.NO_TRASH,
            "dropped without PURGE, and no trash directory is set",
        ),
        (item.is_tagged, Disposition.TRASH, "expired, dropped without PURGE"),
    )
    for applies, disposition, reason in rules:
        if applies:
            return disposition, reason
    return Disposition.DELETE, "expired"


def take_inventory(archive: ChangeManager, manifest: ArchiveManifest) -> tuple[ArchivedItem, ...]:
    """Every name of the cmroot and every entry of the manifest, by name.

    A cmroot that is not there is an empty one.
    """
    cmroot = archive.cmroot
    entries = manifest.entries(cmroot.uri)
    statuses = cmroot.volume.children(cmroot.path) if cmroot.status() is not None else ()
    items: dict[str, ArchivedItem] = {}
    for status in statuses:
        if status.name.startswith(SHARER_PREFIX):
            continue
        entry = entries.get(status.name)
        items[status.name] = ArchivedItem(
            name=status.name,
            kind=status.kind,
            size_bytes=status.size_bytes,
            mtime_ms=status.mtime_ms,
            entry=entry,
            is_tagged=entry is not None and entry.is_remaining_in_trash,
        )
    for name in entries.keys() - items.keys():
        items[name] = ArchivedItem(
            name=name,
            kind=FileKind.FILE,
            size_bytes=entries[name].size_bytes,
            mtime_ms=None,
            entry=entries[name],
            is_tagged=entries[name].is_remaining_in_trash,
            is_present=False,
        )
    return tuple(items[name] for name in sorted(items))
