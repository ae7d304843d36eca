"""Ctrl-C in the middle of a transaction: rolled back at once, and nobody is locked out."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from sqlalchemy import Connection, event, insert, select

from hms_bridge.backend.engine import Database, open_database
from hms_bridge.backend.retry import run_in_transaction
from hms_bridge.backend.schema.install import install
from hms_bridge.backend.schema.txn_tables import AUX_TABLE
from hms_bridge.interrupts import HeldInterrupts
from tests.support.simulated_clock import SimulatedClock


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(f"sqlite:///{tmp_path}/hms.db", busy_timeout_seconds=0.01)
    install(opened)
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def _plain_interrupts() -> Iterator[None]:
    """Other tests' libraries (Spark) may have their own ways with Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def put(connection: Connection, number: int) -> list[int]:
    connection.execute(insert(AUX_TABLE).values(MT_KEY1="k", MT_KEY2=number))
    rows = connection.execute(select(AUX_TABLE.c.MT_KEY2))
    return [int(row[0]) for row in rows]


def write(database: Database, work: Callable[[Connection], Any]) -> Any:
    return run_in_transaction(database, work, write=True, clock=SimulatedClock())


def interrupted(run: Callable[[], Any]) -> BaseException | None:
    """The interrupt with its traceback, as it lives while its handling goes on."""
    try:
        run()
    except KeyboardInterrupt as error:
        return error
    return None


@pytest.mark.parametrize("name", ["after_cursor_execute", "commit", "rollback"])
def test_an_interrupt_inside_the_library(database: Database, name: str) -> None:
    """Raised where no handler can be held: by a second Ctrl-C, or by another thread."""
    write(database, lambda connection: put(connection, 1))

    def interrupt(*arguments: Any) -> None:
        if name != "after_cursor_execute" or arguments[2].startswith("SELECT"):
            raise KeyboardInterrupt

    def work(connection: Connection) -> None:
        event.listen(connection, name, interrupt)
        put(connection, 2)
        if name == "rollback":
            raise ValueError("to be rolled back")

    error = interrupted(lambda: write(database, work))
    assert error is not None
    assert write(database, lambda connection: put(connection, 3)) == [1, 3]


def test_an_interrupt_waits_for_the_commit(database: Database) -> None:
    def work(connection: Connection) -> None:
        put(connection, 1)
        signal.raise_signal(signal.SIGINT)
        put(connection, 2)

    assert interrupted(lambda: write(database, work)) is not None
    assert write(database, lambda connection: put(connection, 3)) == [1, 2, 3]


def test_an_interrupt_at_any_line_leaves_no_lock(database: Database) -> None:
    """All or nothing; the interrupt arrives when the transaction has ended."""
    database_again = open_database(str(database.engine.url), busy_timeout_seconds=0.01)
    lines, number, stored = count_lines(database), 0, [0]
    assert lines > 200
    for line in range(0, lines, 5):
        number += 1
        with interrupt_at(line):
            error = interrupted(lambda n=number: write(database, lambda c: put(c, n)))
        assert error is not None, line
        number += 1
        seen = write(database_again, lambda c, n=number: put(c, n))
        assert seen in ([*stored, number], [*stored, number - 1, number]), line
        stored = seen
    database_again.close()


def count_lines(database: Database) -> int:
    write(database, lambda c: put(c, -1))
    with interrupt_at(sys.maxsize) as lines:
        write(database, lambda c: put(c, 0))
    write(database, lambda c: c.execute(AUX_TABLE.delete().where(AUX_TABLE.c.MT_KEY2 < 0)))
    return len(lines)


class interrupt_at:  # noqa: N801  (reads as a statement: `with interrupt_at(7):`)
    """Sends SIGINT to this thread at the nth line of a transaction."""

    def __init__(self, line: int) -> None:
        self._line = line
        self._lines: list[str] = []

    def __enter__(self) -> list[str]:
        self._before = sys.gettrace()
        sys.settrace(self._trace)
        return self._lines

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _trace(self, frame: FrameType, kind: str, _: object) -> Any:
        path = frame.f_code.co_filename
        if not any(one in path for one in ("sqlalchemy", "hms_bridge", "contextlib")):
            return None
        if kind == "line":
            if len(self._lines) == self._line:
                signal.raise_signal(signal.SIGINT)
            self._lines.append(path)
        return self._trace


def test_interrupts_are_held_until_released() -> None:
    steps: list[str] = []
    with pytest.raises(KeyboardInterrupt), HeldInterrupts() as held:
        signal.raise_signal(signal.SIGINT)
        steps.append("held")
        held.release()
        steps.append("not reached")
    assert steps == ["held"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_interrupt_does_not_wait() -> None:
    with pytest.raises(KeyboardInterrupt), HeldInterrupts():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        pytest.fail("a second one was held")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_nothing_is_held_in_other_threads() -> None:
    handlers: list[object] = []

    def look() -> None:
        with HeldInterrupts():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert handlers == [signal.default_int_handler]
