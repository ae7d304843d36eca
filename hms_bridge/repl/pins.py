"""Who still needs an archived file: dumps that are not loaded, and the way from dump to dump.

Two pins for a database. The *policy* pin holds everything archived since the newest dump began: its
files may stand in the next one. The *dump* pin holds the files that a dump names, until it is
loaded. Hive has neither, and its purge takes files that a replica still needs
(docs/hive/replication.md §6).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from changemanager.config import NAME_LENGTH_MAX
from changemanager.manifest import ArchivePins, Pin, PinKind
from changemanager.uri import EncodedUri, archive_name
from hms_bridge.clock import Clock
from hms_bridge.repl.format.directories import DumpDirectory, DumpState
from hms_bridge.repl.format.layout import database_of
from hms_bridge.repl.remedies import begin_anew

_DUMP = "dump:"
_POLICY = "policy:"


def dump_holder(database: str, directory: str) -> str:
    """The name of the pin of one dump."""
    return f"{_DUMP}{database}:{directory}"


def policy_holder(database: str) -> str:
    """The name of the pin of the way from dump to dump."""
    return f"{_POLICY}{database}"


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
    when = datetime.fromtimestamp(pin.given_up.at_ms / 1000, UTC).isoformat(" ", "seconds")
    event = f"{pin.holder} was given up at {when} (hms.bridge.repl.archive.budget)"
    if pin.kind is PinKind.POLICY:
        ends = (
            "files that the next dump may name are purged; that dump says which it lacks, and ends "
            "this if it lacks none: 'repl dump' or 'repl run'"
        )
    else:
        ends = "files that the dump names are purged: 'repl verify' lists them"
    return f"{event}: {pin.given_up.reason}; {ends}. {begin_anew(database)}"


def given_up_of(manifest: ArchivePins | None, database: str) -> str:
    """What was given up of a database's policy and dumps; empty if nothing was, or nobody knows."""
    policy, dumps = policy_holder(database), dump_holder(database, "")
    pins = () if manifest is None else manifest.pins()
    own = [pin for pin in pins if pin.holder == policy or pin.holder.startswith(dumps)]
    texts = [given_up_text(pin, database) for pin in own]
    return " ".join(text for text in texts if text)


@dataclass(frozen=True, kw_only=True, slots=True)
class DumpPins:
    """Sets and releases the pins of one replicated database. Without a manifest nothing happens.

    ``is_apart``: the dump is none of those that follow on each other, so the policy's pin, which is
    of the last of these, stays as it is.
    """

    manifest: ArchivePins | None
    clock: Clock
    database: str
    is_apart: bool = False

    def begin(self) -> None:
        """A dump begins: hold what is archived from now on, unless an older dump holds more."""
        if self.manifest is None or self.is_apart:
            return
        holder = policy_holder(self.database)
        if not any(pin.holder == holder for pin in self.manifest.pins()):
            self._put_policy(self.clock.now_ms())

    def hold(self, directory: str, files: Collection[EncodedUri]) -> tuple[str, ...]:
        """Hold the files that a dump names; returns those whose purge has begun already."""
        if self.manifest is None:
            return ()
        return self.manifest.put_pin(
            Pin(
                holder=dump_holder(self.database, directory),
                kind=PinKind.DUMP,
                reason=f"dump {directory} is not loaded yet",
                created_at_ms=self.clock.now_ms(),
                names=names_of(files),
            )
        )

    def finish(self, began_at_ms: int) -> None:
        """A dump is finished: the next one needs what was archived since this one began.

        It has found all files that it names, so that the policy goes on, even if it was given up.
        """
        if self.manifest is not None and not self.is_apart:
            self._put_policy(began_at_ms)

    def end(self) -> None:
        """There will be no next dump: nothing more is held for it."""
        if self.manifest is not None:
            self.manifest.remove_pin(policy_holder(self.database))

    def hold_since(self, since_ms: int) -> None:
        """The next dump needs what was archived since then, too."""
        if self.manifest is None:
            return
        holder = policy_holder(self.database)
        held = [pin.archived_since_ms for pin in self.manifest.pins() if pin.holder == holder]
        since_ms = min([since_ms, *(held_ms for held_ms in held if held_ms is not None)])
        self._put_policy(since_ms, is_wider=True)

    def _put_policy(self, since_ms: int, *, is_wider: bool = False) -> None:
        if self.manifest is not None:
            self.manifest.put_pin(
                Pin(
                    holder=policy_holder(self.database),
                    kind=PinKind.POLICY,
                    reason=f"the next dump of {self.database} may name it",
                    created_at_ms=self.clock.now_ms(),
                    database=self.database,
                    archived_since_ms=since_ms,
                ),
                is_wider=is_wider,
            )

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
