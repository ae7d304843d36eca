"""The same verbs, whether a server knows what will come of them or not: one history after another
on PostgreSQL, by two servers, once with and once without, and everybody is answered the same, and
the same stands in the database."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import select, update

from hms_bridge.backend.schema.notification_tables import NOTIFICATION_LOG
from hms_bridge.backend.schema.txn_tables import (
    COMPACTION_QUEUE,
    COMPLETED_TXN_COMPONENTS,
    HIVE_LOCKS,
    MIN_HISTORY_LEVEL,
    NEXT_WRITE_ID,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    TXNS,
    WRITE_SET,
)
from hms_bridge.errors import MetastoreError
from hms_bridge.model.catalog import Database
from hms_bridge.model.compaction import CompactionRequest, CompactionType
from hms_bridge.model.ids import LockId, TxnId
from hms_bridge.model.lock import DataOperation, LockType
from hms_bridge.model.target import Target
from hms_bridge.model.txn import (
    AbortTxnRequest,
    AllocateWriteIdsRequest,
    CommitTxnRequest,
    OpenTxnsRequest,
    TxnType,
)
from hms_bridge.service.cleaning import _time_out_txns
from hms_bridge.service.metastore_service import MetastoreService
from hms_bridge.service.open import open_local_metastore
from hms_bridge.txn import foresight, low_boundary
from hms_bridge.txn.foresight import Foresight
from hms_bridge.txn.open_limit import OpenTxnLimit
from tests.conformance import objects
from tests.support.databases import ON_POSTGRESQL, fresh_url

pytestmark = ON_POSTGRESQL
STEPS = 200
DATABASE = "d"
RECORDED = (
    TXNS,
    TXN_TO_WRITE_ID,
    NEXT_WRITE_ID,
    TXN_COMPONENTS,
    COMPLETED_TXN_COMPONENTS,
    WRITE_SET,
    HIVE_LOCKS,
    MIN_HISTORY_LEVEL,
    COMPACTION_QUEUE,
    NOTIFICATION_LOG,
)
# Times, and how far back history is kept, which is looked up now and then.
TIMES = re.compile(r"_(STARTED|HEARTBEAT|TIME|TIMESTAMP|START|ACQUIRED_AT|MIN_OPEN_TXNID)$")
NUMBERS_OF_TIMES = re.compile(r"\b1[5-9]\d{8}(\d{3})?\b")
# As thrift's JSON has a map: after how many there are in it.
MAPS = re.compile(r"(?<=\d,)\{([^{}]+)\}")
KINDS = (
    *[TxnType.DEFAULT] * 12,
    *[TxnType.READ_ONLY] * 3,
    TxnType.COMPACTION,
    TxnType.MATER_VIEW_REBUILD,
    TxnType.SOFT_DELETE,
)
OPERATIONS = (DataOperation.INSERT, DataOperation.INSERT, *DataOperation)
Verb = Callable[[MetastoreService], Any]


class Servers:
    """Two, each with a client; the same seed asks the same of them."""

    def __init__(self, url: str, warehouse: Path, *, expects: bool, seed: int) -> None:
        self._dice = Random(seed)
        self._servers = [open_local_metastore(url, warehouse=str(warehouse)) for _ in range(2)]
        self._clients = [ThreadPoolExecutor(1) for _ in self._servers]
        for server in self._servers:
            if not expects:
                server._transactions.foresight = None
        self.txns: list[TxnId] = []
        self.tables = ["a", "b", "c"]
        self.told: list[str] = []

    def close(self) -> None:
        for server, client in zip(self._servers, self._clients, strict=True):
            client.shutdown()
            server.close()

    def ask(self, what: str, verb: Verb) -> Any:
        """Of either server; the first one has more to do."""
        which = self._dice.choice([0, 0, 0, 0, 1])
        try:
            answer = self._clients[which].submit(verb, self._servers[which]).result()
        except MetastoreError as error:
            self.told.append(f"{what} of {which}: {type(error).__name__}: {error}")
            return None
        self.told.append(f"{what} of {which}: {answer}")
        return answer

    def begin(self) -> None:
        self.ask("database", lambda m: m.create_database(Database(name=DATABASE)))
        for name in self.tables:
            self.ask("table", lambda m, name=name: _made(m, name))

    def step(self) -> None:
        steps: Mapping[Callable[[], None], int] = {
            self._open: 40,
            self._write_id: 40,
            self._lock: 25,
            self._commit: 45,
            self._abort: 3,
            self._heartbeat: 2,
            self._time_out: 1,
            self._rename: 2,
            self._make_anew: 2,
            self._compact: 2,
            self._look: 3,
        }
        (step,) = self._dice.choices([*steps], [*steps.values()])
        step()

    def _txn(self) -> TxnId:
        """One of the last ones, mostly."""
        if self.txns and self._dice.random() < 0.99:
            return self._dice.choice(self.txns[-6:])
        return TxnId(self._dice.randrange(1, max([0, *self.txns]) + 3))

    def _open(self) -> None:
        kind, count = self._dice.choice(KINDS), self._dice.choice([1, 1, 1, 1, 2])
        request = OpenTxnsRequest(user="u", host="h", count=count, type=kind)
        self.txns += self.ask(f"open {kind.name}", lambda m: m.open_txns(request)) or ()

    def _write_id(self) -> None:
        txn, name = self._txn(), self._dice.choice(self.tables)
        request = AllocateWriteIdsRequest(
            database_name=self._dice.choice(["d", "D"]),
            table_name=self._dice.choice([name, name.upper()]),
            txn_ids=(txn, *([self._txn()] if self._dice.random() < 0.05 else ())),
            is_reallocation=self._dice.random() < 0.04,
        )
        self.ask(f"write id {request}", lambda m: m.allocate_table_write_ids(request))

    def _lock(self) -> None:
        operation, name = self._dice.choice(OPERATIONS), self._dice.choice(self.tables)
        is_read = operation is DataOperation.SELECT
        kind = LockType.SHARED_READ if is_read else LockType.SHARED_WRITE
        request = objects.request(
            objects.component(DATABASE, name, kind, operation), txn=self._txn()
        )
        self.ask(f"lock {request}", lambda m: m.lock(request))

    def _commit(self) -> None:
        is_asked = self._dice.random() < 0.8
        request = CommitTxnRequest(txn_id=self._txn(), is_exclusive_write_enabled=is_asked)
        self.ask(f"commit {request}", lambda m: m.commit_txn(request))
        self._has_ended(request.txn_id)

    def _abort(self) -> None:
        txn, other = self._txn(), self._txn()
        if self._dice.random() < 0.7:
            self.ask(f"abort {txn}", lambda m: m.abort_txn(AbortTxnRequest(txn_id=txn)))
            self._has_ended(txn)
        else:
            self.ask(f"abort {txn}, {other}", lambda m: m.abort_txns([txn, other]))

    def _has_ended(self, txn: TxnId) -> None:
        """Now and then it is named again."""
        if txn in self.txns and self._dice.random() < 0.97:
            self.txns.remove(txn)

    def _heartbeat(self) -> None:
        txn = self._txn()
        self.ask(f"heartbeat {txn}", lambda m: m.heartbeat(txn, LockId(0)))

    def _time_out(self) -> None:
        """Behind the servers' backs."""
        txn = self._txn()
        self.ask(f"time out {txn}", lambda m: _timed_out(m, txn))

    def _rename(self) -> None:
        place, new = self._dice.randrange(3), f"r{self._dice.randrange(10**6)}"
        old = self.tables[place]
        self.ask(f"rename {old}", lambda m: _renamed(m, old, new))
        if not self.told[-1].partition("Error")[1]:
            self.tables[place] = new

    def _make_anew(self) -> None:
        name = self._dice.choice(self.tables)
        self.ask(f"drop {name}", lambda m: m.drop_table(DATABASE, name))
        self.ask(f"make {name}", lambda m: _made(m, name))

    def _compact(self) -> None:
        name = self._dice.choice(self.tables)
        self.txns += self.ask(f"compact {name}", lambda m: _compacting(m, name)) or ()

    def _look(self) -> None:
        self.ask("look", lambda m: m.get_open_txns())

    def records(self) -> dict[str, list[str]]:
        """As another program sees them."""
        found: dict[str, list[str]] = {}
        with self._servers[0]._transactions.database.transaction(write=False) as connection:
            for table in RECORDED:
                rows = connection.execute(select(table)).mappings()
                found[table.name] = sorted(_text(row) for row in rows)
        return found


