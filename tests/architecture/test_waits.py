"""Every wait has an end, and it is known for whom."""

from __future__ import annotations

from tests.architecture.sources import PRODUCT, ROOT
from tests.architecture.waits import TABLE, rows, waits_without_limit

ADVICE = f"give it one, or {TABLE.name} a row"
FOUND = [
    wait
    for path in PRODUCT
    for wait in waits_without_limit(path.relative_to(ROOT).as_posix(), path.read_text())
]


def test_each_has_a_limit_or_a_row_that_says_how_it_ends() -> None:
    unknown = [
        f"{wait.file}:{wait.line}: {wait.text} has no limit; {ADVICE}"
        for wait in FOUND
        if wait.place not in rows()
    ]
    assert unknown == []


def test_each_row_is_of_a_wait_and_says_for_whom_and_until_when() -> None:
    assert rows().keys() - {wait.place for wait in FOUND} == set()
    assert [place for place, said in rows().items() if not all(said)] == []


def test_databases_are_opened_where_their_limits_are_set() -> None:
    openers = {
        path.relative_to(ROOT).as_posix()
        for path in PRODUCT
        if "create_engine(" in path.read_text()
    }
    assert openers == {"hms_bridge/backend/engine.py"}


def test_planted_waits_are_found() -> None:
    planted = """
class Work:
    def __init__(self):
        self._lock = Lock()
        self._turns = Semaphore(2)
    def short(self):
        with self._lock:
            self.count += 1
        self._done.wait(5)
        self._thread.join(timeout=3)
        lock.acquire(blocking=False)
        ", ".join(names)
        socket.create_connection(address, 10)
        subprocess.run(words, timeout=60)
    def endless(self):
        with self._lock:
            self._socket.recv(1)
        with self._turns:
            pass
        self._done.wait()
        self._thread.join()
        queue.get()
        lock.acquire()
        socket.create_connection(address)
        subprocess.run(words)
        subprocess.Popen(words)
        future.result()
        pgconn.exec_(b"SELECT 1")
"""
    found = list(waits_without_limit("x.py", planted))
    assert {wait.within for wait in found} == {"Work.endless"}
    assert sorted(wait.line for wait in found) == [16, 17, 18, *range(20, 29)]
