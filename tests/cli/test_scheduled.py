"""`hms-bridge compact` of what is in the queue already."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from hms_bridge.cli.scheduled import queue
from hms_bridge.errors import CompactionError
from hms_bridge.model.compaction import (
    Compaction,
    CompactionRequest,
    CompactionState,
    CompactionType,
    ShowCompactionsRequest,
)
from hms_bridge.model.ids import WriteId
from hms_bridge.model.target import Scope, Target
from hms_bridge.model.txn import OpenTxnsRequest, TxnType
from tests.support.busy_metastore import BusyMetastore, opened

EVENTS = ("compact", "sales.events", "major", "--partition", "a=x/b=1")
REQUEST = CompactionRequest(
    target=Target("sales", "Events", "a=x/b=1"),
    type=CompactionType.MAJOR,
)


@pytest.fixture
def metastore(busy: BusyMetastore) -> Iterator[Any]:
    with opened(busy.program) as store:
        yield store.metastore


def entry_of(metastore: Any, table_name: str = "events") -> Compaction:
    found = metastore.show_compactions(ShowCompactionsRequest(scope=Scope("sales", table_name)))
    return next(iter(found))


def claim(metastore: Any) -> Compaction:
    """As a worker does that is killed then."""
    entry = metastore.find_next_compaction("host-7-0", "1")
    assert entry.target.table == "events"
    return entry


def begin(metastore: Any) -> Compaction:
    entry = claim(metastore)
    (txn_id,) = metastore.open_txns(
        OpenTxnsRequest(user="ann", host="here", type=TxnType.COMPACTION)
    )
    entry = replace(entry, txn_id=txn_id, highest_write_id=WriteId(1), run_as="ann")
    metastore.update_compactor_state(entry, txn_id)
    return entry


def test_queued_ones_are_taken(metastore: Any) -> None:
    entry = entry_of(metastore)
    assert entry.state is CompactionState.INITIATED
    assert queue(metastore, REQUEST, is_run=True, is_waited=False) == entry.id
    assert queue(metastore, REQUEST, is_run=False, is_waited=True) == entry.id
    with pytest.raises(CompactionError, match=f"compaction {entry.id} is in .*--run"):
        queue(metastore, REQUEST, is_run=False, is_waited=False)


def test_who_works_on_it_and_what_to_do(metastore: Any) -> None:
    claim(metastore)
    with pytest.raises(CompactionError, match=r"by host-7-0 since .*worker\.timeout"):
        queue(metastore, REQUEST, is_run=True, is_waited=False)
    assert queue(metastore, REQUEST, is_run=False, is_waited=True) == entry_of(metastore).id


def test_a_dead_worker(busy: BusyMetastore, metastore: Any) -> None:
    """kill -9: its transaction is ended by hand (or times out), then its entry is free."""
    left = begin(metastore)
    answer = busy.program.run(*EVENTS, "--run")
    assert answer.exit_code == 1
    for text in ("'working', by host-7-0", f"hms-bridge txns abort {left.txn_id}"):
        assert text in answer.err
    busy.program.ok("txns", "abort", str(left.txn_id))
    assert queue(metastore, REQUEST, is_run=True, is_waited=False) > left.id
    states = {
        one.id: (one.state, one.error_message)
        for one in metastore.show_compactions()
        if one.target.table == "events"
    }
    state, message = states.pop(left.id)
    assert state is CompactionState.FAILED
    assert "host-7-0 has gone" in (message or "")
    assert [state for state, _ in states.values()] == [CompactionState.INITIATED]


def test_what_waits_for_the_cleaner(busy: BusyMetastore) -> None:
    for more in ((), ("--run",)):
        answer = busy.program.run("compact", "sales.customers", "major", *more)
        assert answer.exit_code == 1
        assert "already scheduled" in answer.err
        assert "hms-bridge cleaner run" in answer.err


def test_an_interrupt_is_not_logged_as_an_error(
    busy: BusyMetastore, caplog: pytest.LogCaptureFixture
) -> None:
    """Py4J does so, with a traceback."""
    busy.program.ok("compactions")
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        logging.exception("while sending a command")  # noqa: LOG015
    try:
        raise ValueError
    except ValueError:
        logging.exception("a real one")  # noqa: LOG015
    assert [record.getMessage() for record in caplog.records] == ["a real one"]
