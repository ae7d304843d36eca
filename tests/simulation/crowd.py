"""Short writers without an end: the next one has always begun before the last one ends."""

from __future__ import annotations

import random

from hms_bridge.errors import HmsBridgeError
from hms_bridge.model.lock import DataOperation, LockType
from tests.simulation.clients import Clients
from tests.simulation.cluster import Cluster
from tests.simulation.statements import NotTodayError, Statement

_FIRST_ROW = 200_000
_TURNS = 40


class Crowd(Clients):
    """Whoever sleeps is overtaken by them."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, first_row=_FIRST_ROW)
        self._dice = random.Random(0)
        self._turns = 0
        self._last: tuple[Statement, str] | None = None

    def crowd(self, dice: random.Random) -> None:
        """The first one begins; the others while somebody sleeps."""
        self._dice, self._turns = dice, _TURNS
        self._last = self._begun()

    def turn(self) -> None:
        """One begins, and the one before ends. Nobody moves to another side between the two."""
        if self._turns <= 0 or self.cluster.roles.are_to_change:
            return
        self._turns -= 1
        last, self._last = self._last, self._begun() if self._turns else None
        if last is not None:
            self._try_to_end(*last)

    def end(self) -> None:
        """The last one ends, and nobody follows."""
        self._turns = min(1, self._turns)
        self.turn()

    def _begun(self) -> tuple[Statement, str] | None:
        """An insert that has written, and where; every other one without a lock."""
        try:
            table = self._some_table(self._dice)
            known = self.cluster.model.tables[table]
            partition = self.cluster.pick(self._dice, sorted(known.partitions) or [""])
            path = self._path(table, partition)
            statement = Statement(self.cluster, self._dice, table)
        except (HmsBridgeError, OSError, NotTodayError):
            return None
        try:
            if known.is_partitioned and not partition:
                raise NotTodayError("no partition")
            if self._dice.random() < 0.5:
                statement.lock(LockType.SHARED_WRITE, DataOperation.INSERT, [partition])
            statement.allocate()
            statement.insert(path, partition, self._rows(self._dice, table), 0)
        except (HmsBridgeError, OSError, NotTodayError):
            self._give_up(statement)
            return None
        return statement, path

    def _try_to_end(self, statement: Statement, path: str) -> None:
        try:
            if self._dice.random() < 0.15:
                statement.abort()
            else:
                statement.commit_without_lock(path)
        except (HmsBridgeError, OSError, NotTodayError):
            self._give_up(statement)
