"""Connections that stay open between transactions: what they leave, and when they are given up."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from hms_bridge.backend.engine import open_database
from hms_bridge.backend.kept_connections import KeptConnections
from hms_bridge.errors import BackendError, MetaError


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = create_engine(f"sqlite:///{tmp_path}/kept.db", pool_size=3, max_overflow=0)
    yield engine
    engine.dispose()


def kept(engine: Engine, *, is_alive: bool = True, **given: Any) -> KeptConnections:
    values: dict[str, Any] = {
        "kept_max": 2,
        "open_max": 3,
        "wait_seconds": 0,
        "trusted_seconds": 60,
        "unused_seconds_max": None,
        "refused_seconds": 0,
    }
    return KeptConnections(engine, is_alive=lambda _: is_alive, **(values | given))


def out(engine: Engine) -> int:
    return engine.pool.checkedout()  # type: ignore[attr-defined]


def is_open(raw: sqlite3.Connection) -> bool:
    try:
        raw.total_changes  # noqa: B018
    except sqlite3.ProgrammingError:
        return False
    return True


def test_what_was_given_is_taken_again_at_its_level_only(engine: Engine) -> None:
    connections = kept(engine)
    first = connections.take("SERIALIZABLE")
    connections.give(first, "SERIALIZABLE")
    other = connections.take(None)
    assert other is not first
    assert connections.take("SERIALIZABLE") is first


def test_no_more_are_kept_than_asked(engine: Engine) -> None:
    connections = kept(engine)
    for connection in [connections.take(None) for _ in range(3)]:
        connections.give(connection, None)
    assert out(engine) == 2
    connections.close()
    assert out(engine) == 0


def test_one_that_was_idle_for_long_is_asked(engine: Engine) -> None:
    connections = kept(engine, is_alive=False, trusted_seconds=0)
    first, second = connections.take(None), connections.take(None)
    connections.give(first, None)
    connections.give(second, None)
    third = connections.take(None)
    assert third not in (first, second)
    assert out(engine) == 1, "and takes the others with it"


def test_one_of_late_is_not_asked(engine: Engine) -> None:
    connections = kept(engine, is_alive=False)
    first = connections.take(None)
    connections.give(first, None)
    assert connections.take(None) is first


def test_one_that_cannot_have_its_level_goes_back_to_the_pool(engine: Engine) -> None:
    with pytest.raises(ArgumentError) as refused:
        kept(engine).take("NO SUCH LEVEL")
    assert out(engine) == 0, refused.value


def test_one_whose_transaction_failed_is_not_kept(engine: Engine) -> None:
    connections = kept(engine)
    first, second = connections.take(None), connections.take(None)
    connections.give(second, None)
    connections.drop(first)
    assert out(engine) == 1, "the other is"


def test_a_database_that_is_gone_takes_all_with_it(engine: Engine) -> None:
    connections = kept(engine)
    first, second = connections.take(None), connections.take(None)
    connections.give(second, None)
    first.invalidate()
    connections.drop(first)
    assert out(engine) == 0


def test_an_idle_one_of_another_level_makes_room(engine: Engine) -> None:
    connections = kept(engine, open_max=2)
    for level in ("SERIALIZABLE", "READ UNCOMMITTED"):
        connections.give(connections.take(level), level)
    taken = connections.take(None)
    assert out(engine) == 2, "the older one has gone back to the pool"
    assert connections.take("READ UNCOMMITTED") is not taken
    with pytest.raises(PoolTimeoutError):
        connections.take("SERIALIZABLE")


def test_who_finds_all_in_use_gets_the_first_that_is_given_back(engine: Engine) -> None:
    connections = kept(engine, open_max=1, wait_seconds=20)
    first = connections.take(None)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(connections.take, "SERIALIZABLE")
        time.sleep(0.2)  # until it waits
        connections.give(first, None)
        waiting.result(10)
    assert connections.count == 1


def test_a_refusal_holds_for_a_while_and_one_that_is_there_will_do(engine: Engine) -> None:
    asked: list[int] = []

    @event.listens_for(engine, "do_connect")
    def refuse(*_: object) -> None:
        asked.append(len(asked))
        if asked != [0]:
            raise sqlite3.OperationalError("sorry, too many clients already")

    connections = kept(engine, refused_seconds=60)
    first = connections.take("SERIALIZABLE")
    connections.give(first, "SERIALIZABLE")
    connections.give(connections.take(None), None)
    connections.give(connections.take("SERIALIZABLE"), "SERIALIZABLE")
    assert asked == [0, 1]


def test_one_that_nobody_uses_is_closed(engine: Engine) -> None:
    connections = kept(engine, unused_seconds_max=0.05)
    first = connections.take(None)
    raw = first.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    connections.give(first, None)
    deadline = time.monotonic() + 30
    while is_open(raw) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_open(raw)
    assert (connections.count, out(engine)) == (0, 0)


def test_what_a_verb_refuses_costs_no_connection(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path}/d.db")
    seen = []
    for _ in range(2):
        with pytest.raises(MetaError), database.transaction(write=True) as connection:
            connection.execute(text("CREATE TABLE rows_of (n INTEGER)"))
            seen.append(connection)
            raise MetaError("no")
    assert seen[0] is seen[1]
    database.close()


def test_a_failed_transaction_leaves_nothing_to_the_next(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path}/d.db")
    with database.transaction(write=True) as connection:
        connection.execute(text("CREATE TABLE rows_of (n INTEGER)"))
    with pytest.raises(BackendError), database.transaction(write=True) as connection:
        connection.execute(text("INSERT INTO rows_of VALUES (1)"))
        raise DBAPIError("a statement", None, Exception("as if it had failed"))
    with database.transaction(write=False) as connection:
        assert connection.execute(text("SELECT count(*) FROM rows_of")).scalar() == 0
    database.close()
    assert out(database.engine) == 0
