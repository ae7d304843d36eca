"""A metastore, and SQL on it."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from changemanager.location import FsspecResolver
from hms_bridge.clock import SystemClock
from hms_bridge.config.settings import ArchiveSettings, Settings
from hms_bridge.connect import LocalStore, open_local
from hms_bridge.session.transaction import Client

Run = Callable[[str], list[Any]]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    settings = Settings(
        warehouse=str(tmp_path / "warehouse"),
        archive=ArchiveSettings(root=str(tmp_path / "cmroot")),
    )
    opened = open_local(f"sqlite:///{tmp_path / 'metastore.db'}", settings)
    yield opened
    opened.metastore.close()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'metastore.db'}"


@pytest.fixture
def session(spark: Any, store: LocalStore) -> Iterator[Any]:
    """Of SQL; it waits shortly for its locks."""
    with closing(_session(spark, store, lock_wait_seconds=0.5)) as opened:
        yield opened


@pytest.fixture
def run(session: Any) -> Run:
    """Run SQL; rows of queries as lists of tuples, messages of other statements."""
    return _runner(session)


@pytest.fixture
def patient_run(spark: Any, store: LocalStore) -> Iterator[Run]:
    """The same in a session of its own, which waits longer for its locks."""
    with closing(_session(spark, store, lock_wait_seconds=60)) as opened:
        yield _runner(opened)


def _session(spark: Any, store: LocalStore, lock_wait_seconds: float) -> Any:
    from hms_bridge.spark.sql_session import SqlSession

    return SqlSession(
        store.metastore,
        open_spark=lambda: spark,
        resolver=FsspecResolver(),
        client=Client(user=getpass.getuser(), host="test", lock_wait_seconds=lock_wait_seconds),
        clock=SystemClock(),
    )


def _runner(session: Any) -> Run:
    def run_text(text: str) -> list[Any]:
        return [list(r.rows) if r.columns else r.message for r in session.run(text)]

    return run_text
