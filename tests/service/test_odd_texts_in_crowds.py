"""A text that no column takes, in one transaction with what other clients do: it is refused, and
they are not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hms_bridge.errors import BackendError, HmsBridgeError
from hms_bridge.model.ids import LockId
from hms_bridge.model.lock import DataOperation, LockRequest, LockState, LockType
from hms_bridge.model.txn import AllocateWriteIdsRequest, OpenTxnsRequest
from hms_bridge.service.metastore_service import MetastoreService
from hms_bridge.service.open import open_local_metastore
from tests.conformance import objects
from tests.conformance.objects import commit, events_after, open_txn, write_id
from tests.support.crowd import Crowd
from tests.support.databases import fresh_url

ODD = {"with a NUL": "x\0y", "too long": "y" * 5000}


@pytest.fixture
def metastore(tmp_path: Path) -> Iterator[MetastoreService]:
    opened = open_local_metastore(fresh_url(tmp_path), warehouse=str(tmp_path / "warehouse"))
    yield opened
    opened.close()


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_text_fails_nobody_elses_verb(metastore: MetastoreService, kind: str) -> None:
    odd = ODD[kind]
    database = objects.new_database(metastore)
    objects.new_table(metastore, database)
    ended, writing, locking, other = (open_txn(metastore) for _ in range(4))
    known = metastore.get_current_event_id()
    part = objects.component(database, "t", LockType.SHARED_WRITE, DataOperation.INSERT)
    strange = objects.component(odd, "t", LockType.SHARED_WRITE, DataOperation.INSERT)

    def locked(request: LockRequest) -> LockState:
        return metastore.lock(request).state

    outcomes = Crowd(metastore).together(
        lambda: locked(objects.request(part, txn=locking)),
        lambda: locked(objects.request(strange, txn=other)),
        lambda: locked(objects.request(part, txn=other, agent=odd)),
        lambda: write_id(metastore, writing, database),
        lambda: metastore.allocate_table_write_ids(
            AllocateWriteIdsRequest(database_name=odd, table_name=odd, txn_ids=(writing,))
        ),
        lambda: metastore.heartbeat(writing, LockId(0)),
        lambda: metastore.open_txns(OpenTxnsRequest(user=odd, host=odd, agent=odd)),
        lambda: open_txn(metastore),
        lambda: commit(metastore, ended),
    )
    assert [outcomes[place] for place in (0, 3)] == [LockState.ACQUIRED, 1]
    opened = outcomes[7]
    assert isinstance(opened, int)
    assert [outcomes[place] for place in (5, 8)] == [None, None]
    for place in (1, 2, 4, 6):
        refused = outcomes[place]
        if isinstance(refused, Exception):
            assert isinstance(refused, HmsBridgeError)
            assert not isinstance(refused, BackendError), refused
    told = events_after(metastore, known)
    assert [event.id for event in told] == list(range(known + 1, known + 1 + len(told)))
    assert {"ALLOC_WRITE_ID_EVENT", "COMMIT_TXN", "OPEN_TXN"} <= {event.type for event in told}
    assert metastore.get_max_allocated_write_id(database, "t") == 1
