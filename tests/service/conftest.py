"""Two servers of one database, and what the first sends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.txn import low_boundary
from hms_bridge.txn.open_limit import OpenTxnLimit
from tests.conformance import objects
from tests.conformance.objects import commit, open_txn
from tests.support.databases import fresh_url
from tests.support.one_database import Side


@pytest.fixture
def one_url(tmp_path: Path) -> str:
    return fresh_url(tmp_path)


@pytest.fixture
def long_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is looked up anew each moment, with a message of its own, is not on a slow machine."""
    monkeypatch.setattr(low_boundary, "REMEMBERED_MS", 600_000)
    monkeypatch.setattr(OpenTxnLimit, "_INTERVAL_MS", 600_000)


@pytest.fixture
def side(one_url: str, tmp_path: Path, long_memory: None) -> Iterator[Side]:  # noqa: ARG001
    """One that has opened a transaction before."""
    side = Side(one_url, tmp_path / "warehouse")
    for _ in range(2):
        side(commit, side(open_txn))
    yield side
    side.close()


@pytest.fixture
def other(one_url: str, side: Side, tmp_path: Path) -> Iterator[Side]:
    other = Side(one_url, tmp_path / "warehouse")
    yield other
    other.close()


@pytest.fixture
def table(side: Side) -> str:
    """Its database."""
    database = side(objects.new_database)
    side(objects.new_table, database)
    return database


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many statements went in each message."""
    from hms_bridge.backend.pipeline import PipelinedConnection

    sent: list[int] = []
    really = PipelinedConnection._send_all

    def send_all(raw: Any, held: Any, *, is_begun: bool) -> Any:
        sent.append(len(held))
        return really(raw, held, is_begun=is_begun)

    monkeypatch.setattr(PipelinedConnection, "_send_all", send_all)
    return sent
