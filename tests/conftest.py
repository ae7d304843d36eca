"""What holds for every test."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with Spark run in one process, so that a run starts one session."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One Spark session for the whole run."""
    from hms_bridge.spark.data_source import register
    from hms_bridge.spark.session import open_session

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Spark's own sockets and deprecated calls
        session = open_session("tests", master="local[2]")
        register(session)
        yield session
        session.stop()
