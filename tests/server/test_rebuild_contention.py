"""Clients that want to rebuild one materialized view at once, over thrift: one gets the lock."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.model.txn import AbortTxnRequest, OpenTxnsRequest
from tests.support.served_metastore import served_metastore

CLIENTS, ROUNDS = 8, 5


def test_one_of_many_that_want_to_rebuild_a_view_may(fast_folder: Path) -> None:
    with served_metastore(fast_folder) as served:
        barrier = threading.Barrier(CLIENTS)

        def want(_number: int) -> list[bool]:
            answers = []
            with ThriftMetastoreClient(served.uri) as client:
                for round_ in range(ROUNDS):
                    request = OpenTxnsRequest(count=1, user="u", host="h")
                    (txn_id,) = client.open_txns(request)
                    barrier.wait(60)
                    view = f"Mv{round_}"
                    answers.append(client.lock_materialization_rebuild("db", view, txn_id))
                    is_held = client.heartbeat_materialization_rebuild("db", view, txn_id)
                    assert is_held is answers[-1]
                    barrier.wait(60)
                    # Who had it lets go of it with its transaction.
                    client.abort_txn(AbortTxnRequest(txn_id=txn_id))
            return answers

        with ThreadPoolExecutor(CLIENTS) as clients:
            answers = list(clients.map(want, range(CLIENTS)))
        assert [sum(of_round) for of_round in zip(*answers, strict=True)] == [1] * ROUNDS
