"""What ends a state that no further load or dump ends, as the commands to give."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass

_TABLE = "--table-anew"
_BEGIN_ANEW = "To begin anew: "
_LOOK_FIRST = "Look first "
_TABLE_NAMES = re.compile(rf"{_TABLE} ([^\s']+)")


@dataclass(frozen=True, slots=True)
class NamedRemedy:
    """What a message names: ``tables`` to bring whole, or that the replica has to begin anew."""

    tables: frozenset[str] = frozenset()
    is_bootstrap: bool = False


def begin_anew(source: str, target: str | None = None) -> str:
    """The replica cannot go on: the commands that make a new one, in their order."""
    target = target or source
    into = "" if target == source else f" --into {target}"
    return (
        f"{_BEGIN_ANEW}'repl dump {source} --discard' at the source (if a dump waits there), "
        f"'sql -e \"DROP DATABASE {target} CASCADE\"' at the replica, "
        f"'repl dump {source} --bootstrap', 'repl load {source}{into}'"
    )


def name_roots(source: str, target: str, root: str, roots: Iterable[str]) -> str:
    """The places that a load may read files from: the command that names them, once."""
    into = [] if target == source else ["--into", target]
    named = [word for place in roots for word in ("--files-from", place)]
    words = ["hms-bridge", "repl", "load", source, *into, "--root", root, *named]
    return shlex.join(words)


def source_went_back(source: str) -> str:
    """A source stands before its replica, as one does that was restored from a backup: what it lost
    with that may be in the replica alone, so the replica is no copy to throw away."""
    return (
        f"{_LOOK_FIRST}what the replica has that the source lost: it may be the only copy. To keep "
        "it, with a policy: 'repl promote POLICY' (--source-is-lost where that is out of reach), "
        "then 'repl failback POLICY' brings all of it to the source. If nothing of "
        f"it is wanted: {begin_anew(source)}"
    )


def replica_is_wanted(messages: Iterable[str]) -> str:
    """Ends what offers to drop a replica where a message asks to look first; else empty."""
    if not any(_LOOK_FIRST in message for message in messages):
        return ""
    return (
        ". Do NOT before you have looked what the replica has: it may be the only copy of "
        "what the source lost. 'repl promote POLICY' and 'repl failback POLICY' keep it"
    )


def without_remedy(message: str) -> str:
    """What a message of :func:`source_went_back` is the end of says, for who is on that way."""
    return message.partition(f" {_LOOK_FIRST}")[0]


def bring_anew(source: str, tables: Iterable[str], target: str | None = None) -> str:
    """Some tables cannot be carried on: the commands that bring them whole with the next dump, or
    with one in the place of the dump that waits."""
    names = " ".join(f"{_TABLE} {name}" for name in dict.fromkeys(tables))
    into = "" if target in (None, source) else f" --into {target}"
    return (
        f"To bring the table whole instead: 'repl dump {source} {names}' at the source, then "
        f"'repl load {source}{into}'"
    )


def named_remedy(message: str) -> NamedRemedy | None:
    """What a message of a dump, a load or a cycle's history says that ends its state; None if it
    names neither of the two ways. The commands are the message's meaning: history keeps no more."""
    tables = frozenset(_TABLE_NAMES.findall(message))
    is_bootstrap = _BEGIN_ANEW in message
    return NamedRemedy(tables, is_bootstrap) if tables or is_bootstrap else None


def repair_of(policy: str, message: str) -> str | None:
    """The one command that sees to what a cycle failed with, whatever that names; None where no
    repair is to be begun: the replica may be the only copy, or nothing that it mends is wrong."""
    if named_remedy(message) is None or _LOOK_FIRST in message:
        return None
    return f"'hms-bridge repl repair {policy} --dry-run' shows the smallest step that ends this"


def open_to_writers(database: str) -> str:
    """How an admin lets others write to a replica."""
    return f"'repl open {database} --writes', after which a load may find it changed and refuse"


def open_to_definitions(database: str) -> str:
    """How an admin lets others define what a replica holds; a real Hive's REPL LOAD needs it."""
    return f"'repl open {database} --definitions', as for REPL LOAD of a real Hive"


def lift_fence(policy: str) -> str:
    """How an admin gives a fenced source back to its writers."""
    return (
        f"'repl promote {policy} --cancel', as long as its replica was not promoted; after that "
        f"'repl failback {policy}' makes it the replica"
    )


def taken_over(database: str) -> str:
    """A promoted replica was taken for one still, and how its former source follows it."""
    return (
        f"database {database} has taken its source's place, so it follows nobody: 'repl failback "
        "POLICY' makes the former source its replica. Do not drop it"
    )


def gone_over(database: str, *, policy: str, successor: str, is_fenced: bool) -> str:
    """A dump of a former source was asked for, or would be: who has its place, and how to go on."""
    end = f"'repl end {database}', then " if is_fenced else ""
    return (
        f"database {database} is no source any more: {successor} (policy {policy}) took its place, "
        "and whoever follows this one would lack what is written there. "
        f"'repl failback {policy}' makes this one its replica; another replica begins anew from "
        "there ('repl policy add', with that database as its source). To have this one as a source "
        f"of its own, beside that one: {end}'repl open {database} --writes'"
    )


def handed_over(database: str) -> str:
    """A former source was taken for one still, and how it follows the one in its place."""
    return (
        f"database {database} is handed over to its replica, whose dumps are here: 'repl promote "
        "POLICY' goes on if that was stopped, after it 'repl failback POLICY' leads back"
    )
