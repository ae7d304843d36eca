"""Connections that stay open between transactions: what they leave, and when they are given up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import ArgumentError, DBAPIError

from hms_bridge.backend.engine import open_database
from hms_bridge.backend.kept_connections import KeptConnections
from hms_bridge.errors import BackendError


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = create_engine(f"sqlite:///{tmp_path}/kept.db", pool_size=3, max_overflow=0)
    yield engine
    engine.dispose()


def kept(engine: Engine, *, is_alive: bool = True, trusted_seconds: float = 60) -> KeptConnections:
    return KeptConnections(
        engine, count_max=2, trusted_seconds=trusted_seconds, is_alive=lambda _: is_alive
    )


def out(engine: Engine) -> int:
    return engine.pool.checkedout()  # type: ignore[attr-defined]


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
