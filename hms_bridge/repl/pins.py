"""Who still needs an archived file: dumps that are not loaded, and the way from dump to dump.

Two kinds of pins. The *policy* pin, one for each root that a database is dumped to, holds what was
archived since the newest dump there began: its files may stand in the next one. The *dump* pin
holds the files that a dump names, until it is loaded. Hive has neither, and its purge takes files
that a replica still needs (docs/hive/replication.md §6).

Earlier versions kept one policy pin for a database, however many roots it was dumped to. The first
dump takes it over.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from changemanager.config import NAME_LENGTH_MAX
from changemanager.manifest import ArchiveManifest, ArchivePins, Pin, PinKind
from changemanager.plausible_time import stamp_ms
from changemanager.uri import EncodedUri, archive_name
from hms_bridge.clock import Clock
from hms_bridge.repl.format.directories import DumpDirectory, DumpState
from hms_bridge.repl.format.layout import database_of, is_place_of_drill
from hms_bridge.repl.remedies import begin_anew

_DUMP = "dump:"
_POLICY = "policy:"


def dump_holder(database: str, directory: str) -> str:
    """The name of the pin of one dump."""
    return f"{_DUMP}{database}:{directory}"


def policy_holder(database: str, root: str) -> str:
    """The name of the pin of the way from dump to dump below a root, which is given as the resolver
    writes it."""
    return f"{_POLICY}{database}:{root}"


def shared_holder(database: str) -> str:
    """The name of that pin in versions that kept one for all roots."""
    return f"{_POLICY}{database}"


def policy_pin(pins: Iterable[Pin], database: str, root: str) -> Pin | None:
    """The pin of the way from dump to dump below a root, or the shared one as long as that was not
    taken over."""
    known = {pin.holder: pin for pin in pins}
    return known.get(policy_holder(database, root)) or known.get(shared_holder(database))


def pinned_dump(holder: str) -> tuple[str, str] | None:
    """Database and directory of a dump's pin; None if the holder is no dump."""
    if not holder.startswith(_DUMP):
        return None
    rest = holder.removeprefix(_DUMP)
    for at in (index for index, character in enumerate(rest) if character == ":"):
        database, levels = rest[:at], rest[at + 1 :].split("/")
        if len(levels) > 1 and database_of(levels[-2]) == database:
            return database, rest[at + 1 :]
    return None


def names_of(
    files: Collection[EncodedUri], name_length_max: int = NAME_LENGTH_MAX
) -> frozenset[str]:
    """The names that files have in the archive, or will have; files without checksum have none."""
    return frozenset(
        archive_name(file.base_name, file.checksum, name_length_max)
        for file in files
        if file.checksum is not None
    )


