"""CREATE TABLE AS SELECT, as Hive makes it: files first, the table then."""

from __future__ import annotations

import random

from hms_bridge.errors import HmsBridgeError
from hms_bridge.model.compaction import LOCATION, CompactionRequest, CompactionType
from hms_bridge.model.lock import DataOperation, LockType
from hms_bridge.model.target import Target
from tests.simulation.clients import Clients
from tests.simulation.cluster import BASE_COLUMNS, Cluster
from tests.simulation.definitions import Columns
from tests.simulation.statements import PAUSES, NotTodayError, Statement

_FIRST_ROW = 300_000


class _Creation(Statement):
    """Of a table that is not there yet."""

    def columns(self) -> Columns:
        return BASE_COLUMNS


class Creations(Clients):
    """Each a method that an actor runs to its end."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, first_row=_FIRST_ROW)

    def create_as_select(self, dice: random.Random) -> None:
        """It often fails; then it has its directory cleaned (RollbackCTASHook). Sometimes the
        clean-up is asked for, and the statement comes through all the same."""
        names = [one for one in ("t", "q", "n") if one not in self.cluster.model.tables]
        if not names:
            raise NotTodayError("all are there")
        name = dice.choice(names)
        creation = _Creation(self.cluster, dice, name)
        path = f"{self.cluster.source.directory}/{name}"
        is_failing = dice.random() < 0.5
        try:
            creation.lock(LockType.EXCL_WRITE, DataOperation.INSERT, [""], is_dynamic=False)
            creation.allocate()
            creation.insert(path, "", self._rows(dice, name), 0)
            for _ in range(PAUSES):
                self.cluster.scheduler.point("selects", changes=False)
            if is_failing or dice.random() < 0.6:
                self._submit(creation, path)
                for _ in range(PAUSES):
                    self.cluster.scheduler.point("has asked for the clean-up", changes=False)
            if is_failing:
                creation.abort()
                return
            self.cluster.create_table(name, is_partitioned=False)
            creation.table_id = self.cluster.source.table_ids().get(name)
            creation.commit(DataOperation.INSERT)
        except (HmsBridgeError, OSError, NotTodayError):
            self._give_up(creation)

    def _submit(self, creation: Statement, path: str) -> None:
        request = CompactionRequest(
            target=Target(creation.database, creation.table),
            type=CompactionType.MAJOR,
            properties={LOCATION: f"file:{path}", "ifPurge": "true"},
        )
        creation.store.submit_for_cleanup(request, creation.write_id, creation.id)