def _made(metastore: MetastoreService, name: str) -> None:
    objects.new_table(metastore, DATABASE, name)


def _renamed(metastore: MetastoreService, old: str, new: str) -> None:
    table = metastore.get_table(DATABASE, old)
    metastore.alter_table(DATABASE, old, replace(table, name=new))


def _timed_out(metastore: MetastoreService, txn: TxnId) -> None:
    with metastore._transactions.database.transaction(write=True) as connection:
        connection.execute(update(TXNS).where(txn == TXNS.c.TXN_ID).values(TXN_LAST_HEARTBEAT=0))
    metastore._transactions.write(_time_out_txns)  # what else housekeeping does goes by the clock


def _compacting(metastore: MetastoreService, name: str) -> tuple[TxnId, ...]:
    target = Target(DATABASE, name)
    metastore.compact(CompactionRequest(target=target, type=CompactionType.MINOR))
    entry = metastore.find_next_compaction("host-1", "4.2.0")
    if entry is None:
        return ()
    txns = metastore.open_txns(OpenTxnsRequest(user="u", host="h", type=TxnType.COMPACTION))
    metastore.update_compactor_state(entry, txns[0])
    return txns


def _text(row: Mapping[Any, Any]) -> str:
    shown = {name: value for name, value in row.items() if not TIMES.search(name)}
    if str(row.get("MESSAGE_FORMAT", "")).startswith("gzip"):
        shown["MESSAGE"] = gzip.decompress(base64.b64decode(row["MESSAGE"])).decode()
    timeless = NUMBERS_OF_TIMES.sub("some time", json.dumps(shown, default=str))
    return MAPS.sub(_in_order, timeless)