def given_up_text(pin: Pin, database: str) -> str:
    """What became of a pin that outlived its budget, and the commands that end it."""
    if pin.given_up is None:
        return ""
    when = datetime.fromtimestamp(pin.given_up.at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    event = f"{pin.holder} was given up at {when} (hms.bridge.repl.archive.budget)"
    if pin.kind is PinKind.POLICY:
        ends = (
            "files that the next dump may name are purged; that dump says which it lacks, and ends "
            "this if it lacks none: 'repl dump' or 'repl run'"
        )
    else:
        ends = "files that the dump names are purged: 'repl verify' lists them"
    return f"{event}: {pin.given_up.reason}; {ends}. {begin_anew(database)}"


def given_up_of(manifest: ArchivePins | None, database: str, root: str) -> str:
    """What was given up of a database's policy and dumps below a root; empty if nothing was, or
    nobody knows."""
    dumps = dump_holder(database, f"{root}/")
    pins = () if manifest is None else manifest.pins()
    policy = policy_pin(pins, database, root)
    own = [pin for pin in pins if pin == policy or pin.holder.startswith(dumps)]
    texts = [given_up_text(pin, database) for pin in own]
    return " ".join(text for text in texts if text)


@dataclass(frozen=True, kw_only=True, slots=True)
class DumpPins:
    """Sets and releases the pins of a database that is dumped to a root, which is given as the
    resolver writes it. Without a manifest nothing happens. Times of pins are those of the clock
    that stamps the archive: the host's may be ahead of it.

    ``is_apart``: the dump is none of those that follow on each other, so the policy's pin, which is
    of the last of these, stays as it is.
    """

    manifest: ArchiveManifest | None
    clock: Clock
    database: str
    root: str
    is_apart: bool = False

    def now_ms(self) -> int:
        """When something is archived now."""
        now_ms = self.clock.now_ms()
        return now_ms if self.manifest is None else stamp_ms(now_ms, self.manifest.known_times())

    def begin(self) -> Pin | None:
        """A dump begins: hold what is archived from now on, unless an older dump holds more. The
        pin that this took, None for none."""
        if self.manifest is None or self.is_apart:
            return None
        self._take_over(self.manifest)
        if policy_pin(self.manifest.pins(), self.database, self.root) is not None:
            return None
        return self._put_policy(self.now_ms())

    def take_back(self, begun: Pin | None) -> None:
        """The dump for which :meth:`begin` took a pin has failed; a pin that was set anew stays."""
        if self.manifest is not None and begun is not None and begun in self.manifest.pins():
            self.manifest.remove_pin(begun.holder)

    def hold(self, directory: str, files: Collection[EncodedUri]) -> tuple[str, ...]:
        """Hold the files that a dump names; returns those whose purge has begun already."""
        if self.manifest is None:
            return ()
        return self.manifest.put_pin(
            Pin(
                holder=dump_holder(self.database, directory),
                kind=PinKind.DUMP,
                reason=f"dump {directory} is not loaded yet",
                created_at_ms=self.now_ms(),
                names=names_of(files),
            )
        )

    def finish(self, began_at_ms: int, left_since_ms: int | None = None) -> None:
        """A dump is finished: the next one needs what was archived since this one began; if it has
        left events for the next, what was archived since they happened, from ``left_since_ms`` on.

        It has found all files that it names, so that the policy goes on, even if it was given up.
        """
        if self.manifest is None or self.is_apart:
            return
        since_ms = began_at_ms
        if left_since_ms is not None:
            pin = policy_pin(self.manifest.pins(), self.database, self.root)
            held_ms = None if pin is None else pin.archived_since_ms
            since_ms = min(began_at_ms, max(left_since_ms, held_ms or 0))
        self._put_policy(since_ms)

    def end(self) -> bool:
        """There will be no next dump: nothing more is held for it. False if nothing was."""
        if self.manifest is None:
            return False
        self._take_over(self.manifest)
        return self.manifest.remove_pin(policy_holder(self.database, self.root))

    def release_all(self) -> None:
        """Nobody will load dumps from below the root any more."""
        self.end()
        if self.manifest is not None:
            dumps = dump_holder(self.database, f"{self.root}/")
            for pin in self.manifest.pins():
                if pin.holder.startswith(dumps):
                    self.manifest.remove_pin(pin.holder)

    def hold_since(self, since_ms: int) -> None:
        """The next dump needs what was archived since then, too."""
        if self.manifest is None:
            return
        self._take_over(self.manifest)
        pin = policy_pin(self.manifest.pins(), self.database, self.root)
        held_ms = None if pin is None else pin.archived_since_ms
        self._put_policy(since_ms if held_ms is None else min(since_ms, held_ms), is_wider=True)

    def _take_over(self, manifest: ArchivePins) -> None:
        """What the pin that all roots shared holds goes over to this root, and to each one with
        dumps that are not loaded. It goes last: whoever is stopped before has changed nothing.

        Another root, of which nothing is known here, needs of it only what was archived after the
        last dump to any root; that is kept for hive.repl.cm.retain, in which it is dumped.
        """
        pins = manifest.pins()
        shared = next((pin for pin in pins if pin.holder == shared_holder(self.database)), None)
        if shared is None:
            return
        there = {pin.holder for pin in pins}
        for root in sorted({self.root, *self._pinned_roots(pins)}):
            holder = policy_holder(self.database, root)
            if holder in there:
                continue
            manifest.put_pin(replace(shared, holder=holder, given_up=None))
            if shared.given_up is not None:
                manifest.give_up(
                    holder, seen_created_at_ms=shared.created_at_ms, given_up=shared.given_up
                )
        manifest.remove_pin(shared.holder)

    def _pinned_roots(self, pins: Iterable[Pin]) -> Iterator[str]:
        """Those with a dump of the database that pins files, and a next one."""
        for pin in pins:
            known = pinned_dump(pin.holder) if pin.kind is PinKind.DUMP else None
            if known is None or known[0] != self.database:
                continue
            root = known[1].rsplit("/", 2)[0]
            if not is_place_of_drill(root):  # a drill that was killed: its dump is its last
                yield root

    def _put_policy(self, since_ms: int, *, is_wider: bool = False) -> Pin:
        pin = Pin(
            holder=policy_holder(self.database, self.root),
            kind=PinKind.POLICY,
            reason=f"the next dump of {self.database} may name it",
            created_at_ms=self.now_ms(),
            database=self.database,
            archived_since_ms=since_ms,
        )
        if self.manifest is not None:
            self.manifest.put_pin(pin, is_wider=is_wider)
        return pin

    def release(self, directory: str) -> bool:
        """A dump is loaded, or given up: its files may go. False if it held none."""
        if self.manifest is None:
            return False
        return self.manifest.remove_pin(dump_holder(self.database, directory))

    def release_loaded(self, dumps: Sequence[DumpDirectory], above: str) -> tuple[str, ...]:
        """Release the pins of dumps that are loaded or gone; returns their directories.

        ``dumps`` are all that there are below ``above``. Dumps elsewhere keep their pins.
        """
        if self.manifest is None:
            return ()
        prefix = dump_holder(self.database, "")
        needed = {dump.paths.root for dump in dumps if dump.state is not DumpState.LOADED}
        held = [
            pin.holder.removeprefix(prefix)
            for pin in self.manifest.pins()
            if pin.kind is PinKind.DUMP and pin.holder.startswith(f"{prefix}{above}/")
        ]
        released = []
        for directory in held:
            if directory not in needed and self.release(directory):
                released.append(directory)
        return tuple(released)
