"""A client that writes all the time and keeps what it was told: done, or not known."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Iterable, Mapping

from integration.referees.errors import StatementError
from integration.referees.hive42 import HiveSession, Row
from integration.story.shop import ACID

Value = str | None
"""What a row has, None for no row."""


class Ledger:
    """What the rows of a table `id, v, p` may be after the statements that were tried."""

    def __init__(self) -> None:
        self._allowed: dict[int, set[Value]] = {}

    @property
    def sure(self) -> list[int]:
        """Ids of rows that are certainly there."""
        return [n for n, values in self._allowed.items() if len(values) == 1 and None not in values]

    def acknowledged(self, values: Mapping[int, Value]) -> None:
        """A statement that was answered has happened."""
        self._allowed.update({number: {value} for number, value in values.items()})

    def failed(self, values: Mapping[int, Value]) -> None:
        """One that failed has happened or not."""
        for number, value in values.items():
            self._allowed[number] = {*self._allowed.get(number, {None}), value}

    def differences(self, rows: Iterable[Row]) -> list[str]:
        """How rows `ROW__ID, id, v, p` differ from it: lost, doubled, ghosts; empty if they do
        not.
        """
        rows = list(rows)
        counts = Counter(int(row[1]) for row in rows)
        found: dict[int, Value] = {int(row[1]): row[2] for row in rows}
        wrong = [f"{number} is there {n} times" for number, n in counts.items() if n > 1]
        wrong += [f"{number} was never written" for number in found.keys() - self._allowed.keys()]
        wrong += [
            f"{number} is {found.get(number)}, may be {sorted(map(str, values))}"
            for number, values in self._allowed.items()
            if found.get(number) not in values
        ]
        ids = Counter((row[0], row[3]) for row in rows)
        return wrong + [f"{row_id} twice" for row_id, n in ids.items() if n > 1]


class Writer:
    """INSERT, UPDATE and DELETE by real Hive on its own thread, until `stop`."""

    def __init__(self, hive: HiveSession, table: str) -> None:
        self._hive = hive
        self.table = table
        self.ledger = Ledger()
        self.acknowledged = 0
        self.failures: list[str] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        hive.sql(f"create table {table} (id int, v string) partitioned by (p string) {ACID}")

    def start(self) -> Writer:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(120)
        assert not self._thread.is_alive(), "a statement hangs"

    def _write(self) -> None:
        for turn in itertools.count(1):
            if self._stopping.is_set():
                return
            first, second = 10 * turn, 10 * turn + 1
            self._try(
                f"insert into {self.table} values ({first}, 'new', 'a'), ({second}, 'new', 'b')",
                {first: "new", second: "new"},
            )
            sure = self.ledger.sure
            if sure:
                number = sure[turn % len(sure)]
                self._try(
                    f"update {self.table} set v = 'turn {turn}' where id = {number}",
                    {number: f"turn {turn}"},
                )
            sure = self.ledger.sure
            if len(sure) > 4 and turn % 3 == 0:
                number = sure[(turn + 1) % len(sure)]
                self._try(f"delete from {self.table} where id = {number}", {number: None})

    def _try(self, statement: str, values: dict[int, Value]) -> None:
        """One statement, and what its rows are after it."""
        try:
            self._hive.sql(statement)
        except StatementError as error:
            self.failures.append(str(error))
            self.ledger.failed(values)
            self._stopping.wait(0.5)
        else:
            self.acknowledged += 1
            self.ledger.acknowledged(values)
