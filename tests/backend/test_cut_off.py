"""Who is cut off between a question and its answer gives the connection up: whoever had it next
would take that answer for its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from psycopg.pq import ConnStatus

from hms_bridge.backend.engine import Database
from hms_bridge.backend.pipeline import PipelinedConnection
from hms_bridge.backend.prepared_text import PreparedText
from tests.support.databases import ON_POSTGRESQL

pytestmark = ON_POSTGRESQL
QUESTION = PreparedText("SELECT 1")


@pytest.fixture
def connection(database: Database) -> Iterator[PipelinedConnection]:
    """One that knows the question."""
    pooled = database.engine.raw_connection()
    connection: Any = pooled.driver_connection
    connection.ask(QUESTION)
    connection.commit()
    yield connection
    pooled.invalidate()


def cut_off_after(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    really = getattr(PipelinedConnection, step)

    def cut_off(*given: Any) -> None:
        really(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(PipelinedConnection, step, cut_off)


@pytest.mark.parametrize(
    ("step", "ask"),
    [
        ("_flush_all", PipelinedConnection.send_held),
        ("_send", PipelinedConnection.send_ahead),
    ],
)
def test_it_is_given_up(
    connection: PipelinedConnection,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    ask: Callable[[PipelinedConnection], None],
) -> None:
    connection.ask(QUESTION)
    cut_off_after(monkeypatch, step)
    with pytest.raises(KeyboardInterrupt):
        ask(connection)
    assert connection.pgconn.status == ConnStatus.BAD


def test_also_while_it_hears_what_it_undoes(
    connection: PipelinedConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.ask(QUESTION)
    connection.send_ahead()
    cut_off_after(monkeypatch, "_flush_all")
    with pytest.raises(KeyboardInterrupt):
        connection.rollback()
    assert connection.pgconn.status == ConnStatus.BAD
