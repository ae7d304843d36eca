"""The file of a SQLite database is its owner's alone."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from hms_bridge.backend.engine import open_database


@pytest.fixture(autouse=True, params=[0o000, 0o077], ids=["umask 000", "umask 077"])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}


@pytest.mark.parametrize("url", ["sqlite:///{}", "sqlite:///file:{}?uri=true"])
def test_a_new_database_is_its_owners_with_all_that_stands_beside_it(
    tmp_path: Path, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    database = open_database(url.format(tmp_path / "m.db"))
    with database.transaction(write=True) as connection:
        connection.execute(text("CREATE TABLE T (A INTEGER)"))
        assert modes(tmp_path) == dict.fromkeys(("m.db", "m.db-wal", "m.db-shm"), 0o600)
    database.close()
    assert caplog.messages == []


def test_threads_that_are_first_together_find_one_that_is_its_owners(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The second one went on to SQLite, which made the file, while the first one still looked."""
    looks, second = Path.exists, threading.Event()

    def slow_look(place: Path) -> bool:
        is_there = looks(place)
        second.wait(0.2)
        return is_there

    monkeypatch.setattr(Path, "exists", slow_look)
    database = open_database(f"sqlite:///{tmp_path / 'm.db'}")

    def ask() -> None:
        with database.transaction(write=False) as connection:
            connection.execute(text("SELECT 1"))
        second.set()

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    database.close()
    assert modes(tmp_path)["m.db"] == 0o600
    assert caplog.messages == []


@pytest.mark.parametrize("mode", ["ro", "rw"])
def test_none_is_made_where_the_url_asks_for_one_that_is_there(tmp_path: Path, mode: str) -> None:
    database = open_database(f"sqlite:///file:{tmp_path / 'm.db'}?uri=true&mode={mode}")
    with pytest.raises(Exception, match="unable to open"), database.transaction(write=False):
        pass
    assert modes(tmp_path) == {}


def test_one_that_all_may_read_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "m.db"
    sqlite3.connect(place).close()
    place.touch()
    place.chmod(0o644)
    database = open_database(f"sqlite:///{place}")
    for _ in range(2):
        with database.transaction(write=False) as connection:
            connection.execute(text("SELECT 1"))
        database.close()
    assert [f"chmod 600 {place}*" in line for line in caplog.messages] == [True]
    assert modes(tmp_path)["m.db"] == 0o644


def test_opening_a_database_again_takes_no_lock_from_who_has_it_open(tmp_path: Path) -> None:
    """Else another process takes itself for the last one, and removes what is committed."""
    place = tmp_path / "m.db"
    one, other = (open_database(f"sqlite:///{place}") for _ in range(2))
    with one.transaction(write=True) as connection:
        connection.execute(text("CREATE TABLE T (A INTEGER)"))
    with other.transaction(write=False) as connection:
        connection.execute(text("SELECT A FROM T"))
    look = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('select * from T')"
    subprocess.run([sys.executable, "-c", f"{look}; c.close()", str(place)], check=True)
    assert (tmp_path / "m.db-wal").exists()
    with one.transaction(write=True) as connection:
        connection.execute(text("INSERT INTO T VALUES (1)"))
    with closing(sqlite3.connect(place)) as reader:
        assert reader.execute("SELECT A FROM T").fetchall() == [(1,)]
    one.close()
    other.close()
