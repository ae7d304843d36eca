"""Writers that work at the same time on the same tables through different metastores, each with a
model of its own rows.

A writer owns the rows with its name, so what it must read back is known whatever the others do.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from integration.referees.errors import StatementError

Row = tuple[str, ...]
Run = Callable[[str], Sequence[Row]]

TABLES = ("shared", "parts")

# A statement that fails so was undone by its engine, which says so; nothing else may fail.
ABORTED = {
    "write conflict": r"write conflict|[Aa]borted|aborted due to",
    "lock": r"[Ll]ock.{0,40}(not|could|timed)|Unable to acquire|locks were not granted",
    "changed meanwhile": r"was changed while the statement waited|compacted beyond",
    # Hive's own: a cleaner removed a directory of the table while a job's end or MoveTask listed it
    # (Utilities.cleanDirectInsertDirectory).
    "MoveTask": r"MoveTask|get file permissions|return code 3 from \S*TezTask",
}
# Hive's Cleaner may take files from under Hive's own readers: docs/safer-than-hive.md.
FILES_GONE = r"FileNotFound|does not exist|No such file|[Nn]ot enough history|vertex|Vertex"
# In silence, if it removes the directories before the reader lists them; then a second look, with
# that Cleaner standing still, must see everything.
UNSEEN = "rows unseen under Hive's Cleaner"
# Nor does Hive say anything to whom it reads for when a directory goes, whoever removes it, while
# it lists; its log does. A cleaner of ours gives way to that, but for a machine that stands still.
TAKEN_FOR_EMPTY = "a table taken for empty by Hive"


class CleanerTurns:
    """When Hive's Cleaner is at work, so that a reader knows whether it was meanwhile."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._begun = self._ended = 0

    @contextmanager
    def turn(self) -> Iterator[None]:
        """One pass of it."""
        with self._turn:
            self._begun += 1
            try:
                yield
            finally:
                self._ended += 1

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """No pass begins."""
        with self._turn:
            yield

    def since(self) -> Callable[[], bool]:
        """A question: was there a pass at any time from now until it is asked?"""
        ended = self._ended
        return lambda: self._begun > ended


@dataclass
class Writer:
    """One session. `is_hive`: its reads may lose files to Hive's own Cleaner. `taken_for_empty`:
    how often, by its log, a read of that process took a table for empty."""

    name: str
    run: Run
    database: str
    is_hive: bool
    can_merge: bool
    seed: int
    cleaner_turns: CleanerTurns
    taken_for_empty: Callable[[], int]
    models: dict[str, dict[int, str]] = field(
        default_factory=lambda: {table: {} for table in TABLES}
    )
    done: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def work(self, until: float, *, fewest: int, latest: float) -> None:
        """Statements until a moment of `time.monotonic`, and on until the `fewest` succeeded, but
        not after the `latest` moment; each is followed by a look.
        """
        dice = random.Random(self.seed)
        while not self.wrong and (now := time.monotonic()) < latest:
            if now >= until and self.done.total() >= fewest:
                return
            table = dice.choice(TABLES)
            self._change(dice, table)
            self._look(table)

    def _change(self, dice: random.Random, table: str) -> None:
        kind, statement, after = self._choose(dice, table)
        try:
            self.run(statement)
        except StatementError as error:
            why = self._explained(str(error))
            if why is None:
                self.wrong.append(f"{self.name}: {statement}: {error}")
            else:
                self.failed[why] += 1
            return
        self.models[table] = after
        self.done[kind] += 1

    def _choose(self, dice: random.Random, table: str) -> tuple[str, str, dict[int, str]]:
        name, model = f"{self.database}.{table}", dict(self.models[table])
        text = f"{dice.randrange(10_000)}"
        kinds = ["insert", "insert", "update", "delete", *(["merge"] if self.can_merge else [])]
        kind = dice.choice(kinds) if model else "insert"
        mine = f"owner = '{self.name}'"
        if kind == "insert":
            first = max(model, default=0) + 1
            new = dict.fromkeys(range(first, first + dice.randrange(1, 4)), text)
            values = ", ".join(f"({i}, '{v}', '{self.name}')" for i, v in new.items())
            part = " partition (owner)" if table == "parts" and self.is_hive else ""
            return kind, f"insert into {name}{part} values {values}", model | new
        chosen = dice.choice(sorted(model))
        if kind == "update":
            statement = f"update {name} set v = '{text}' where id = {chosen} and {mine}"
            return kind, statement, model | {chosen: text}
        if kind == "delete":
            del model[chosen]
            return kind, f"delete from {name} where id = {chosen} and {mine}", model
        fresh = max(model) + 1
        source = f"(select {chosen} as id union all select {fresh} as id) s"
        statement = (
            f"merge into {name} t using {source} on t.id = s.id and t.{mine} "
            f"when matched then update set v = '{text}' "
            f"when not matched then insert values (s.id, '{text}', '{self.name}')"
        )
        return kind, statement, model | {chosen: text, fresh: text}

    def _look(self, table: str) -> None:
        was_cleaned, empties = self.cleaner_turns.since(), self.taken_for_empty()
        try:
            found = self.read(self.run, table)
        except StatementError as error:
            if self.is_hive and re.search(FILES_GONE, str(error)):
                self.failed["files gone under a read"] += 1
            else:
                self.wrong.append(f"{self.name}: read of {table}: {error}")
            return
        wanted = self.expected(table)
        if found != wanted and self.is_hive and was_cleaned():
            self.failed[UNSEEN] += 1
            self._look_undisturbed(table)
        elif not found and wanted and self.taken_for_empty() > empties:
            self.failed[TAKEN_FOR_EMPTY] += 1
            self._look_undisturbed(table)
        elif found != wanted:
            self.wrong.append(f"{self.name}: {table}: {found} instead of {wanted}")

    def _look_undisturbed(self, table: str) -> None:
        found: list[tuple[int, str]] | StatementError
        with self.cleaner_turns.standing_still():
            try:
                found = self.read(self.run, table)
            except StatementError as error:  # nobody takes files away now
                found = error
        if found != self.expected(table):
            self.wrong.append(f"{self.name}: second look at {table}: {found}")

    def read(self, run: Run, table: str) -> list[tuple[int, str]]:
        """This writer's rows, as a session sees them, in order; a doubled row is there twice."""
        rows = run(f"select id, v from {self.database}.{table} where owner = '{self.name}'")
        return sorted((int(number), text) for number, text in rows)

    def expected(self, table: str) -> list[tuple[int, str]]:
        """What it should read."""
        return sorted(self.models[table].items())

    def _explained(self, message: str) -> str | None:
        for why, pattern in ABORTED.items():
            if re.search(pattern, message):
                return why
        return "files gone" if self.is_hive and re.search(FILES_GONE, message) else None


class Turns:
    """Compactor threads of Hive, turn after turn, until they are stopped."""

    def __init__(self, turns: Sequence[Callable[[], None]], pause_seconds: float = 1.0) -> None:
        self._stopping = threading.Event()
        self._pause_seconds = pause_seconds
        self.errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._repeat, args=(turn,)) for turn in turns]

    def __enter__(self) -> Turns:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _repeat(self, turn: Callable[[], None]) -> None:
        while not self._stopping.wait(self._pause_seconds):
            try:
                turn()
            except BaseException as error:
                self.errors.append(error)
                return
