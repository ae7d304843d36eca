"""A client that writes all the time and keeps what it was told: done, or not known."""

from __future__ import annotations

import itertools
import threading
from collections import Counter

from integration.referees.errors import StatementError
from integration.referees.hive42 import HiveSession, Row
from integration.story.shop import ACID

# The two values of a row that is not there, and of one that a statement may have left.
Value = str | None


class Writer:
    """INSERT, UPDATE and DELETE by real Hive on its own thread, until `stop`.

    An acknowledged statement has happened. One that failed has happened or not: its row is in
    doubt and is left alone from then on.
    """

    def __init__(self, hive: HiveSession, table: str) -> None:
        self._hive = hive
        self.table = table
        self.allowed: dict[int, set[Value]] = {}
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

    def differences(self, rows: list[Row]) -> list[str]:
        """What rows `ROW__ID, id, v, p` tell that the writer was not told; empty if all is well."""
        counts = Counter(int(row[1]) for row in rows)
        found: dict[int, Value] = {int(row[1]): row[2] for row in rows}
        wrong = [f"{number} is there {n} times" for number, n in counts.items() if n > 1]
        wrong += [f"{number} was never written" for number in found.keys() - self.allowed.keys()]
        wrong += [
            f"{number} is {found.get(number)!r}, may be {sorted(map(str, values))}"
            for number, values in self.allowed.items()
            if found.get(number) not in values
        ]
        ids = Counter((row[0], row[3]) for row in rows)
        return wrong + [f"{row_id} twice" for row_id, n in ids.items() if n > 1]

    def _write(self) -> None:
        for turn in itertools.count(1):
            if self._stopping.is_set():
                return
            first, second = 10 * turn, 10 * turn + 1
            sure = [n for n, values in self.allowed.items() if values not in ({None},)
                    and len(values) == 1]  # fmt: skip
            self._try(
                f"insert into {self.table} values ({first}, 'new', 'a'), ({second}, 'new', 'b')",
                {first: "new", second: "new"},
            )
            if sure:
                number = sure[turn % len(sure)]
                self._try(
                    f"update {self.table} set v = 'turn {turn}' where id = {number}",
                    {number: f"turn {turn}"},
                )
            if len(sure) > 4 and turn % 3 == 0:
                number = sure[(turn + 1) % len(sure)]
                if len(self.allowed[number]) == 1:
                    self._try(f"delete from {self.table} where id = {number}", {number: None})

    def _try(self, statement: str, values: dict[int, Value]) -> None:
        """One statement, and what its rows are after it."""
        try:
            self._hive.sql(statement)
        except StatementError as error:
            self.failures.append(str(error))
            for number, value in values.items():
                self.allowed[number] = {*self.allowed.get(number, {None}), value}
            self._stopping.wait(0.5)
        else:
            self.acknowledged += 1
            for number, value in values.items():
                self.allowed[number] = {value}
