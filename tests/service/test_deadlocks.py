"""A client of the same database takes a verb's rows in the other order: the verb is given up by the
database, done again from its start, and once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, select, text, update

from hms_bridge.backend import engine
from hms_bridge.backend.engine import open_database
from hms_bridge.backend.schema.catalog_tables import TBLS
from hms_bridge.backend.schema.notification_tables import NOTIFICATION_SEQUENCE
from hms_bridge.backend.schema.txn_tables import AUX_TABLE, NEXT_WRITE_ID, TXNS
from hms_bridge.errors import RetryableBackendError
from hms_bridge.model.ids import TxnId
from hms_bridge.model.txn import TxnState
from hms_bridge.service.metastore_service import MetastoreService
from hms_bridge.service.open import open_local_metastore
from tests.conformance.objects import (
    abort,
    commit,
    events_after,
    new_database,
    new_table,
    open_txn,
    write_id,
)
from tests.support.crowd import LONG_SECONDS, Crowd, wait_until
from tests.support.databases import SERVER_URL, WHO_WAIT, fresh_url

pytestmark = pytest.mark.skipif(SERVER_URL is None, reason="SQLite has one writer at a time")

_IS_POSTGRESQL = (SERVER_URL or "").startswith("postgresql")
_NOTHING_CHANGES = {NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID: NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID}
_MANY_ROWS = [{"MT_KEY1": "heavy", "MT_KEY2": number} for number in range(1000)]


@pytest.fixture
def metastore(tmp_path: Path) -> Iterator[MetastoreService]:
    opened = open_local_metastore(fresh_url(tmp_path), warehouse=str(tmp_path / "warehouse"))
    yield opened
    opened.close()


@pytest.fixture
def given_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the database said to transactions of the metastore that it gave up."""
    told: list[str] = []
    really = engine.translate

    def translate(*given: object, **options: object) -> Exception:
        error: Exception = really(*given, **options)  # type: ignore[arg-type]
        if isinstance(error, RetryableBackendError):
            told.append(str(error).lower())
        return error

    monkeypatch.setattr(engine, "translate", translate)
    return told


def in_a_deadlock(verb: Callable[[], object], rows: Callable[[Connection], object]) -> object:
    """What a verb that logs an event answers, whose ``rows`` another client asks for, which holds
    the counter of events. The database gives up the verb, not the other client: PostgreSQL the one
    that looks first, MariaDB the one that has changed less."""
    assert SERVER_URL is not None
    other = open_database(SERVER_URL)
    try:
        with ThreadPoolExecutor(1) as thread, other.engine.connect() as connection:
            if _IS_POSTGRESQL:
                connection.execute(text("SET deadlock_timeout = '60s'"))
                connection.commit()
            connection.execute(insert(AUX_TABLE), _MANY_ROWS)
            connection.execute(update(NOTIFICATION_SEQUENCE).values(_NOTHING_CHANGES))
            asked = thread.submit(verb)
            with other.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as watcher:
                wait_until(lambda: bool(watcher.scalar(WHO_WAIT)))
            rows(connection)
            connection.rollback()
            return asked.result(LONG_SECONDS)
    finally:
        other.close()


def row_of(txn_id: TxnId) -> Callable[[Connection], object]:
    asked = select(TXNS.c.TXN_ID).where(txn_id == TXNS.c.TXN_ID).with_for_update()
    return lambda connection: connection.execute(asked).all()


def of_type(metastore: MetastoreService) -> list[str]:
    return [told.type for told in events_after(metastore, 0)]


@pytest.mark.parametrize(
    ("end", "event"), [(commit, "COMMIT_TXN"), (abort, "ABORT_TXN")], ids=["commit", "abort"]
)
def test_a_transaction_ends_once(
    metastore: MetastoreService,
    given_up: list[str],
    end: Callable[[MetastoreService, TxnId], None],
    event: str,
) -> None:
    txn_id = open_txn(metastore)
    in_a_deadlock(lambda: end(metastore, txn_id), row_of(txn_id))
    assert any("deadlock" in told for told in given_up)
    assert of_type(metastore) == ["OPEN_TXN", event]
    open_ids = [info.id for info in metastore.get_open_txns_info() if info.state is TxnState.OPEN]
    assert txn_id not in open_ids


def test_a_write_id_is_given_once(metastore: MetastoreService, given_up: list[str]) -> None:
    database = new_database(metastore)
    new_table(metastore, database)
    first, second = open_txn(metastore), open_txn(metastore)
    assert write_id(metastore, first, database) == 1
    counter = select(NEXT_WRITE_ID.c.NWI_NEXT).with_for_update()
    got = in_a_deadlock(
        lambda: write_id(metastore, second, database),
        lambda connection: connection.execute(counter).all(),
    )
    assert any("deadlock" in told for told in given_up)
    assert got == 2, "no id is lost"
    assert of_type(metastore).count("ALLOC_WRITE_ID_EVENT") == 2


def test_a_table_is_dropped_once(metastore: MetastoreService, given_up: list[str]) -> None:
    database = new_database(metastore)
    new_table(metastore, database)
    rows = select(TBLS.c.TBL_ID).with_for_update()
    in_a_deadlock(
        lambda: metastore.drop_table(database, "t"),
        lambda connection: connection.execute(rows).all(),
    )
    assert any("deadlock" in told for told in given_up)
    assert "t" not in metastore.get_tables(database)
    assert of_type(metastore).count("DROP_TABLE") == 1


def test_each_of_a_batch_is_done_once(metastore: MetastoreService, given_up: list[str]) -> None:
    crowd = Crowd(metastore)
    first, second = open_txn(metastore), open_txn(metastore)
    outcomes = in_a_deadlock(
        lambda: crowd.together(
            lambda: commit(metastore, first),
            lambda: abort(metastore, second),
            lambda: open_txn(metastore),
        ),
        row_of(second),
    )
    assert crowd.batches[0] == 3
    # A batch waits for others less long than PostgreSQL does before it looks for deadlocks.
    assert any("deadlock" in told or "lock timeout" in told for told in given_up)
    assert isinstance(outcomes, list)
    assert outcomes[:2] == [None, None]
    assert sorted(of_type(metastore)) == sorted(
        ["OPEN_TXN", "OPEN_TXN", "COMMIT_TXN", "ABORT_TXN", "OPEN_TXN"]
    )
    states = {info.id: info.state for info in metastore.get_open_txns_info() if info.started_ms}
    assert states == {second: TxnState.ABORTED, outcomes[2]: TxnState.OPEN}