def _in_order(parameters: re.Match[str]) -> str:
    """They are told in the order in which the database came upon them."""
    return f"{{{','.join(sorted(parameters[1].split(',')))}}}"


@pytest.fixture(autouse=True)
def long_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foresight, "PAUSE_MAX", 1)
    monkeypatch.setattr(low_boundary, "REMEMBERED_MS", 600_000)
    monkeypatch.setattr(OpenTxnLimit, "_INTERVAL_MS", 600_000)


@pytest.fixture
def outcomes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often something was expected, and came otherwise."""
    count: Counter[str] = Counter()
    fail, learn = Foresight.fail, Foresight.forget

    def failed(known: Foresight) -> None:
        count["otherwise"] += 1
        fail(known)

    def ended(known: Foresight, txn_ids: Any) -> None:
        count["as expected"] += known.writes_of([*txn_ids]) is not None
        learn(known, txn_ids)

    monkeypatch.setattr(Foresight, "fail", failed)
    monkeypatch.setattr(Foresight, "forget", ended)
    return count


@pytest.mark.parametrize("seed", range(6))
def test_a_history_is_the_same_for_who_expects_it(
    tmp_path: Path, outcomes: Counter[str], seed: int
) -> None:
    told: list[list[str]] = []
    found: list[dict[str, list[str]]] = []
    for expects in (True, False):
        url = fresh_url(tmp_path)
        servers = Servers(url, tmp_path / "warehouse", expects=expects, seed=seed)
        servers.begin()
        for _ in range(STEPS):
            servers.step()
        told.append(servers.told)
        found.append(servers.records())
        servers.close()
        shutil.rmtree(tmp_path / "warehouse")
    assert told[0] == told[1]
    for name in found[0]:
        assert found[0][name] == found[1][name], name
    assert outcomes["as expected"] > STEPS / 20
