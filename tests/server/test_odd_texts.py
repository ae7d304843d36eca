"""Texts that no column takes, in every field of every method that is answered.

A database says of them what nobody understands who sees no SQL: which one it is, and that it is the
caller's, has to be said. `HMS_BRIDGE_TEST_DATABASE` names another database than SQLite, which takes
nearly everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hms_bridge.errors import BackendError, HmsBridgeError, MetaError
from hms_bridge.server.dispatch import Dispatcher
from hms_bridge.server.serve import offered_names
from hms_bridge.wire.methods import method
from tests.support.filled_requests import DEPTH_MAX, dispatcher_of_filled, filled, with_one_text
from tests.support.served_metastore import ServedMetastore, served_metastore

LONG = "y" * 5000
ODD = {"with a NUL": "x\0y", "too long": LONG, "of another alphabet": "名😀"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedMetastore]:
    with served_metastore(tmp_path_factory.mktemp("odd")) as served:
        yield served


@pytest.fixture
def dispatcher(served: ServedMetastore) -> Dispatcher:
    return dispatcher_of_filled(served)


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("name", sorted(offered_names()))
def test_no_text_is_an_error_of_the_database(dispatcher: Dispatcher, name: str, kind: str) -> None:
    arguments, odd = method(name).arguments, ODD[kind]
    for number in (0, 1):
        requests = [filled(arguments, depth, odd, number) for depth in range(1, DEPTH_MAX)]
        requests += with_one_text(arguments, "x", odd, number)
        for request in requests:
            try:
                dispatcher._calls[name].answer(request)
            except HmsBridgeError as error:
                assert not isinstance(error, BackendError), (request, error)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "open_txns, agentInfo": ({"agentInfo": LONG}, "agentInfo 'yyy"),
    "open_txns, user": ({"user": LONG}, "user 'yyy"),
    "open_txns, hostname": ({"hostname": LONG}, "hostname 'yyy"),
    "open_txns, replPolicy": ({"replPolicy": LONG}, "replPolicy 'yyy"),
    "get_lock_materialization_rebuild, dbName": ({"dbName": LONG}, "database name 'yyy"),
    "get_lock_materialization_rebuild, tableName": ({"tableName": LONG}, "view name 'yyy"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_too_long_is_told_by_name(dispatcher: Dispatcher, name: str) -> None:
    """On every database, so that nothing is there which another one does not hold."""
    verb, (fields, text) = name.partition(",")[0], REFUSED[name]
    request = filled(method(verb).arguments, DEPTH_MAX, "x", 1)
    holder = request.rqst if verb == "open_txns" else request
    for field, value in fields.items():
        setattr(holder, field, value)
    with pytest.raises(MetaError, match=text) as told:
        dispatcher._calls[verb].answer(request)
    assert "5000 characters; at most" in str(told.value)


def test_one_transaction_rebuilds_one_view(dispatcher: Dispatcher) -> None:
    """Its id is the key; the database's own words about that are nobody's."""
    lock = dispatcher._calls["get_lock_materialization_rebuild"]
    assert lock.answer(lock.arguments(dbName="x", tableName="one", txnId=77)).state == 1
    with pytest.raises(MetaError, match="transaction 77 rebuilds x.one already"):
        lock.answer(lock.arguments(dbName="x", tableName="other", txnId=77))
